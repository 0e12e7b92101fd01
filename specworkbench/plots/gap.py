"""From the formula's speedup down, or up, to the measured one, step by step."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, error_bars, finish, literal

COLUMNS = ("step", "figures", "before", "after", "low", "high", "change", "change_low", "change_high")
LEAST = 5e-4
"""A step that changes less is not drawn."""
COLORS = {"totals": "blue", "decreasing": "vermillion", "increasing": "green"}


def gap(
    table: pd.DataFrame,
    *,
    start: str = "the formula",
    end: str = "measured",
    title: str = "From the formula to the measurement",
    template: str | go.layout.Template | None = None,
    height: int | None = None,
) -> go.Figure:
    """A waterfall from left to right and top to bottom: where the speedup begins, every step's change, where it ends.

    table: a row a step, in order, as `analysis.Gap.table` gives it: `step` and `figures` (text), `before`, `after` with
    `low` and `high`, `change` with `change_low` and `change_high` (speedups; the ends of intervals may be null). Steps
    that change less than 0.0005 are left out. start, end: names of the first and the last bar. The dotted line at 1 is
    plain decoding. The height grows with the steps unless given (pixels).

    >>> from specworkbench import analysis
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> gap(analysis.gap(plain, speculative).table()).data[0].type
    'waterfall'
    """
    columns_of("gap", table, COLUMNS)
    drawn = table[table["change"].abs() >= LEAST]
    names = [literal(name) for name in (start, *drawn["step"], end)]
    first, last = table["before"].iloc[0], table.iloc[[-1]]
    figure = go.Figure(
        [
            go.Waterfall(
                orientation="h",
                y=names,
                x=[first, *drawn["change"], last["after"].iloc[0]],
                measure=["absolute", *["relative"] * len(drawn), "total"],
                text=[f"{first:.2f}", *map(_signed, drawn["change"]), ""],
                textposition="outside",
                cliponaxis=False,
                hovertext=[f"{first:.3f}", *(_hover(row) for _, row in drawn.iterrows()), _interval(last.iloc[0])],
                hovertemplate="%{hovertext}<extra>%{y}</extra>",
                connector={"line": {"color": INK, "width": 1}},
                **{kind: {"marker": {"color": palette.OKABE_ITO[color]}} for kind, color in COLORS.items()},
            ),
            go.Scatter(
                x=last["after"],
                y=names[-1:],
                error_x=error_bars(last, "after", "low", "high"),
                mode="markers",
                marker={"color": INK, "size": 5},
                hoverinfo="skip",
            ),
            go.Scatter(
                x=last[["after", "high"]].max(axis=1),
                y=names[-1:],
                text=[f" {last['after'].iloc[0]:.2f}"],
                mode="text",
                textposition="middle right",
                cliponaxis=False,
                hoverinfo="skip",
            ),
        ]
    )
    figure.add_vline(x=1.0, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_layout(showlegend=False, margin={"r": 60})
    figure.update_xaxes(title_text="speedup over plain decoding", showgrid=True, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", automargin=True)
    return finish(figure, title, template, height or 170 + 32 * len(names))


def _signed(change: float) -> str:
    return f"{change:+.2f}".replace("-", "−") if abs(change) >= 0.005 else f"{change:+.3f}".replace("-", "−")


def _hover(row: pd.Series) -> str:
    ends = "" if pd.isna(row["change_low"]) else f" ({row['change_low']:+.3f} to {row['change_high']:+.3f})"
    return f"{row['change']:+.3f}{ends}, so {row['after']:.3f}<br>{literal(row['figures'])}"


def _interval(row: pd.Series) -> str:
    return f"{row['after']:.3f}" + ("" if pd.isna(row["low"]) else f" ({row['low']:.3f} to {row['high']:.3f})")
