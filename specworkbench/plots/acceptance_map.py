"""Acceptance as a map: position in the round over the place in the output, a panel a bucket."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, finish, literal

WANTED = ("bucket", "position", "output_index", "output_index_end", "examined", "accepted", "acceptance", "low", "high")
_PANELS_A_ROW = 2
_WRITTEN = 24
"""So many columns side by side, at most, have their numbers in the cells; of more, hovering tells them."""


def acceptance_map(
    table: pd.DataFrame,
    *,
    few: int = 10,
    title: str = "Acceptance by position in the round and place in the output",
    template: str | go.layout.Template | None = None,
    height: int | None = None,
) -> go.Figure:
    """A cell's colour is its acceptance, from 0 to 1; in it stand acceptance and the number of examined positions.

    table: one row a cell in which anything was examined, as `analysis.acceptance_map` gives it: `bucket`, `position`,
    `output_index` up to `output_index_end`, `examined`, `accepted`, `acceptance` with its interval `low`, `high`. Cells
    of fewer than `few` examined positions are grey, which the title says. In every panel the last trace is the mark of
    a selected token, which stands nowhere yet.

    >>> from specworkbench import analysis
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> [panel.text for panel in acceptance_map(analysis.acceptance_map(trace)).layout.annotations]
    ['code', 'prose', 'structured']
    """
    columns_of("acceptance_map", table, WANTED)
    buckets = list(dict.fromkeys(table["bucket"])) or [""]
    columns = min(len(buckets), _PANELS_A_ROW)
    rows = math.ceil(len(buckets) / columns)
    positions = max(1, int(table["position"].max()) if len(table) else 1)
    side = 96 + 34 * max(positions, 3)
    figure = make_subplots(
        rows=rows, cols=columns, shared_xaxes="all", shared_yaxes="all",
        subplot_titles=[literal(str(bucket)) for bucket in buckets],
        vertical_spacing=84 / (side * rows) if rows > 1 else 0, horizontal_spacing=0.05,
    )  # fmt: skip
    written = columns * table["output_index"].nunique() <= _WRITTEN
    for panel, bucket in enumerate(buckets):
        inside = table[table["bucket"] == bucket]
        at = {"row": panel // columns + 1, "col": panel % columns + 1}
        enough = inside["examined"] >= few
        figure.add_trace(_cells(inside[enough], table, written, coloraxis="coloraxis", textfont={"size": 10}), **at)
        grey = palette.translucent(palette.OKABE_ITO["grey"], 0.16)
        plain = {"colorscale": [(0, grey), (1, grey)], "showscale": False, "textfont": {"size": 10, "color": INK}}
        figure.add_trace(_cells(inside[~enough], table, written, **plain), **at)
        figure.add_trace(_mark(), **at)
        figure.update_xaxes(title_text="output index", showticklabels=True, **at)
    figure.update_yaxes(dtick=1, range=[0.5, positions + 0.5], showgrid=False, zeroline=False)
    figure.update_xaxes(zeroline=False)
    for row in range(1, rows + 1):
        figure.update_yaxes(title_text="position in the round", row=row, col=1)
    colorbar = {"title": {"text": "acceptance"}, "thickness": 14, "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    shades = {"colorscale": palette.SEQUENTIAL, "cmin": 0, "cmax": 1, "colorbar": colorbar}
    figure.update_layout(coloraxis=shades, showlegend=False)
    small = f"in a cell: acceptance, and how many positions were examined; grey: fewer than {few} of them"
    return finish(figure, f"{title}<br><sup>{small}</sup>", template, height or 110 + side * rows)


def describe(cell: pd.Series) -> str:
    """A cell in words."""
    where = f"position {cell['position']}, output index {cell['output_index']} to {cell['output_index_end'] - 1}"
    share = f"{cell['acceptance']:.2f} ({cell['low']:.2f} to {cell['high']:.2f})"
    return f"{where}: {share}, {cell['accepted']} of {cell['examined']} examined accepted"


def _cells(cells: pd.DataFrame, table: pd.DataFrame, written: bool, **look: object) -> go.Heatmap:
    """These cells on the whole table's grid."""
    edges = sorted({*table["output_index"], *table["output_index_end"]})
    starts, positions = edges[:-1], range(1, int(table["position"].max()) + 1) if len(table) else []
    by_place = {(cell["position"], cell["output_index"]): cell for _, cell in cells.iterrows()}
    rows = [[by_place.get((position, start)) for start in starts] for position in positions]
    return go.Heatmap(
        x=edges,
        y=list(positions),
        z=[[None if cell is None else cell["acceptance"] for cell in row] for row in rows],
        zmin=0,
        zmax=1,
        text=[["" if cell is None else _inside(cell) for cell in row] for row in rows],
        texttemplate="%{text}" if written else None,
        hovertext=[["" if cell is None else literal(describe(cell)) for cell in row] for row in rows],
        hoverinfo="text",
        hoverongaps=False,
        xgap=2,
        ygap=2,
        **look,
    )


def _inside(cell: pd.Series) -> str:
    return f"{cell['acceptance']:.2f}<br>{cell['examined']}"


def _mark() -> go.Scatter:
    look = {"symbol": "circle", "size": 9, "color": "#fff", "line": {"color": "#111", "width": 2}}
    return go.Scatter(x=[], y=[], mode="markers", marker=look, hoverinfo="skip", name="selected token")
