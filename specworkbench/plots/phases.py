"""Where the time of a round goes, phase by phase."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import columns_of, finish, literal


def phases(
    table: pd.DataFrame,
    *,
    title: str = "Time of a round by phase",
    unit: str = "ms per round",
    template: str | go.layout.Template | None = None,
    height: int | None = None,
) -> go.Figure:
    """A stacked horizontal bar for each row of the table.

    table: `group` (what the bar is about: a kind of round, a proposer, all rounds) and `ms_propose`, `ms_verify`,
    `ms_accept`, `ms_rollback`, `ms_other` in the unit named (`ms_other` may be absent). Null counts as no bar. The
    height grows with the rows unless given (pixels).

    >>> import pandas as pd
    >>> row = {"group": "eagle", "ms_propose": 1.1, "ms_verify": 2.9, "ms_accept": 0.3, "ms_rollback": 0.05}
    >>> [series.name for series in phases(pd.DataFrame([row])).data]
    ['propose', 'verify', 'accept', 'rollback']
    """
    present = [phase for phase in palette.PHASES if phase != "other" or "ms_other" in table]
    columns_of("phases", table, ("group", *(f"ms_{phase}" for phase in present)))
    figure = go.Figure()
    groups = [literal(str(group)) for group in table["group"]]
    for phase in present:
        figure.add_trace(
            go.Bar(
                y=groups,
                x=table[f"ms_{phase}"],
                orientation="h",
                name=phase,
                marker={
                    "color": palette.PHASES[phase],
                    "line": {"width": 0},
                    "pattern": {"shape": palette.PHASE_PATTERNS[phase], "size": 6, "fillmode": "overlay"},
                },
                hovertemplate=f"%{{x:.3g}} {literal(unit)}<extra>{phase}</extra>",
            )
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(title_text=unit, showgrid=True, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", automargin=True)
    return finish(figure, title, template, height or 180 + 36 * len(table))
