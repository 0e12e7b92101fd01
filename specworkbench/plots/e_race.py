"""The e-value race: evidence against implementations, token by token, up to the line at which one is rejected."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, finish, literal

COLUMNS = ("name", "tokens", "log_e")
_DASHES = ("solid", "dash", "dot")


def e_race(
    table: pd.DataFrame,
    level: float,
    *,
    title: str = "Evidence against each implementation",
    template: str | go.layout.Template | None = None,
    height: int = 420,
) -> go.Figure:
    """A line a name, log10 of the E-value over the tokens judged, and the line 1 / level at which it is rejected.

    table: `name`, `tokens` (judged so far), `log_e` (natural logarithm; infinite after a token that the target cannot
    say, drawn above everything else).

    >>> import pandas as pd
    >>> table = pd.DataFrame({"name": "swapped", "tokens": [0, 100, 200], "log_e": [0.0, 2.1, 5.3]})
    >>> [series.name for series in e_race(table, level=0.01).data]
    ['swapped']
    """
    columns_of("e_race", table, COLUMNS)
    threshold = -math.log10(level)
    logs = table["log_e"].to_numpy(dtype=float) / math.log(10)
    ceiling = 1.1 * max(2 * threshold, logs[np.isfinite(logs)].max(initial=0.0))
    figure = go.Figure(
        [_line(str(name), number, points, ceiling) for number, (name, points) in enumerate(_by_name(table))]
    )
    figure.add_hline(
        y=threshold,
        line={"color": INK, "width": 2, "dash": "dash"},
        annotation={"text": f"rejected: 1/level = {1 / level:,.0f}", "x": 1, "xanchor": "right", "yanchor": "bottom"},
    )
    figure.update_xaxes(title_text="tokens judged", rangemode="tozero")
    figure.update_yaxes(title_text="log10 of the E-value")
    return finish(figure, title, template, height)


def _by_name(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return list(table.groupby("name", sort=False))


def _line(name: str, number: int, points: pd.DataFrame, ceiling: float) -> go.Scatter:
    shown = np.minimum(points["log_e"].to_numpy(dtype=float) / math.log(10), ceiling)
    color = palette.SERIES[number % len(palette.SERIES)]
    return go.Scatter(
        x=points["tokens"].tolist(),
        y=shown.tolist(),
        customdata=["infinite" if math.isinf(log_e) else f"{log_e / math.log(10):.2f}" for log_e in points["log_e"]],
        mode="lines+markers",
        name=literal(name),
        line={"color": color, "width": 2, "dash": _DASHES[number // len(palette.SERIES) % len(_DASHES)]},
        marker={"size": 9, "symbol": palette.SYMBOLS[number % len(palette.SYMBOLS)], "maxdisplayed": 8},
        hovertemplate="%{x} tokens: log10 E = %{customdata}<extra>%{fullData.name}</extra>",
    )
