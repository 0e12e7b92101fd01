"""`check`: every contract with its result; 0, 1 and 2 as exit codes."""

import json
import zipfile

import pytest

from specworkbench.trace import contracts, load_trace, save_trace
from specworkbench.trace.schema import SCHEMA_VERSION
from tests.experiments.toys import strict_json
from tests.trace.toy import toy_trace


@pytest.fixture
def path(tmp_path):
    return save_trace(toy_trace(), tmp_path / "t.trace")


@pytest.fixture
def broken(tmp_path):
    trace = toy_trace()
    first = trace.positions.index[trace.positions["outcome"] == "accepted"][3]
    trace.positions.loc[first, "u"] = 0.999999
    trace.positions.loc[first, "accept_prob"] = 0.5
    return save_trace(trace, tmp_path / "broken.trace")


def rewritten(path, **changes):
    """The trace file with some members replaced."""
    copy = path.with_name("rewritten.trace")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name.partition(".")[0], old.read(name)))
    return copy


def test_a_sound_trace_passes_and_every_contract_is_named(command, path):
    code, out, _ = command("check", path)
    assert code == 0 and all(contract.name in out for contract in contracts.REGISTRY)
    assert f"{len(contracts.REGISTRY)} contracts, 0 broken" in out


def test_json_lists_every_contract(command, path):
    code, out, _ = command("check", path, "--json")
    printed = strict_json(out)
    assert code == 0 and printed["passed"]
    assert [contract["name"] for contract in printed["contracts"]] == [c.name for c in contracts.REGISTRY]
    assert {contract["status"] for contract in printed["contracts"]} <= {"pass", "not recorded"}


def test_a_broken_contract_is_told_with_its_first_round_and_exits_with_1(command, broken):
    code, out, _ = command("check", broken, "--json")
    failed = {c["name"]: c for c in strict_json(out)["contracts"] if c["status"] == "fail"}
    assert code == 1 and "decision" in failed
    assert failed["decision"]["sequence"] is not None and failed["decision"]["round"] is not None
    code, out, _ = command("check", broken)
    assert code == 1 and "fail" in out and failed["decision"]["detail"][:20] in out


def test_a_token_drawn_from_another_row_is_told_by_draws_which_needs_whole_rows(command, tmp_path):
    trace = toy_trace(capture="full")
    first = trace.positions.index[trace.positions["outcome"] == "bonus"][2]
    u = trace.positions.loc[first, "u_draw"]
    trace.positions.loc[first, "u_draw"] = (u + 0.5) % 1
    where = [int(trace.positions.loc[first, name]) for name in ("sequence", "round")]
    code, out, _ = command("check", save_trace(trace, tmp_path / "t.trace"), "--json")
    (found,) = [contract for contract in strict_json(out)["contracts"] if contract["status"] == "fail"]
    assert code == 1 and found["name"] == "draws" and [found["sequence"], found["round"]] == where
    code, out, _ = command("check", tmp_path / "t.trace")
    (line,) = [line for line in out.splitlines() if " draws " in line]
    assert code == 1 and all(str(said) in line for said in ("fail", *where))
    code, out, _ = command("check", save_trace(toy_trace(), tmp_path / "small.trace"))
    assert code == 0 and any(" draws " in line and "not recorded" in line for line in out.splitlines())


def test_a_file_that_is_not_there_is_refused(refused, tmp_path):
    assert "there is no trace" in refused("check", tmp_path / "nothing.trace")


def test_a_folder_is_refused(refused, tmp_path):
    assert "is a folder" in refused("check", tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_trace_is_refused(refused, path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "cut short" in refused("check", path)


@pytest.mark.parametrize("content", [b"", b"text", b'{"rows": []}'])
def test_a_foreign_file_is_refused(refused, path, content):
    path.write_bytes(content)
    assert "no trace file" in refused("check", path)


def test_a_foreign_zip_is_refused(refused, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert "no trace" in refused("check", tmp_path / "t.zip")


def test_a_trace_of_a_newer_schema_is_refused(refused, path):
    newer = json.dumps(toy_trace().manifest | {"schema_version": SCHEMA_VERSION + 1})
    assert "newer" in refused("check", rewritten(path, manifest=newer))


def test_a_damaged_table_is_refused(refused, path):
    assert "damaged" in refused("check", rewritten(path, rounds=b"PAR1 and nothing more"))


def test_an_almost_empty_manifest_fails_contracts_without_a_traceback(command, path):
    code, out, _ = command("check", rewritten(path, manifest='{"schema_version": 1}'), "--json")
    assert code == 1 and not strict_json(out)["passed"]


@pytest.fixture(scope="module")
def decoded(toys, tmp_path_factory):
    """A trace of the toy models, and the folder of their target."""
    from specworkbench.engine import decode, load_pair, make_proposer

    target, draft = load_pair(str(toys / "target"), str(toys / "draft"), device="cpu")
    trace = decode(
        "abcabc", target=target, proposer=make_proposer("draft_model", target=target, draft=draft), max_new_tokens=30
    ).trace
    return save_trace(trace, tmp_path_factory.mktemp("traces") / "t.trace"), toys / "target"


def test_fresh_adds_a_line_on_the_rows_of_the_target_that_the_trace_names(command, decoded):
    path, _ = decoded
    code, out, _ = command("check", path, "--fresh", "--rounds", 4)
    assert code == 0 and "fresh rows" in out and f"{len(contracts.REGISTRY) + 1} contracts, 0 broken" in out
    code, out, _ = command("check", path, "--fresh", "--rounds", 4, "--json")
    found = strict_json(out)["contracts"][-1]
    assert (code, found["name"], found["status"]) == (0, "fresh rows", "pass") and "4 of" in found["detail"]


def test_fresh_fails_on_a_p_that_the_target_does_not_give(command, decoded, tmp_path):
    trace = load_trace(decoded[0])
    trace.positions.loc[7, "p"] += 0.01
    altered = save_trace(trace, tmp_path / "altered.trace")
    code, out, _ = command("check", altered, "--fresh", "--rounds", 0, "--json")
    found = strict_json(out)["contracts"][-1]
    assert (code, found["status"], found["round"]) == (1, "fail", trace.positions["round"][7])


def test_fresh_fails_against_another_model(command, decoded):
    path, target = decoded
    code, out, _ = command("check", path, "--fresh", "--target", target.with_name("draft"), "--json")
    assert code == 1 and strict_json(out)["contracts"][-1]["status"] == "fail"


def test_fresh_refuses_what_it_cannot_replay(refused, decoded, path):
    recorded, target = decoded
    assert "26" in refused("check", recorded, "--fresh", "--target", target.with_name("other"))
    assert "cannot load" in refused("check", path, "--fresh", "--target", "no-such-model")
    assert "at least" in refused("check", recorded, "--fresh", "--rounds", -1)
    assert "--fresh" in refused("check", recorded, "--target", target)


def test_fresh_needs_a_target_that_somebody_names(refused, path):
    nameless = rewritten(path, manifest='{"schema_version": 1}')
    assert "names no target" in refused("check", nameless, "--fresh")
