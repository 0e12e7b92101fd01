"""`claims`: real small studies of the embedded target are run, judged, taken up again, and judged anew."""

import json
from importlib import import_module

import pytest

from specworkbench.cli.screen import StopOnInterrupt
from specworkbench.experiments import claims
from specworkbench.experiments.study import Study

module = import_module("specworkbench.cli.claims")  # the package has the command under this name
SMALL = {"per_bucket": 2, "max_new_tokens": 32, "temperature": 0, "ignore_eos": True}
STUDIES = {
    "proposers": Study(("ngram", "draft_model:embedded/draft-s"), **SMALL),
    "long-outputs": Study(("ngram",), **SMALL | {"max_new_tokens": 128}),
}


@pytest.fixture
def small(monkeypatch):
    """Two of the studies, made small."""
    monkeypatch.setattr(claims, "studies_for", lambda *arguments: STUDIES)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a finished run."""
    from specworkbench.cli import run

    folder = tmp_path_factory.mktemp("claims") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "studies_for", lambda *arguments: STUDIES)
        assert run(["claims", "--only", "code-over-prose,late-positions", "--out", str(folder)]) == 0
    return folder


def test_a_run_keeps_what_judging_needs_and_no_traces(done):
    assert {path.name for path in done.iterdir()} == {"findings.json", "proposers", "long-outputs"}
    assert (done / "proposers/prompts.parquet").exists() and not list(done.rglob("*.trace"))
    found = json.loads((done / "findings.json").read_text())["findings"]
    parts = {finding["claim"]: finding["parts"] for finding in found}
    assert len(parts) == 12 and parts["late-positions"] and parts["code-over-prose"] and not parts["gamma-3-to-5"]


def test_it_is_judged_anew_without_decoding_and_comes_out_the_same(done, command, monkeypatch):
    monkeypatch.setattr(module, "run_studies", lambda *arguments: pytest.fail("nothing is to be decoded"))
    code, out, _ = command("claims", "--from", done, "--json")
    assert code == 0
    assert json.loads(out) == json.loads((done / "findings.json").read_text())


def test_what_has_no_study_there_is_not_measured_yet(done, command):
    code, out, _ = command("claims", "--from", done)
    assert code == 0 and out.count("not measured yet") == 5
    assert "The study gamma has not been run" in " ".join(out.split())


def test_the_same_command_decodes_nothing_again(done, command, small):
    before = {path: path.stat().st_mtime_ns for path in done.rglob("row.json")}
    code, out, err = command("claims", "--only", "code-over-prose,late-positions", "--out", done)
    assert code == 0 and "0 of 2 cells" in err and "0 of 1 cells" in err
    assert {path: path.stat().st_mtime_ns for path in done.rglob("row.json")} == before
    assert "Acceptance falls late in long outputs." in " ".join(out.split())


def test_an_interrupt_keeps_what_is_there_judges_it_and_goes_on_later(tmp_path, command, small, monkeypatch):
    class AfterOneCell(StopOnInterrupt):
        asked = property(lambda self: bool(list(tmp_path.rglob("row.json"))), lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(module, "StopOnInterrupt", AfterOneCell)
        code, out, err = command("claims", "--only", "code-over-prose,late-positions", "--out", tmp_path, "--json")
    assert code == 130 and "goes on where it was" in err and len(list(tmp_path.rglob("row.json"))) == 1
    verdicts = {finding["claim"]: finding["verdict"] for finding in json.loads(out)["findings"]}
    assert verdicts["late-positions"] == "not measured yet" and verdicts["code-over-prose"] != "not measured yet"
    first = next(iter(tmp_path.rglob("row.json"))).stat().st_mtime_ns
    code, out, err = command("claims", "--only", "code-over-prose,late-positions", "--out", tmp_path)
    assert code == 0 and "1 of 2 cells" in err and "not measured yet" not in out
    assert first in {path.stat().st_mtime_ns for path in tmp_path.rglob("row.json")}


def test_traces_stay_where_they_are_asked_for(tmp_path, command, monkeypatch):
    study = {"long-outputs": Study(("ngram",), **SMALL | {"per_bucket": 1})}
    monkeypatch.setattr(claims, "studies_for", lambda *arguments: study)
    assert command("claims", "--only", "late-positions", "--out", tmp_path, "--traces")[0] == 0
    assert len(list(tmp_path.rglob("*.trace"))) == 2


def test_a_study_that_cannot_be_is_told_and_the_others_are_run(tmp_path, command, monkeypatch):
    impossible = Study(("draft_model:nowhere/at/all",), **SMALL)
    monkeypatch.setattr(claims, "studies_for", lambda *arguments: STUDIES | {"proposers": impossible})
    code, out, err = command("claims", "--only", "code-over-prose,late-positions", "--out", tmp_path)
    assert code == 0 and "proposers, is left out" in err and "nowhere/at/all" in err
    assert out.count("not measured yet") == 1


def test_the_claims_are_listed(command):
    code, out, _ = command("claims", "--list")
    assert code == 0 and all(claim.name in out for claim in claims.CLAIMS)
    code, out, _ = command("claims", "--list", "--json", "--only", "retrieval")
    assert [claim["name"] for claim in json.loads(out)["claims"]] == ["retrieval"]


def test_bad_input_is_a_sentence(tmp_path, refused):
    assert "'nonsense'" in refused("claims", "--only", "nonsense")
    assert "there is no folder" in refused("claims", "--from", tmp_path / "absent")
    assert "drafts of its own" in refused("claims", "--draft", "embedded/draft-s", "--out", tmp_path)
