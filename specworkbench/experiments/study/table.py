"""A study read back: one row a cell, or the median over cells. No torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.grid import AXES, counted, named
from specworkbench.experiments.study.store import Store

ENDS = [end for pair in INTERVALS.values() for end in pair]
FIGURES = (*MEASURES, *ENDS)
MACHINE = ("host", "device", "cpu", "threads", "specworkbench", "torch")
"""What of a cell's environment stands in its row."""


def read_study(folder: str | os.PathLike) -> pd.DataFrame:
    """The settled cells of a study, in the order of its axes: one row a cell.

    Columns: id, status (finished or failed), the axes (`AXES`), the figures (`MEASURES`) with the ends of their 95 %
    intervals (`INTERVALS`), lossless, seconds (that decoding it took), error (why it failed), and where it was decoded
    (`MACHINE`). Figures that were not measured are NaN. Raises `InputError` where there is no study.

    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.experiments.study import Study, run_study
    >>> study = Study(proposer="ngram", gamma=2, bucket="code", per_bucket=1, max_new_tokens=4)
    >>> with TemporaryDirectory() as folder:
    ...     _ = run_study(study, folder)
    ...     read_study(folder)[["proposer", "gamma", "status", "tokens"]]
      proposer  gamma    status  tokens
    0    ngram      2  finished     4.0
    """
    store = Store(Path(folder))
    study = store.study()
    table = pd.DataFrame(
        [_flat(row) for row in store.rows().values()],
        columns=["id", "status", *AXES, *FIGURES, "lossless", "seconds", "error", *MACHINE],
    )
    table = table.astype({name: float for name in (*FIGURES, "seconds")})
    places = {name: {value: number for number, value in enumerate(values)} for name, values in study.axes().items()}
    return table.sort_values(list(AXES), key=lambda column: column.map(places[column.name])).reset_index(drop=True)


def medians(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The medians over all finished cells that agree in the axes `by`: those axes, `cells`, and the figures.

    The ends of an interval are the lowest and the highest of these cells: no interval of the median, but how far they
    lie apart. Raises `InputError` for what is no axis.

    >>> from specworkbench.experiments.study import Study
    >>> cells = Study(proposer=["ngram", "suffix"], gamma=[2, 4]).cells()
    >>> table = pd.DataFrame(map(vars, cells)).assign(status="finished", **dict.fromkeys(FIGURES, 1.0))
    >>> table["speedup_measured"] = [1.2, 1.4, 1.6, 1.8]
    >>> medians(table, by=["proposer"])[["proposer", "cells", "speedup_measured", "speedup_low", "speedup_high"]]
      proposer  cells  speedup_measured  speedup_low  speedup_high
    0    ngram      2               1.3          1.2           1.4
    1   suffix      2               1.7          1.6           1.8
    """
    check_axes(by)
    finished = table[table["status"] == "finished"]
    groups = finished.groupby(list(by), sort=False, dropna=False)
    found = groups[list(MEASURES)].median()
    for name, (low, high) in INTERVALS.items():
        found[low], found[high] = groups[name].min(), groups[name].max()
    found.insert(0, "cells", groups.size())
    return found.reset_index()


def check_axes(names: Sequence[str]) -> None:
    """Raises `InputError` for a name that is no axis."""
    for name in names:
        if name not in AXES:
            raise InputError(f"there is no axis {name!r}; there are {', '.join(AXES)}")


def varying(table: pd.DataFrame) -> list[str]:
    """The axes of more than one value in a table that has them."""
    return [name for name in AXES if name in table and table[name].nunique() > 1]


def cell_names(table: pd.DataFrame) -> list[str]:
    """Each cell in words: its value on every axis that varies in the table."""
    axes = varying(table)
    return [named({name: row[name] for name in axes}) or "the only cell" for row in table.to_dict("records")]


def remarks(folder: str | os.PathLike, table: pd.DataFrame) -> list[str]:
    """What must be known beside the figures, in sentences: cells that failed, are not done yet or cannot be, and
    whether they were decoded in different places. table: as `read_study` gives it."""
    store, finished = Store(Path(folder)), table[table["status"] == "finished"]
    left_out = store.description()["left_out"]
    said = [
        f"failed: {name}: {error}"
        for name, status, error in zip(cell_names(table), table["status"], table["error"], strict=True)
        if status == "failed"
    ]
    planned = len(store.study().cells()) - len(left_out)
    if len(table) < planned:
        said.append(f"{len(table)} of {planned} cells are done; specworkbench study run goes on with the others")
    for why in dict.fromkeys(entry["why"] for entry in left_out):
        said.append(f"left out, {counted(sum(entry['why'] == why for entry in left_out), 'cell')}: {why}")
    differ = [name for name in MACHINE if finished[name].nunique() > 1]
    if differ:
        said.append(
            f"the cells were measured in different places; they differ in {', '.join(differ)}: compare times with care"
        )
    return said


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    environment = row.get("environment", {})
    rest = {name: row.get(name) for name in ("id", "status", "lossless", "seconds", "error")}
    return rest | row["axes"] | row.get("figures", {}) | {name: environment.get(name) for name in MACHINE}
