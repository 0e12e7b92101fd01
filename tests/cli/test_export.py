"""`export`: JSON in others' words, of one trace or of a run's; every proposer's trace holds their invariants."""

import pytest

from specworkbench.analysis import vllm_metrics
from specworkbench.engine import Decoder, DecodeSettings
from specworkbench.trace import save_trace
from tests.analysis.test_exports import check_invariants
from tests.engine.proposer_cases import CASES
from tests.experiments.toys import strict_json
from tests.trace.toy import toy_trace


@pytest.fixture
def path(tmp_path):
    return save_trace(toy_trace(), tmp_path / "t.trace")


@pytest.mark.parametrize(("more", "steps"), [((), False), (("--detailed",), True)])
def test_vllm_is_a_response_s_metrics(command, path, more, steps):
    code, out, err = command("export", path, *more)
    found = strict_json(out)
    assert (code, err) == (0, "") and len(found["requests"]) == 6
    for request in found["requests"]:
        assert list(request) == ["id", "usage", "metrics"] and list(request["metrics"]) == ["speculative_decoding"]
        assert ("per_step_accepted" in request["metrics"]["speculative_decoding"]) == steps


def test_aiperf_s_histogram_is_sparse_and_the_file_is_what_would_be_printed(command, path, tmp_path):
    _, printed, _ = command("export", path, "--format", "aiperf")
    code, out, err = command("export", path, "--format", "aiperf", "--out", tmp_path / "new" / "x.json")
    assert (code, out) == (0, "") and "written to" in err
    found = strict_json((tmp_path / "new" / "x.json").read_text())
    assert found == strict_json(printed)
    histogram = found["total"]["spec_decode_acceptance"]["acceptance_histogram"]
    assert set(histogram) <= set("0123") and found["total"]["spec_decode_acceptance"]["engine"] == "specworkbench"


def test_several_traces_of_one_run_are_one_export(command, path, tmp_path):
    other = save_trace(toy_trace(seed=1), tmp_path / "u.trace")
    whole = strict_json(command("export", path, other)[1])
    parts = [strict_json(command("export", file)[1]) for file in (path, other)]
    assert whole["requests"] == parts[0]["requests"] + parts[1]["requests"]


def test_plain_decoding_is_null_and_said(command, tmp_path):
    code, out, err = command("export", save_trace(toy_trace(proposer="none"), tmp_path / "p.trace"))
    assert code == 0 and "nothing was proposed" in err
    assert strict_json(out)["total"]["metrics"]["speculative_decoding"] is None


def test_what_cannot_be_exported_is_refused(refused, path, tmp_path):
    assert "no format 'sglang'; choose one of vllm, aiperf" in refused("export", path, "--format", "sglang")
    assert "none.trace" in refused("export", tmp_path / "none.trace")
    other = save_trace(toy_trace(gamma=2), tmp_path / "u.trace")
    assert "gamma differ" in refused("export", path, other)
    assert "cannot write the export" in refused("export", path, "--out", path / "x.json")


@pytest.mark.parametrize("case", [case for case in CASES if case.proposes], ids=str)
def test_the_trace_of_every_proposer_holds_the_invariants(case):
    target = case.target()
    decoder = Decoder(target, case.build(target), settings=DecodeSettings(gamma=3, max_new_tokens=12, ignore_eos=True))
    for prompt in ("abab", "cab"):
        decoder.run(prompt)
    check_invariants(decoder.trace())


def test_of_a_tree_drafted_are_its_nodes_and_k_is_its_depth():
    case = next(case for case in CASES if case.label == "medusa tree")
    target = case.target()
    decoder = Decoder(target, case.build(target), settings=DecodeSettings(gamma=2, max_new_tokens=12, ignore_eos=True))
    decoder.run("abab")
    (found,) = vllm_metrics(decoder.trace(), detailed=True)
    assert found["num_spec_tokens"] == 2 and len(found["acceptance_histogram"]) == 3
    assert max(found["per_step_drafted"]) == 5 and max(found["per_step_accepted"]) <= 2

