"""Acceptance by position in the round, and how far a round survives."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import columns_of, error_bars, finish

QUANTITIES = {
    "acceptance": "accepted, once examined",
    "survival": "accepted together with all before it, S_j",
}


def acceptance(
    table: pd.DataFrame,
    *,
    title: str = "Acceptance by position in the round",
    template: str | go.layout.Template | None = None,
    height: int = 400,
) -> go.Figure:
    """Two series over the position: conditional acceptance, and survival S_j from the round's start.

    table: one row a position: `position` (1, 2, ...), `acceptance`, `survival` (probabilities) and the ends of their
    intervals, `acceptance_low`, `acceptance_high`, `survival_low`, `survival_high`; `examined` (a count of tokens),
    where the table has it, is shown on hovering.
    """
    wanted = [f"{name}{end}" for name in QUANTITIES for end in ("", "_low", "_high")]
    columns_of("acceptance", table, ("position", *wanted))
    figure = go.Figure([_series(table, name, number) for number, name in enumerate(QUANTITIES)])
    figure.update_xaxes(title_text="position in the round", dtick=1)
    figure.update_yaxes(title_text="probability", range=[0, 1.05])
    return finish(figure, title, template, height)


def _series(table: pd.DataFrame, name: str, number: int) -> go.Scatter:
    counts = table["examined"] if "examined" in table else pd.Series([None] * len(table))
    hover = "position %{x}: %{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})"
    if "examined" in table:
        hover += ", %{customdata[2]} examined"
    return go.Scatter(
        x=table["position"],
        y=table[name],
        error_y=error_bars(table, name, f"{name}_low", f"{name}_high"),
        customdata=list(zip(table[f"{name}_low"], table[f"{name}_high"], counts, strict=True)),
        mode="lines+markers",
        name=QUANTITIES[name],
        line={"color": palette.SERIES[number], "width": 2, "dash": ("solid", "dot")[number]},
        marker={"size": 9, "symbol": palette.SYMBOLS[number]},
        hovertemplate=f"{hover}<extra>{QUANTITIES[name]}</extra>",
    )
