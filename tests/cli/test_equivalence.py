"""`equivalence` and `samples`: verdicts, exit codes, sentences, one JSON object, Ctrl-C."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specworkbench.cli.equivalence_words import sentence
from specworkbench.equivalence.judge import FAMILY
from specworkbench.equivalence.others import Samples, write_samples
from tests.experiments.toys import strict_json, write_prompts

LEVEL = ("--level", "0.01")


@pytest.fixture(scope="module")
def toy(toys, tmp_path_factory):
    """Arguments that name the toy target, its draft and prompts for it."""
    prompts = write_prompts(tmp_path_factory.mktemp("prompts") / "prompts.jsonl")
    return (
        "--target", toys / "target", "--proposer", f"draft_model:{toys / 'draft'}", "--prompts", prompts,
        "--temperature", 1.5, "--length", 32, "--gamma", 3, *LEVEL,
    )  # fmt: skip


def test_a_right_rule_is_not_rejected_and_one_json_object_says_all(command, toy):
    code, out, err = command("equivalence", *toy, "--tokens", 600, "--json")
    found = strict_json(out)
    assert code == 0 and "Traceback" not in err
    assert found["verdict"] == "not rejected" and found["lossless"] and not found["interrupted"]
    assert found["sentence"].startswith("not rejected on 600 tokens: a total variation of 0.")
    assert found["rows"]["kind"] == "rounding" and 0 <= found["law_bound"]["upper"] < 0.01
    for part, tokens in {"subject": 600, "null": 150}.items():
        assert found[part]["tokens"] == tokens and not found[part]["rejected"]
        assert set(found[part]["tests"]) == set(FAMILY)
        assert 0 < found[part]["detectable_tv"] < 1 and found[part]["tv"]["cells"] < found[part]["tv_bound"]["cells"]
    positive = found["positive"]
    assert positive["rejected"] and set(positive["rejected_by"]) <= set(FAMILY)
    assert positive["e_value"] > found["subject"]["e_value"]
    assert {"slot", "guided", "tokens", "log_e", "best"} == set(positive["slots"][0])
    implementation = found["implementation"]
    assert implementation["settings"]["gamma"] == 3 and implementation["proposer"].startswith("draft_model:")


def test_a_lossy_rule_is_rejected_as_it_must_be(command, toy):
    code, out, _ = command("equivalence", *toy, "--tokens", 600, "--rule", "typical")
    assert code == 1
    assert "the output does not follow the target, as it must be, for the rule is lossy" in out
    assert "strongest alternative" in out and "after a guess" in out
    assert max(map(len, out.splitlines()[:12])) <= 140


def test_what_was_not_seen_is_undecided_and_says_what_to_do(command, toy):
    code, out, _ = command("equivalence", *toy, "--tokens", 40)
    assert code == 1 and "undecided: the positive control" in out and "judge more tokens" in out


def test_nothing_proposed_is_undecided_and_says_what_to_do(command, toy):
    code, out, _ = command("equivalence", *toy, "--tokens", 40, "--proposer", "ngram,min_n=30,max_n=30")
    assert code == 1 and "undecided: nothing was proposed in 40 tokens" in out


def test_greedy_decoding_is_compared_with_plain_decoding(command, toy):
    code, out, _ = command("equivalence", *toy, "--tokens", 100, "--temperature", 0)
    assert code == 0
    assert "greedy outputs of 3 prompts: 3 are those of plain decoding" in out
    assert "each is the target's best, so that fewer than 0.045 of all tokens are not" in out


def test_a_comparison_joins_the_verdict(command, toy):
    code, out, _ = command("equivalence", *toy, "--tokens", 40, "--against", "plain", "--outputs", 20, "--json")
    found = strict_json(out)["against"]
    assert code == 1 and found["verdict"] == "undecided" and "draw more outputs" in found["sentence"]
    assert found["engine"] == {"engine": "plain decoding"} and found["null"]["n_a"] == 40
    code, out, _ = command("equivalence", *toy, "--tokens", 40, "--against", "transformers", "--outputs", 20,
                           "--temperature", 0)  # fmt: skip
    assert code == 0 and "not rejected: 0 of 2 greedy outputs part from those of transformers" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tokens", 0], "tokens is 0"),
        (["--level", 2], "level is 2"),
        (["--margin", 0], "margin is 0"),
        (["--jobs", 0], "jobs is 0"),
        (["--length", 0], "--length is 0"),
        (["--gamma", 0], "gamma is 0"),
        (["--proposer", "nobody"], "there is no proposer 'nobody'"),
        (["--rule", "nothing"], "there is no rule 'nothing'"),
        (["--rule", "greedy"], "only at temperature 0"),
        (["--prompts", "/nowhere.jsonl"], "no prompt file"),
        (["--dtype", "float7"], "the dtype 'float7' is not known"),
        (["--against", "vllm"], "--against is 'vllm'"),
        (["--against", "plain", "--outputs", 0], "outputs is 0"),
        (["--against", "plain", "--level", 1e-9], "level is 1e-09"),
        (["--against", "transformers", "--proposer", "suffix"], "compare it with plain decoding"),
        (["--against", "transformers", "--outputs", 4], "4 outputs are too few"),
        (["--engine-defaults"], "add --against transformers"),
    ],
)
def test_bad_options_are_refused_before_anything_is_decoded(refused, toy, monkeypatch, arguments, says):
    monkeypatch.setattr("specworkbench.experiments.equivalence.check", lambda *_, **__: pytest.fail("decoded"))
    assert says in refused("equivalence", *toy, *arguments)


def running(group):
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            found += [path] if int(of) == group and state != "Z" else []
    return found


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_reports_what_was_judged_and_leaves_no_process(toy, tmp_path, jobs):
    """In a session of its own, so that the signal reaches the whole group as it does on a terminal."""
    arguments = [*map(str, toy), "--tokens", "1000000", "--jobs", str(jobs), "--json"]
    with open(tmp_path / "err", "w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "specworkbench", "equivalence", *arguments], stdout=subprocess.PIPE, stderr=err,
            text=True, start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + 120
        while "positive control" not in (tmp_path / "err").read_text() and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    said = (tmp_path / "err").read_text()
    assert process.returncode == 130, said
    found = strict_json(out)
    assert found["interrupted"] and found["subject"] is None and found["rows"]["kind"] == "rounding"
    assert 0 < found["positive"]["tokens"] < 1_000_000
    assert "stopped before the implementation was judged" in found["sentence"]
    assert "specworkbench: interrupted" in said and "Traceback" not in said
    until = time.monotonic() + 20
    while running(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not running(process.pid)


def write(path, outputs):
    write_samples(path, Samples([tuple(output) for output in outputs], ["one"] * len(outputs)))
    return path


@pytest.fixture
def three(tmp_path):
    """Two samples of the same distribution, and one of another."""
    same = [write(tmp_path / f"{name}.jsonl", [[i % 3, i % 2] for i in range(300)]) for name in "ab"]
    return *same, write(tmp_path / "c.jsonl", [[i % 3, 0] for i in range(300)])


def test_samples_of_one_distribution_do_not_differ(command, three):
    code, out, _ = command("samples", three[0], three[1])
    assert code == 0 and "no difference found in 300 and 300 outputs of 1 prompt" in out
    assert all(test in out for test in ("mmd hamming", "mmd prefix", "prefixes"))


def test_samples_of_two_distributions_differ(command, three):
    code, out, _ = command("samples", three[0], three[2], "--json")
    found = strict_json(out)
    assert code == 1 and found["differ"] and found["n_a"] == 300 and found["sentence"].startswith("the two samples")
    assert command("samples", three[0], three[2])[0] == 1


def test_bad_samples_are_refused(refused, three, tmp_path):
    assert "cannot read samples" in refused("samples", three[0], tmp_path / "none.jsonl")
    assert "--level is 1e-07" in refused("samples", three[0], three[1], "--level", 1e-7)
    (tmp_path / "bad.jsonl").write_text("{}\n")
    assert "line 1" in refused("samples", three[0], tmp_path / "bad.jsonl")


def test_a_check_that_was_stopped_early_says_so():
    from specworkbench.experiments.equivalence import Check

    assert sentence(Check(None, True)) == (
        "undecided: stopped before the implementation was judged (nothing had been)"
    )
