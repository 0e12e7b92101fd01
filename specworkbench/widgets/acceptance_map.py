"""`AcceptanceMap`: where in the round and in the output guesses are accepted; a click on a cell selects its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from os import PathLike
from typing import Any

import ipywidgets as widgets
import pandas as pd
import plotly.graph_objects as go
import traitlets

from specworkbench import plots
from specworkbench.analysis.acceptance import output_index
from specworkbench.analysis.acceptance_map import ALL, CELL, NO_BUCKET, acceptance_map, bins_for, examined_cells
from specworkbench.errors import InputError
from specworkbench.experiments.traces import traces_of
from specworkbench.plots.acceptance_map import describe
from specworkbench.trace import Trace
from specworkbench.widgets.explorer import sentence_html, sentence_of
from specworkbench.widgets.map_table import table_html
from specworkbench.widgets.page_repairs import PageRepairs, live_figure, live_text
from specworkbench.widgets.selection import Selection

EMPTY = (
    "No trace yet: give a trace, a list of them or a folder, AcceptanceMap(trace), or select one in a panel that "
    "shares the selection."
)
NOTHING_EXAMINED = "Nothing was examined in this trace: decode with a proposer, and its guesses appear here."
FEW = 10
MOST_BINS = 32
EACH = "each"
"""What the chooser of buckets calls a panel for every one of them."""

_WIDE, _STYLE = {"width": "min(24em, 98%)"}, {"description_width": "5em"}

Source = Trace | str | PathLike | Iterable[Trace | str | PathLike]
"""A trace, a file, a folder of files `*.trace`, or several of these, of one configuration."""


def acceptance_map_figure(
    source: Source | pd.DataFrame, *, bins: int | None = None, by_bucket: bool = True, **options: Any
) -> go.Figure:
    """The map as a plain figure. source: traces, or a table of `analysis.acceptance_map`; options as in `plots`.

    bins: of the output index; when not given, as many as leave cells enough that was examined. Raises `InputError` for
    what is no trace, and for traces of several configurations.

    >>> from specworkbench.paths import traces_dir
    >>> figure = acceptance_map_figure(traces_dir() / "quickstart.trace", by_bucket=False)
    >>> [panel.text for panel in figure.layout.annotations]
    ['all']
    """
    if not isinstance(source, pd.DataFrame):
        traces = traces_of(source)
        bins = bins_for(traces, options.get("few", FEW)) if bins is None else bins
        source = acceptance_map(traces, bins=bins, by_bucket=by_bucket)
    return plots.acceptance_map(source, **options)


class AcceptanceMap(widgets.VBox):
    """Acceptance by position in the round and output index, of traces of one configuration, by bucket.

    source: see `acceptance_map_figure`; without one the map shows the trace of its `selection`, which may be shared
    with other panels. A click on a cell, or `pick`, selects a token that was examined there; once more, the next one.
    `bins` of the output index (at first as many as leave cells enough that was examined), `bucket` ("each", "all", or
    one) and `few`, below which a cell is grey, may be set and observed. What cannot be shown is told as a sentence.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> acceptance = AcceptanceMap(load_trace(traces_dir() / "quickstart.trace"), bins=4)
    >>> acceptance.pick("code", 2, 0)
    >>> acceptance.selection.position
    2
    """

    bins = traitlets.Int(8)
    bucket = traitlets.Unicode(EACH)
    few = traitlets.Int(FEW)

    def __init__(self, source: Source | None = None, *, selection: Selection | None = None, **traits: Any):
        self.selection = Selection() if selection is None else selection
        self.traces: list[Trace] = []
        self.table = acceptance_map([])
        self._cells, self._picked, self._turn, self._offering = examined_cells([]), None, -1, False
        self._follows, self._fits = source is None, "bins" not in traits
        self._make_controls()
        parts = [self.message, self.controls, self.figure_box, self.cell_row, PageRepairs("Acceptance map")]
        super().__init__(parts, **traits)
        traitlets.link((self, "bins"), (self.bins_slider, "value"))
        self.bucket_choice.observe(self._chosen, "value")
        self.cell_choice.observe(self._cell_chosen, "value")
        self.next_button.on_click(lambda _button: self.pick(*self._picked))
        self.selection.observe(self._trace_selected, "trace")
        self.selection.observe(lambda _change: self._mark(), ["trace", "sequence", "selected"])
        self.observe(lambda _change: self._refresh(), ["bins", "bucket", "few"])
        self.show(self.selection.trace if source is None else source)

    def _make_controls(self) -> None:
        self.message, self.cell_line = widgets.HTML(), live_text()
        self.bucket_choice = widgets.Dropdown(description="bucket", layout=_WIDE, style=_STYLE)
        self.bins_slider = widgets.IntSlider(
            8, 1, MOST_BINS, description="columns", tooltip="bins of the output index", layout=_WIDE, style=_STYLE,
            continuous_update=False,
        )  # fmt: skip
        self.controls = widgets.Box([self.bucket_choice, self.bins_slider], layout={"flex_flow": "row wrap"})
        self.figure: go.FigureWidget | None = None
        self.figure_box = widgets.VBox([], layout={"overflow": "auto hidden"})
        self.cell_choice = widgets.Dropdown(description="cell", layout={"width": "min(34em, 98%)"}, style=_STYLE)
        self.next_button = widgets.Button(
            description="next token in it", tooltip="select another token that was examined in this cell", disabled=True
        )
        row = [self.cell_choice, self.next_button, self.cell_line]
        self.cell_row = widgets.Box(row, layout={"flex_flow": "row wrap", "align_items": "center"})

    @traitlets.validate("bins")
    def _are_bins(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= MOST_BINS:
            raise InputError(f"bins is {proposal['value']}; it must be from 1 to {MOST_BINS}")
        return proposal["value"]

    def say(self, text: str) -> None:
        """A sentence that stands out; empty for none."""
        self.message.value = sentence_html(text)

    def show(self, source: Source | None) -> None:
        """Show other traces; what cannot be read is told, and none is shown then."""
        self.say("")
        try:
            self.traces = [] if source is None else traces_of(source)
        except (InputError, OSError) as error:
            self.traces = []
            self.say(sentence_of(error))
        self._offer_buckets()
        bins = bins_for(self.traces, self.few) if self._fits and self.traces else self.bins
        if bins == self.bins:
            self._refresh()
        else:
            self.bins = bins

    def pick(self, bucket: str, position: int, index: int) -> None:
        """Select a token examined in the cell whose bin begins at this output index; picked again, the next one.

        Raises `InputError` for a cell in which nothing was examined.
        """
        cell, found = (bucket, int(position), int(index)), self._cells
        for name, value in zip(CELL, cell, strict=True):
            found = found[found[name] == value]
        if found.empty:
            raise InputError(f"nothing was examined at position {position} of {bucket!r} from output index {index} on")
        self._turn = (self._turn + 1) % len(found) if cell == self._picked else 0
        self._picked = cell
        token = found.iloc[self._turn]
        trace, sequence = self.traces[token["trace"]], int(token["sequence"])
        if self.selection.trace is not trace or self.selection.sequence != sequence:
            self.selection.show(trace, sequence, selected=-1)
        self.selection.at(int(token["round"]), int(token["position"]))
        self._tell_cell(len(found))

    def _trace_selected(self, _change: Any) -> None:
        if self._follows:
            self.show(self.selection.trace)

    def _offer_buckets(self) -> None:
        buckets = list(dict.fromkeys(examined_cells(self.traces)["bucket"]))
        if self.bucket not in (EACH, ALL, *buckets):
            self.bucket = EACH
        self._offering = True
        options = [("each, side by side", EACH), ("all together", ALL)]
        self.bucket_choice.options = [*options, *((bucket, bucket) for bucket in buckets)]
        self._offering = False
        self.bucket_choice.layout.display = None if len(buckets) > 1 else "none"

    def _refresh(self) -> None:
        """Count and draw anew."""
        how = {"bins": self.bins, "by_bucket": self.bucket != ALL}
        self.table, self._cells = acceptance_map(self.traces, **how), examined_cells(self.traces, **how)
        if self.bucket not in (EACH, ALL):
            self.table = self.table[self.table["bucket"] == self.bucket].reset_index(drop=True)
        self._picked, self._turn = None, -1
        self._draw()
        self._offer_cells()
        self._offering = True
        self.bucket_choice.value = self.bucket
        self._offering = False
        shown = None if len(self.table) else "none"
        self.controls.layout.display = self.figure_box.layout.display = self.cell_row.layout.display = shown
        if not len(self.table) and not self.message.value:
            self.message.value = f"<p><em>{escape(NOTHING_EXAMINED if self.traces else EMPTY)}</em></p>"

    def _draw(self) -> None:
        before = self.figure
        self.figure = live_figure(plots.acceptance_map(self.table, few=self.few))
        for panel, bucket in enumerate(self._panels):
            for cells in self.figure.data[3 * panel : 3 * panel + 2]:
                cells.on_click(lambda _trace, points, _state, bucket=bucket: self._clicked(bucket, points))
        self._mark()
        self._renew()
        self.figure_box.children = [self.figure]
        if before is not None:
            before.close()

    def _renew(self) -> None:
        """Bring what a page is opened with up to date, which plotly does only when asked."""
        self.figure._repr_mimebundle_()

    @property
    def _panels(self) -> list[str]:
        return list(dict.fromkeys(self.table["bucket"]))

    def _clicked(self, bucket: str, points: Any) -> None:
        if not points.xs:  # plotly tells every trace of a click on any of them
            return
        x, position = points.xs[0], round(points.ys[0])
        row = self.table[(self.table["output_index"] <= x) & (x < self.table["output_index_end"])]
        self.pick(bucket, position, row["output_index"].iloc[0])

    def _mark(self) -> None:
        """Put the mark where the selected token lies, out of all panels where it lies in none."""
        where, x, y = None, 0.0, 0.0
        number = next((i for i, trace in enumerate(self.traces) if trace is self.selection.trace), None)
        if number is not None and self.selection.row is not None:
            rows = self.selection.rows.iloc[[self.selection.selected]]
            bucket = self.traces[number].sequences[self.selection.sequence].get("bucket") or NO_BUCKET
            where = ALL if self.bucket == ALL else bucket
            x, y = float(output_index(self.traces[number], rows)[0]) + 0.5, self.selection.position - 0.36
        with self.figure.batch_update():
            for panel, bucket in enumerate(self._panels):
                mark, here = self.figure.data[3 * panel + 2], bucket == where
                mark.x, mark.y = ([x], [y]) if here else ([], [])

    def _offer_cells(self) -> None:
        """The cells to choose from, for those who do not click."""
        named = [(_named(row), tuple(row[name] for name in CELL)) for _, row in self.table.iterrows()]
        self._offering = True
        self.cell_choice.options = [("choose a cell", ""), *named]
        self.cell_choice.value = ""
        self._offering = False
        self.next_button.disabled, self.cell_line.value = True, ""

    def _tell_cell(self, size: int) -> None:
        self._offering = True
        self.cell_choice.value = self._picked
        self._offering = False
        self.next_button.disabled = size < 2
        self.cell_line.value = f"token {self._turn + 1} of {size} in this cell is selected"

    def _chosen(self, change: Any) -> None:
        if not self._offering and change["new"] is not None:
            self.bucket = change["new"]

    def _cell_chosen(self, change: Any) -> None:
        if not self._offering and change["new"]:
            self.pick(*change["new"])

    def to_html(self) -> str:
        """The map as tables that need neither scripts nor a kernel, for exports."""
        return self.message.value + table_html(self.table, self.few)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        self._renew()
        return super()._repr_mimebundle_(**options)

    def _repr_html_(self) -> str:
        return self.to_html()


def _named(row: pd.Series) -> str:
    return f"{row['bucket']}, {describe(row)}"
