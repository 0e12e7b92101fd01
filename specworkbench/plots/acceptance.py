"""Acceptance by position in the round, and how far a round survives."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import columns_of, error_bars, finish

QUANTITIES = {
    "acceptance": ("low", "high", "examined", "accepted, once examined"),
    "survival": ("survival_low", "survival_high", "rounds", "accepted together with all before it: S_j"),
}
"""Column of the value: columns of its interval's ends and of its count, and its name in the legend."""


def acceptance(
    table: pd.DataFrame,
    *,
    title: str = "Acceptance by position in the round",
    template: str | go.layout.Template | None = None,
    height: int = 400,
) -> go.Figure:
    """Two series over the position: conditional acceptance, and survival S_j from the round's start.

    table: one row a position, as `analysis.acceptance_by_position` gives it: `position` (1, 2, ...), `acceptance` with
    the ends of its interval `low`, `high`, `survival` with `survival_low`, `survival_high` (probabilities), and the
    counts they rest on, `examined` (tokens) and `rounds`.

    >>> from specworkbench import analysis
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> [series.name for series in acceptance(analysis.acceptance_by_position(trace)).data]
    ['accepted, once examined', 'accepted together with all before it: S_j']
    """
    wanted = [column for columns in QUANTITIES.values() for column in columns[:3]]
    columns_of("acceptance", table, ("position", *QUANTITIES, *wanted))
    figure = go.Figure([_series(table, name, number) for number, name in enumerate(QUANTITIES)])
    figure.update_xaxes(title_text="position in the round", dtick=1)
    figure.update_yaxes(title_text="probability", range=[0, 1.05])
    return finish(figure, title, template, height)


def _series(table: pd.DataFrame, value: str, number: int) -> go.Scatter:
    low, high, count, name = QUANTITIES[value]
    hover = (
        f"position %{{x}}: %{{y:.3f}} (%{{customdata[0]:.3f}} to %{{customdata[1]:.3f}}), %{{customdata[2]}} {count}"
    )
    return go.Scatter(
        x=table["position"],
        y=table[value],
        error_y=error_bars(table, value, low, high),
        customdata=table[[low, high, count]],
        mode="lines+markers",
        name=name,
        line={"color": palette.SERIES[number], "width": 2, "dash": ("solid", "dot")[number]},
        marker={"size": 9, "symbol": palette.SYMBOLS[number]},
        hovertemplate=f"{hover}<extra>{name}</extra>",
    )
