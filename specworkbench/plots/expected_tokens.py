"""Measured block efficiency against the theory's E[N], over gamma."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import columns_of, error_bars, finish, literal

MEASURED = ("gamma", "block_efficiency", "low", "high")
THEORY = ("gamma", "alpha", "expected_tokens")


def expected_tokens(
    measured: pd.DataFrame,
    theory: pd.DataFrame,
    *,
    title: str = "Tokens per round: measured against theory",
    template: str | go.layout.Template | None = None,
    height: int = 420,
) -> go.Figure:
    """Points with intervals (measured) on curves (theory, i.i.d.), in tokens per round.

    measured: `gamma`, `block_efficiency`, `low`, `high` (tokens per round), and `series` where there are several.
    theory: `gamma`, `alpha`, `expected_tokens`; one curve for each alpha, named by `series` where the table has it. One
    with measured points in its series has their colour, and no entry of its own in the legend.

    >>> import pandas as pd
    >>> from specworkbench import theory
    >>> measured = pd.DataFrame({"gamma": [2, 4], "block_efficiency": [2.1, 2.6]})
    >>> measured = measured.assign(low=[2.0, 2.4], high=[2.2, 2.8])
    >>> curve = pd.DataFrame({"gamma": range(1, 6), "alpha": 0.66})
    >>> curve["expected_tokens"] = theory.expected_tokens(curve["alpha"], curve["gamma"])
    >>> len(expected_tokens(measured, curve).data)
    2
    """
    columns_of("expected_tokens", measured, MEASURED)
    columns_of("expected_tokens", theory, THEORY)
    figure = go.Figure()
    names = list(dict.fromkeys(measured["series"])) if "series" in measured else [""]
    by = ["series", "alpha"] if "series" in theory else ["alpha"]
    for number, (key, curve) in enumerate(theory.groupby(by, sort=False)):
        at = names.index(key[0]) if "series" in theory and key[0] in names else number
        trace = _curve(curve.sort_values("gamma"), key, palette.SERIES[at % len(palette.SERIES)])
        figure.add_trace(trace.update(showlegend="series" not in theory or key[0] not in names))
    for number, name in enumerate(names):
        points = measured[measured["series"] == name] if "series" in measured else measured
        figure.add_trace(_points(points, name, number))
    figure.update_xaxes(title_text="gamma: tokens proposed per round", dtick=1)
    figure.update_yaxes(title_text="tokens per round, E[N]", rangemode="tozero")
    return finish(figure, title, template, height)


def _curve(curve: pd.DataFrame, key: tuple, color: str) -> go.Scatter:
    name = f"theory, alpha = {key[-1]:.2f}"
    return go.Scatter(
        x=curve["gamma"],
        y=curve["expected_tokens"],
        mode="lines",
        name=literal(f"{key[0]}: {name}" if len(key) == 2 else name),
        line={"color": color, "width": 2, "dash": "dash"},
        hovertemplate="gamma %{x}: E[N] = %{y:.2f}<extra>%{fullData.name}</extra>",
    )


def _points(points: pd.DataFrame, name: str, number: int) -> go.Scatter:
    color = palette.SERIES[number % len(palette.SERIES)]
    hover = "gamma %{x}: %{y:.2f} (%{customdata[0]:.2f} to %{customdata[1]:.2f})"
    return go.Scatter(
        x=points["gamma"],
        y=points["block_efficiency"],
        error_y=error_bars(points, "block_efficiency", "low", "high"),
        mode="markers",
        name=literal(f"{name}: measured" if name else "measured, with interval"),
        marker={"color": color, "size": 10, "symbol": palette.SYMBOLS[number % len(palette.SYMBOLS)]},
        customdata=points[["low", "high"]],
        hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>",
    )
