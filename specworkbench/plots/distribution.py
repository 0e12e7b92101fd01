"""p against q at one position, their overlap, and the residual below."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specworkbench.plots import palette
from specworkbench.plots.style import columns_of, finish, literal

COLUMNS = ("label", "p", "q", "overlap", "residual", "mark")
_HALF = 0.4
_LONGEST = 14
_UPPER_ALONE, _UPPER, _LOWER = [0.0, 1.0], [0.38, 1.0], [0.0, 0.27]


def distribution(
    table: pd.DataFrame | None = None,
    *,
    title: str = "Target p against draft q",
    template: str | go.layout.Template | None = None,
    height: int = 400,
) -> go.Figure:
    """Bars of p and q side by side, their overlap hatched across both; the residual on an axis of its own below.

    table: one row a token, the last one for all others together, so that p and q each sum to 1: `label` (text), `p`,
    `q`, `overlap` = min(p, q) and `residual` = max(p - q, 0) (probabilities; null where nothing was proposed), `mark`
    (an outcome, for the tokens the round is about; empty otherwise). None gives empty axes, for `redraw`.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True)
    figure.add_traces(
        [
            _bar("p (target)", palette.TARGET, -_HALF, _HALF),
            _bar("q (draft)", palette.DRAFT, 0.0, _HALF),
            _bar("overlap min(p, q)", palette.translucent(palette.OVERLAP, 0.3), -_HALF, 2 * _HALF, palette.OVERLAP),
            _bar("residual max(p − q, 0)", palette.RESIDUAL, -_HALF, 2 * _HALF),
        ],
        rows=[1, 1, 1, 2],
        cols=1,
    )
    figure.update_xaxes(tickmode="array", tickangle=-40)
    figure.update_yaxes(title_text="probability", rangemode="tozero", row=1)
    figure.update_yaxes(title_text="max(p − q, 0)", rangemode="tozero", domain=_LOWER, row=2)
    figure.update_layout(barmode="overlay", hovermode="x unified", margin_b=80, autosize=True)
    finish(figure, title, template, height)
    if table is not None:
        redraw(figure, table, title)
    return figure


def redraw(figure: go.Figure, table: pd.DataFrame, title: str) -> None:
    """Show another table in a figure of `distribution`: only what changes is set, which takes milliseconds."""
    columns_of("distribution", table, COLUMNS)
    proposed = bool(table["q"].notna().any())
    labels = [literal(text) for text in table["label"]]
    ticks = [_tick(label, mark) for label, mark in zip(table["label"], table["mark"], strict=True)]
    with figure.batch_update():
        figure.layout.title.text = title
        for trace, name in zip(figure.data, ("p", "q", "overlap", "residual"), strict=True):
            shown = proposed or name == "p"
            trace.x = list(range(len(table))) if shown else []
            trace.y = [float(value) for value in table[name]] if shown else []
            trace.customdata = labels if shown else []
            trace.showlegend = shown
        for axis in (figure.layout.xaxis, figure.layout.xaxis2):
            axis.tickvals, axis.ticktext = list(range(len(table))), ticks
            axis.range = [-0.6, len(table) - 0.4]
        # without a proposal there is no residual: one panel is left
        figure.layout.yaxis.domain = _UPPER if proposed else _UPPER_ALONE
        figure.layout.yaxis2.visible = figure.layout.xaxis2.visible = proposed
        figure.layout.xaxis.showticklabels = not proposed


def _bar(name: str, color: str, offset: float, width: float, frame: str = "") -> go.Bar:
    """An empty trace of bars at whole numbers; with a frame of that colour they are hatched, to lie over others."""
    marker: dict[str, Any] = {"color": color, "line": {"width": 0}}
    if frame:
        hatch = {"shape": "/", "size": 7, "solidity": 0.25, "fgcolor": "white", "fgopacity": 0.8}
        marker |= {"line": {"width": 2, "color": frame}, "pattern": hatch}
    return go.Bar(name=name, offset=offset, width=width, marker=marker, hovertemplate="%{customdata}: %{y:.4f}")


def _tick(label: str, mark: str) -> str:
    """A label short enough for the axis; bold and with its glyph for a token that the round is about."""
    label = literal(label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…")
    return f"<b>{palette.OUTCOMES[mark].glyph} {label}</b>" if mark else label
