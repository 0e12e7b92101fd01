"""Study folders for the browser: finished cells with and without traces, a failed one, one that is not done."""

from __future__ import annotations

from pathlib import Path

from specworkbench.experiments.study import Study
from specworkbench.experiments.study.store import Store
from specworkbench.experiments.study.task import task_of
from specworkbench.experiments.study.worker import failure
from specworkbench.trace import trace_bytes
from tests.experiments.study.cases import toy_row
from tests.widgets.traces import spoken

STUDY = Study(proposer=["suffix", "ngram"], gamma=[4, 2, 1], temperature=[0, 1], per_bucket=1, ignore_eos=True)
"""Twelve cells."""


def write_study(folder: Path, study: Study = STUDY, *, done: int | None = None, failed: int = -1, traced: int = -1):
    """The folder with the first `done` cells, speedups 1, 2, 3, ... `failed`, `traced`: numbers of cells."""
    store = Store(folder)
    store.begin(study, {}, [])
    for number, cell in enumerate(study.cells()[:done]):
        task = task_of(study, cell)
        row = failure(task, "no <room>").row if number == failed else toy_row(task, speedup=number + 1.0)
        row.get("figures", {}).update({"c": None} if number == 0 else {})
        content = trace_bytes(spoken(per_bucket=1))
        store.write(row, {f"{side}.trace": content for side in ("plain", "speculative") if number == traced})
    return folder


def ids(study: Study = STUDY) -> list[str]:
    """Of the cells, in their order."""
    return [task_of(study, cell).id for cell in study.cells()]
