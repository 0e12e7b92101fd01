"""What the study browser shows of a study: the choices that its cells allow, the cells chosen, sentences on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.grid import AXES, Study, counted, shown
from specworkbench.experiments.study.store import Store
from specworkbench.experiments.study.table import cell_names, read_study, remarks, varying

SIDES = ("speculative", "plain")
"""The two traces of a cell."""

COLUMNS = ("alpha_overlap", "block_efficiency", "c", "verify_cost", "speedup_measured")
"""Figures in the table beside the one that is drawn."""

MOST_ROWS = 500


@dataclass(frozen=True)
class OpenStudy:
    """A study's folder as it was read. table: of all settled cells; planned: cells that can be decoded in all; remarks:
    what must be known beside the figures."""

    folder: Path
    study: Study
    table: pd.DataFrame
    planned: int
    remarks: tuple[str, ...]

    @property
    def finished(self) -> pd.DataFrame:
        """The cells that have figures."""
        return self.table[self.table["status"] == "finished"]


@dataclass(frozen=True)
class View:
    """What is drawn: x, an axis or a figure; measure, a figure; color and facet, axes, or "" for none."""

    x: str
    measure: str
    color: str = ""
    facet: str = ""


def open_study(folder: Path) -> OpenStudy:
    """Read a study's folder. Raises `InputError` where there is none, or it is damaged."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; name one that specworkbench study run --out made")
    store = Store(folder)
    try:
        description, table = store.description(), read_study(folder)
        planned = len(store.study().cells()) - len(description["left_out"])
        return OpenStudy(folder, store.study(), table, planned, tuple(remarks(folder, table)))
    except (KeyError, TypeError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"the study in {folder} is damaged ({said}); decode it again into a new folder") from error


def offered(finished: pd.DataFrame) -> dict[str, list[str]]:
    """What each field of a `View` may be, for these finished cells; color and facet may also be "", for none."""
    axes = varying(finished)
    measures = [name for name in MEASURES if finished[name].notna().any()]
    return {"x": [*(axes or ["gamma"]), *measures], "measure": measures, "color": ["", *axes], "facet": ["", *axes]}


def first_view(finished: pd.DataFrame) -> View:
    """The view a study opens with: x is the axis of most values (numbers before text), color the next, facet the third.

    measure: the measured speedup, where there is one.
    """
    choices = offered(finished)
    sizes = {name: (finished[name].nunique(), AXES[name] is not str) for name in varying(finished)}
    ranked = sorted(sizes, key=sizes.get, reverse=True)
    measures = choices["measure"]
    measure = "speedup_measured" if "speedup_measured" in measures else next(iter(measures), "")
    x, color, facet = [*(ranked or ["gamma"]), "", ""][:3]
    return View(x, measure, color, facet)


def chosen_view(view: View, finished: pd.DataFrame, **choices: str | None) -> View:
    """The view with other choices, None for as it is. Raises `InputError` for one that these cells do not allow."""
    allowed, given = offered(finished), {name: value for name, value in choices.items() if value is not None}
    for name, value in given.items():
        if value not in allowed[name]:
            there = ", ".join(filter(None, allowed[name])) or "none"
            raise InputError(f"{name} is {value!r}, and the finished cells offer {there}")
    return replace(view, **given)


def within(finished: pd.DataFrame, kept: Mapping[str, Collection[Any]]) -> pd.DataFrame:
    """The cells whose value on each of these axes is among those kept."""
    mask = pd.Series(True, index=finished.index)
    for axis, values in kept.items():
        mask &= finished[axis].isin(list(values))
    return finished[mask]


def count_sentence(opened: OpenStudy, cells: pd.DataFrame, measure: str = "") -> str:
    """How many cells are shown, and why the others are not."""
    settled = opened.table["status"].value_counts()
    finished, failed = int(settled.get("finished", 0)), int(settled.get("failed", 0))
    hidden = finished - len(cells)
    said = [f"{counted(len(cells), 'cell')} shown", f"{hidden} hidden by the filters", f"{failed} failed"]
    if waiting := opened.planned - finished - failed:
        said.append(f"{waiting} not decoded yet")
    if measure and (without := int(cells[measure].isna().sum())):
        said.append(f"{without} of those shown without this figure, and so without a point")
    return ", ".join(said) + "."


def overlaid(cells: pd.DataFrame, view: View) -> str:
    """A sentence on the axes that vary and are not told apart by the view; nothing where all are."""
    others = [name.replace("_", " ") for name in varying(cells) if name not in (view.x, view.color, view.facet)]
    return f" Points beside each other differ in {', '.join(others)}: hovering tells." if others else ""


def remarks_html(said: Collection[str]) -> str:
    """The remarks as a list; nothing for none."""
    if not said:
        return ""
    lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in said)
    return f'<ul class="swb-study-remarks" aria-label="remarks on the study">{lines}</ul>'


def columns(finished: pd.DataFrame, measure: str) -> list[str]:
    """The columns of the table: the axes that vary, the figure that is drawn, and the usual ones that were measured."""
    usual = [name for name in COLUMNS if name != measure and finished[name].notna().any()]
    return [*varying(finished), measure, *usual]


def table_html(cells: pd.DataFrame, names: list[str], sort: str = "", descending: bool = False) -> str:
    """A row a cell, figures with their interval; by `sort`, else in the study's order. At most `MOST_ROWS`."""
    if sort:
        cells = cells.sort_values(sort, ascending=not descending, kind="stable")
    heads = "".join(_head(name, name == sort, descending) for name in names)
    body = "".join(f"<tr>{''.join(_cell(name, row) for name in names)}</tr>" for row in _rows(cells))
    more = len(cells) - MOST_ROWS
    note = f"<p>The first {MOST_ROWS} of {len(cells)} cells; the CSV file has all.</p>" if more > 0 else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="swb-study-table" role="region" aria-label="Cells shown" tabindex="0">{table}</div>{note}'


def trace_file(opened: OpenStudy, id: str, side: str = SIDES[0]) -> Path:
    """The trace of a cell. Raises `InputError` for no cell of the study, and where its traces were not kept: the
    sentence says how they are."""
    found = opened.finished[opened.finished["id"] == id]
    if found.empty:
        raise InputError(f"there is no finished cell {id!r} in {opened.folder}")
    path = Store(opened.folder).trace_path(id, side)
    if not path.exists():
        cell = cell_names(opened.finished)[list(opened.finished["id"]).index(id)]
        raise InputError(f"the cell {cell} was kept without its traces; decode it again with traces, as written below")
    return path


def code_with_traces(study: Study, cell: Mapping[str, Any]) -> str:
    """Python that decodes one cell of a study again and keeps its traces. cell: its row."""
    given = {name: cell[name] for name in AXES} | study.settings() | {"traces": True}
    defaults = {field.name: field.default for field in fields(Study)}
    said = [
        f"{name}={value!r}" for name, value in given.items()
        if defaults[name] is MISSING or (value not in defaults[name] if name in AXES else value != defaults[name])
    ]  # fmt: skip
    return (
        "from specworkbench.experiments.study import Study, run_study\n"
        f'run_study(Study({", ".join(said)}), "with-traces")\n'
        'StudyBrowser("with-traces")'
    )


def _rows(cells: pd.DataFrame) -> list[dict[str, Any]]:
    return cells.head(MOST_ROWS).to_dict("records")


def _head(name: str, sorted_by: bool, descending: bool) -> str:
    kind = "swb-study-text" if AXES.get(name) is str else "swb-study-number"
    order = f' aria-sort="{"descending" if descending else "ascending"}"' if sorted_by else ""
    arrow = (" ↓" if descending else " ↑") if sorted_by else ""
    title = escape(MEASURES.get(name, name))
    return f'<th scope="col" class="{kind}" title="{title}"{order}>{escape(name.replace("_", " "))}{arrow}</th>'


def _cell(name: str, row: Mapping[str, Any]) -> str:
    if name in AXES:
        kind = "swb-study-text" if AXES[name] is str else "swb-study-number"
        return f'<td class="{kind}">{escape(shown(row[name]))}</td>'
    low, high = (row[end] for end in INTERVALS[name]) if name in INTERVALS else (None, None)
    ends = f" <small>{_figure(name, low)}–{_figure(name, high)}</small>"
    interval = "" if pd.isna([row[name], low, high]).any() else ends
    return f'<td align="right" class="swb-study-number">{_figure(name, row[name])}{interval}</td>'


def _figure(name: str, value: float) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.0f}" if name == "tokens" else f"{value:.2f}"
