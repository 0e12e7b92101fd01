"""`StudyBrowser`: the cells of any study over its axes, as a figure and a table, each cell's trace one click away."""

from __future__ import annotations

from collections.abc import Callable, Collection
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.files import write_whole
from specworkbench.experiments.study.table import cell_names
from specworkbench.plots import study_cells
from specworkbench.trace import load_trace
from specworkbench.widgets.explorer import Explorer, sentence_html, sentence_of
from specworkbench.widgets.page_repairs import PageRepairs, live_figure, live_text
from specworkbench.widgets.page_style import PRINT
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.study_controls import STYLE, WIDE, WRAP, StudyControls
from specworkbench.widgets.study_tables import (
    SIDES,
    OpenStudy,
    View,
    code_with_traces,
    columns,
    count_sentence,
    open_study,
    overlaid,
    remarks_html,
    table_html,
    trace_file,
    within,
)

EMPTY = (
    "No study is open. Type the folder of one and press Open. specworkbench study example > grid.toml, then "
    "specworkbench study run grid.toml --out DIR, make one."
)
NOTHING_DONE = "No cell of this study is finished yet. Press Refresh once there is one."
NOTHING_LEFT = "The filters leave no cell: choose at least one value of every axis, or press All cells."
NO_CELL = ("click a point, or choose a cell here", "")
_LOOK = f"<style>{PRINT}" + """
.swb-study { color: var(--jp-ui-font-color1, inherit); line-height: 1.4; }
.swb-study-table { max-height: 22em; overflow: auto; border: 1px solid var(--jp-border-color2, #8c8c8c66); }
.swb-study-table:focus-visible { outline-offset: -3px !important; }
.swb-study-table table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.swb-study-table th { position: sticky; top: 0; background: var(--jp-layout-color2, Canvas); }
.swb-study-table th, .swb-study-table td { padding: 0.2em 0.9em 0.2em 0.4em; white-space: nowrap; }
.swb-study-table td small { opacity: 0.8; }
.swb-study-table .swb-study-text { text-align: left; }
.swb-study-table .swb-study-number { text-align: right; }
.swb-study pre { white-space: pre-wrap; user-select: all; }
</style>"""


class StudyBrowser(widgets.VBox):
    """A study's finished cells: choose x, figure, colour and panels, filter by every axis that varies, open a trace.

    folder: of any study; without one the panel asks for it. choices: what it opens with, x, measure, color and facet,
    by the names of `experiments.study` (`AXES`, `MEASURES`), "" for no colour or no panels. `opened` is the study as it
    was read, `view` what is drawn, `cells` the cells shown; `show` and `keep` choose as the controls do. A cell that is
    clicked opens its trace, in `selection` too: give one that other panels share. What cannot be read, drawn or opened
    is told as a sentence.

    >>> from specworkbench.paths import claims_dir
    >>> browser = StudyBrowser(claims_dir() / "embedded" / "temperature", measure="alpha_overlap")
    >>> browser.view.x, browser.view.color
    ('temperature', 'proposer')
    >>> browser.keep(temperature=[0.0, 1.0])
    >>> sorted(set(browser.cells["temperature"]))
    [0.0, 1.0]
    """

    def __init__(self, folder: str | PathLike | None = None, *, selection: Selection | None = None, **choices: str):
        self.opened: OpenStudy | None = None
        self.cells = pd.DataFrame()
        self._quiet, self._asked, self._trace_path = False, "", None
        self.selection = selection or Selection()
        self._make_controls()
        self.message, self.cell_message, self.table, self.remarks = (widgets.HTML() for _ in range(4))
        self.status = live_text()
        self.figure, self.explorer = live_figure(), Explorer()
        self.figure_box = widgets.VBox(layout={"overflow": "auto"})
        self.body = widgets.VBox([
            self.controls, self.figure_box, self.cell_row, self.cell_message, self.explorer, self.table_row, self.table,
        ])  # fmt: skip
        look = widgets.HTML(_LOOK)
        parts = [look, self.folder_row, self.message, self.status, self.body, self.remarks]
        super().__init__([*parts, PageRepairs("Study browser")])
        self._connect()
        self.read(folder, **choices)

    def _make_controls(self) -> None:
        self.folder = widgets.Text(
            description="study in", placeholder="folder of a study", continuous_update=False, layout=WIDE, style=STYLE
        )
        self.open_button = widgets.Button(description="Open", icon="folder-open", button_style="primary")
        self.refresh_button = widgets.Button(description="Refresh", icon="refresh", tooltip="read the folder again")
        self.folder_row = widgets.Box([self.folder, self.open_button, self.refresh_button], layout=WRAP)
        self.controls = StudyControls(self._draw)
        self.cell = widgets.Dropdown(description="cell", options=[NO_CELL], layout={"width": "min(60em, 98%)"})
        self.side = widgets.Dropdown(description="trace", options=SIDES, layout={"width": "16em"})
        self.cell_row = widgets.Box([self.cell, self.side], layout=WRAP)
        self.sort = widgets.Dropdown(description="sort by", layout=WIDE, style=STYLE)
        self.falling = widgets.Checkbox(False, description="falling", indent=False, layout={"width": "6em"})
        self.csv_name = widgets.Text("study.csv", description="file", layout={"width": "min(20em, 98%)"})
        self.csv_button = widgets.Button(description="Save CSV", icon="save", tooltip="all columns of the cells shown")
        self.table_row = widgets.Box([self.sort, self.falling, self.csv_name, self.csv_button], layout=WRAP)

    def _connect(self) -> None:
        self.folder.observe(lambda change: self._typed(change["new"]), "value")
        self.open_button.on_click(lambda _button: self.read(self.folder.value))
        self.refresh_button.on_click(lambda _button: self.refresh())
        self.csv_button.on_click(lambda _button: self.save_csv())
        for control in (self.sort, self.falling):
            control.observe(self._on_change(self._tabulate), "value")
        for control in (self.cell, self.side):
            control.observe(self._on_change(self._open_trace), "value")

    # ---------------------------------------------------------------- what may be asked of it

    @property
    def view(self) -> View:
        """What is drawn."""
        return self.controls.view

    def read(self, folder: str | PathLike | None, **choices: str) -> None:
        """Show the study of a folder; None asks for one. choices: x, measure, color, facet, as it opens with them."""
        self._asked = "" if folder is None else str(folder).strip()
        self.folder.value = self._asked
        self.say("")
        self.opened = None
        try:
            if self._asked:
                self.opened = open_study(Path(self._asked).expanduser())
                self.controls.offer(self.opened.finished)
                if choices:
                    self.controls.show(**choices)
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        self._draw()

    def refresh(self) -> None:
        """Read the folder again, which may hold more cells by now; what was chosen stays as far as it can."""
        if self.opened is None:
            self.read(self.folder.value)
            return
        self.say("")
        try:
            self.opened = open_study(self.opened.folder)
            self.controls.offer(self.opened.finished, again=True)
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        self._draw()

    def show(self, **choices: str) -> None:
        """Draw something else: x, measure, color, facet, by name. Raises `InputError` for what these cells lack."""
        self.controls.show(**choices)

    def keep(self, **values: Collection[Any]) -> None:
        """Only cells with one of these values on each of these axes; without any, all cells.

        Raises `InputError` for an axis that does not vary, or a value that no finished cell has.
        """
        self.controls.keep(**values)

    def open_cell(self, id: str, side: str = SIDES[0]) -> None:
        """Show the trace of a cell that is shown, speculative or plain; "" for none."""
        self.side.value, self.cell.value = side, id

    def save_csv(self) -> None:
        """Write all columns of the cells shown under the name in the field; an existing file is not overwritten."""
        path = Path(self.csv_name.value).expanduser()
        try:
            if path.exists():
                raise InputError(f"there is a file {str(path)!r} already; choose another name")
            write_whole(path, self.cells.to_csv(index=False), "the table")
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        else:
            self.say("")
            self.status.value = _words(f"{len(self.cells)} cells saved as {path.resolve()}.")

    def say(self, text: str) -> None:
        """A sentence that stands out; empty for none."""
        self.message.value = sentence_html(text)

    def to_html(self) -> str:
        """The cells as a table, and the tokens of an opened trace, as HTML that needs neither scripts nor a kernel."""
        shown = [_LOOK, self.message.value, self.status.value]
        if len(self.cells):
            shown.append(self.table.value)
        if self._trace_path is not None:
            shown.append(self.explorer.to_html())
        return "".join([*shown, self.remarks.value])

    def _repr_html_(self) -> str:
        return self.to_html()

    # ---------------------------------------------------------------- display

    def _on_change(self, do: Callable[[], None]) -> Callable[[Any], None]:
        """What to do when a person moves a control, and not when its options are exchanged."""
        return lambda _change: None if self._quiet else do()

    def _typed(self, folder: str) -> None:
        if folder.strip() != self._asked:
            self.read(folder)

    def _draw(self) -> None:
        """Everything, as the controls stand."""
        opened, view = self.opened, self.view
        finished = pd.DataFrame() if opened is None else opened.finished
        self.body.layout.display = "none" if finished.empty else None
        self.refresh_button.disabled = opened is None
        self.remarks.value = "" if opened is None else remarks_html(opened.remarks)
        if finished.empty:
            self.cells = finished
            nothing = EMPTY if opened is None else f"{NOTHING_DONE} {count_sentence(opened, finished)}"
            self.status.value = _words(nothing)
            return
        self.cells = within(finished, self.controls.kept)
        self.status.value = _words(f"{count_sentence(opened, self.cells, view.measure)}{overlaid(self.cells, view)}")
        self._plot(view)
        names = dict(zip(opened.finished["id"], cell_names(opened.finished), strict=True))
        self._offer(self.cell, [NO_CELL, *((names[id], id) for id in self.cells["id"])])
        self._offer(self.sort, [("the study's order", ""), *((name.replace("_", " "), name) for name in self._columns)])
        self._tabulate()
        self._open_trace()

    @property
    def _columns(self) -> list[str]:
        return columns(self.opened.finished, self.view.measure)

    def _plot(self, view: View) -> None:
        points = self.cells[self.cells[view.measure].notna()]
        if points.empty:
            words = NOTHING_LEFT if self.cells.empty else "None of these cells has this figure: choose another one."
            self.figure_box.children = [widgets.HTML(_words(words))]
            return
        drawn = study_cells(points, x=view.x, y=view.measure, color=view.color or None, facet=view.facet or None)
        before, self.figure = self.figure, live_figure(drawn)  # one that is changed keeps the titles of old panels
        for series in self.figure.data:
            series.on_click(self._clicked)
        self.figure_box.children = [self.figure]
        before.close()

    def _tabulate(self) -> None:
        self.table.value = _block(table_html(self.cells, self._columns, self.sort.value or "", self.falling.value))

    def _clicked(self, series: Any, points: Any, _selector: Any) -> None:
        """A point of the figure: its cell is chosen."""
        if points.point_inds:
            self.cell.value = series.ids[points.point_inds[0]]

    def _open_trace(self) -> None:
        """The trace of the chosen cell in the explorer, or a sentence that says how to have one."""
        id, path, said = self.cell.value or "", None, ""
        try:
            path = trace_file(self.opened, id, self.side.value) if id else None
            if path != self._trace_path:
                trace = None if path is None else load_trace(path)
                self.explorer.show(trace)
                self.selection.show(trace)
        except (InputError, OSError) as error:
            path, said = None, sentence_html(sentence_of(error)) + self._remedy(id)
        self._trace_path, self.cell_message.value = path, said
        self.explorer.layout.display = "none" if path is None else None

    def _remedy(self, id: str) -> str:
        """How to have the traces of a cell that was kept without."""
        finished = self.opened.finished
        (cell,) = finished[finished["id"] == id].to_dict("records")
        return _block(f"<pre>{escape(code_with_traces(self.opened.study, cell))}</pre>")

    def _offer(self, control: widgets.Dropdown, options: list[tuple[str, str]]) -> None:
        """Other options, with the same value where it is among them, else the first."""
        self._quiet, kept = True, control.value
        control.options = options
        control.value = kept if kept in [value for _, value in options] else options[0][1]
        self._quiet = False


def _block(html: str) -> str:
    return f'<div class="swb-study">{html}</div>'


def _words(text: str) -> str:
    return _block(escape(text))
