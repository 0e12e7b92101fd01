"""The shipped results: complete, small, without traces, and judged anew to the findings that lie beside them."""

import json

import pytest

from specworkbench.experiments.claims import CLAIMS, evidence_in, judge, studies_for
from specworkbench.experiments.study.store import Store
from specworkbench.paths import claims_dir

MOST_BYTES = 1_400_000


@pytest.fixture(scope="module")
def folder():
    return claims_dir() / "embedded"


@pytest.fixture(scope="module")
def evidence(folder):
    return evidence_in(folder)


def test_every_study_is_there_as_it_would_be_run_today_and_whole(folder, evidence):
    studies = studies_for()
    assert set(evidence) == set(studies)
    assert all(found is not None and found.complete for found in evidence.values())
    for name, study in studies.items():
        assert Store(folder / name).study() == study, name


def test_they_are_judged_to_the_findings_beside_them(folder, evidence):
    kept = {found["claim"]: found for found in json.loads((folder / "findings.json").read_text())["findings"]}
    found = {finding.claim: finding for finding in judge(evidence)}
    assert set(found) == set(kept) == {claim.name for claim in CLAIMS}
    for name, finding in found.items():
        assert finding.verdict == kept[name]["verdict"], name
        assert finding.effect == pytest.approx(kept[name]["effect"]), name
        assert [part.name for part in finding.parts] == [part["name"] for part in kept[name]["parts"]]


def test_they_are_small_and_hold_no_trace(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert {path.suffix for path in files if not path.name.startswith(".")} == {".json", ".parquet"}


def test_where_they_were_measured_is_written_down(evidence):
    for found in evidence.values():
        assert found.cells[["cpu", "threads", "torch", "host"]].notna().all(axis=None)
