"""A study's figure over one axis: a point a cell, colours for a second axis, panels for a third."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specworkbench.plots import palette
from specworkbench.plots.style import INK, TOP, columns_of, error_bars, finish, literal

_SPREAD = 0.5
_PANELS_A_ROW = 3
_DASHES = ("solid", "dash", "dot")
_PANEL_TITLE = 24
"""Pixels of a panel's own title, which a legend of many rows leaves free by an unseen border."""


def study_grid(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    low: str | None = None,
    high: str | None = None,
    color: str | None = None,
    facet: str | None = None,
    y_title: str | None = None,
    reference: float | None = None,
    title: str | None = None,
    template: str | go.layout.Template | None = None,
    height: int | None = None,
) -> go.Figure:
    """Points of column y over column x, with error bars from low to high where these columns are given.

    table: one row a cell. x may hold numbers or text; color: a series each value, told apart by colour and symbol;
    facet: a panel each value, all with the same axes. Points of a series are joined by a line where x holds numbers and
    no two share one. Columns used where there are any: cell, which cell a point is, in words; id, kept as the point's
    id. reference: a horizontal line. Rows without y are left out.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"gamma": [2, 4, 2, 4], "proposer": ["eagle", "eagle", "ngram", "ngram"]})
    >>> table["speedup"] = [1.4, 1.5, 1.2, 1.3]
    >>> [series.name for series in study_grid(table, x="gamma", y="speedup", color="proposer", reference=1.0).data]
    ['eagle', 'ngram']
    """
    columns_of("study_grid", table, tuple(name for name in (x, y, low, high, color, facet) if name))
    table = table[table[y].notna()]
    panels = _values(table, facet)
    columns = min(len(panels), _PANELS_A_ROW)
    rows = math.ceil(len(panels) / columns)
    titles = [f"{literal(facet)} {literal(_word(value))}" for value in panels] if facet else None
    figure = make_subplots(
        rows=rows, cols=columns, shared_xaxes="all", shared_yaxes="all", subplot_titles=titles,
        vertical_spacing=0.3 / rows, horizontal_spacing=0.08 / columns,
    )  # fmt: skip
    series = _values(table, color)
    places = _places(table[x])
    for panel, value in enumerate(panels):
        inside = table if facet is None else table[table[facet] == value]
        at = {"row": panel // columns + 1, "col": panel % columns + 1}
        for number, name in enumerate(series):
            points = inside if color is None else inside[inside[color] == name]
            if len(points):
                offset = _SPREAD * ((number + 0.5) / len(series) - 0.5) if places else 0.0
                drawn = _series(points, x, y, low, high, places, offset, number)
                drawn.update(name=literal(_word(name)), legendgroup=str(number), showlegend=_first(figure, str(number)))
                figure.add_trace(drawn, **at)
        figure.update_xaxes(title_text=literal(x.replace("_", " ")), showticklabels=True, **at)
    if places:
        ticks = {"tickvals": list(places.values()), "ticktext": [literal(str(place)) for place in places]}
        figure.update_xaxes(**ticks, range=[-0.5, len(places) - 0.5], zeroline=False, automargin=True)
    if reference is not None:
        figure.add_hline(y=reference, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_yaxes(range=_range(table, [name for name in (y, low, high) if name], reference))
    for row in range(1, rows + 1):
        figure.update_yaxes(title_text=literal(y_title or y), row=row, col=1)
    said = title or f"{y_title or y} by {x.replace('_', ' ')}"
    finish(figure, literal(said), template, height or 120 + 340 * rows)
    if color is not None:
        heading = literal(color.replace("_", " ")) + "&nbsp;&nbsp;"  # plotly leaves no room between it and the series
        figure.update_layout(legend_title={"text": heading, "font": {"size": 13}})
    figure.update_layout(showlegend=color is not None)
    if facet:
        border = {"borderwidth": _PANEL_TITLE // 2, "bordercolor": "rgba(0, 0, 0, 0)", "bgcolor": "rgba(0, 0, 0, 0)"}
        figure.update_layout(legend=border, margin_t=(figure.layout.margin.t or TOP) + _PANEL_TITLE)
    return figure


def _values(table: pd.DataFrame, column: str | None) -> list:
    return [""] if column is None else list(dict.fromkeys(table[column]))


def _range(table: pd.DataFrame, columns: list[str], reference: float | None) -> list[float] | None:
    """From 0, or below it, to a little above everything drawn; None without anything."""
    values = [*table[columns].to_numpy(dtype=float).ravel(), *([] if reference is None else [reference])]
    finite = [value for value in values if math.isfinite(value)]
    return [1.06 * min(0.0, *finite), 1.06 * max(0.0, *finite)] if any(finite) else None


def _word(value: object) -> str:
    """A value of an axis as it is written: a whole number without its fraction."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _first(figure: go.Figure, group: str) -> bool:
    """Whether a series is drawn for the first time: it is in the legend once."""
    return all(trace.legendgroup != group for trace in figure.data)


def _places(values: pd.Series) -> dict[str, int]:
    """Where each text stands; none where the values are numbers."""
    if pd.api.types.is_numeric_dtype(values):
        return {}
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _series(
    points: pd.DataFrame, x: str, y: str, low: str | None, high: str | None, places: dict[str, int], offset: float,
    number: int,
) -> go.Scatter:  # fmt: skip
    points = points if places else points.sort_values(x, kind="stable")
    joined = not places and not points[x].duplicated().any()
    hue, dash = palette.SERIES[number % len(palette.SERIES)], _DASHES[number // len(palette.SERIES) % len(_DASHES)]
    words = points["cell"] if "cell" in points else pd.Series("", index=points.index)
    return go.Scatter(
        x=[places[value] + offset for value in points[x]] if places else points[x].tolist(),
        y=points[y].tolist(),
        error_y=error_bars(points, y, low, high) if low and high else None,
        mode="lines+markers" if joined else "markers",
        line={"color": hue, "width": 2, "dash": dash},
        marker={"color": hue, "size": 10, "symbol": palette.SYMBOLS[number % len(palette.SYMBOLS)]},
        ids=[str(id) for id in points["id"]] if "id" in points else None,
        customdata=[literal(str(text)) for text in words],
        hovertemplate="%{y:.3f}<br>%{customdata}<extra></extra>",
    )
