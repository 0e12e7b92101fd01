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


def distribution(
    table: pd.DataFrame,
    *,
    title: str = "Target p against draft q",
    template: str | go.layout.Template | None = None,
    height: int = 400,
) -> go.Figure:
    """Bars of p and q side by side, their overlap hatched across both; the residual on an axis of its own below.

    table: one row a token, the last one for all others together, so that p and q each sum to 1: `label` (text), `p`,
    `q`, `overlap` = min(p, q) and `residual` = max(p - q, 0) (probabilities; null where nothing was proposed), `mark`
    (an outcome, for the tokens the round is about; empty otherwise).

    >>> import pandas as pd
    >>> table = pd.DataFrame({"label": ["a", "b", "all others"], "p": [0.5, 0.3, 0.2], "q": [0.2, 0.6, 0.2]})
    >>> table["overlap"], table["residual"] = table[["p", "q"]].min(axis=1), (table["p"] - table["q"]).clip(lower=0)
    >>> [series.name for series in distribution(table.assign(mark=["", "rejected", ""])).data]
    ['residual max(p − q, 0)', 'p (target)', 'q (draft)', 'overlap min(p, q)']
    """
    columns_of("distribution", table, COLUMNS)
    proposed = bool(table["q"].notna().any())
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.7, 0.3]) if proposed else go.Figure()
    p_width = _HALF if proposed else 2 * _HALF
    bars = [_bar(table, "p", "p (target)", palette.TARGET, -_HALF, p_width)]
    if proposed:
        overlap = palette.translucent(palette.OVERLAP, 0.3)
        bars.append(_bar(table, "q", "q (draft)", palette.DRAFT, 0.0, _HALF))
        bars.append(_bar(table, "overlap", "overlap min(p, q)", overlap, -_HALF, 2 * _HALF, frame=palette.OVERLAP))
        residual = _bar(table, "residual", "residual max(p − q, 0)", palette.RESIDUAL, -_HALF, 2 * _HALF)
        figure.add_trace(residual.update(legendrank=1001), row=2, col=1)  # the last in the legend, as it is the lowest
        figure.update_yaxes(title_text="max(p − q, 0)", row=2)
    figure.add_traces(bars)
    ticks = [_tick(label, mark) for label, mark in zip(table["label"], table["mark"], strict=True)]
    figure.update_xaxes(tickvals=list(range(len(table))), ticktext=ticks, range=[-0.6, len(table) - 0.4], tickangle=-40)
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(yaxis_title_text="probability", barmode="overlay", hovermode="x unified", margin_b=80)
    return finish(figure, title, template, height)


def _bar(
    table: pd.DataFrame, column: str, name: str, color: str, offset: float, width: float, frame: str = ""
) -> go.Bar:
    """Bars of one column at whole numbers; with a frame of that colour they are hatched, to lie over others."""
    marker: dict[str, Any] = {"color": color, "line": {"width": 0}}
    if frame:
        hatch = {"shape": "/", "size": 7, "solidity": 0.25, "fgcolor": "white", "fgopacity": 0.8}
        marker |= {"line": {"width": 2, "color": frame}, "pattern": hatch}
    return go.Bar(
        x=list(range(len(table))),
        y=[float(value) for value in table[column]],
        customdata=[literal(label) for label in table["label"]],
        name=name,
        offset=offset,
        width=width,
        marker=marker,
        hovertemplate="%{customdata}: %{y:.4f}",
    )


def _tick(label: str, mark: str) -> str:
    """A label short enough for the axis; bold and with its glyph for a token that the round is about."""
    label = literal(label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…")
    return f"<b>{palette.OUTCOMES[mark].glyph} {label}</b>" if mark else label
