"""A slice of the speedup's surface: theory as a line over alpha or gamma, measured points with intervals on it."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, error_bars, finish, literal

LINE, POINTS = ("x", "value", "ideal"), ("label", "x", "measured", "low", "high")
AXES = {"alpha": "alpha: acceptance probability", "gamma": "gamma: tokens proposed per round"}


def speedup_slice(
    line: pd.DataFrame,
    points: pd.DataFrame | None = None,
    *,
    over: str = "gamma",
    name: str = "speedup",
    title: str = "Speedup: theory and measured",
    template: str | go.layout.Template | None = None,
    height: int = 420,
) -> go.Figure:
    """The theory's line, dashed what it would be were nothing to pay for guesses, and points with their intervals.

    line: `x`, `value`, `ideal`. points: `label`, `x`, `measured`, `low`, `high`. over: "alpha" or "gamma", what x is.
    The line at 1 is plain decoding. name: of the value.

    >>> import pandas as pd
    >>> from specworkbench import theory
    >>> line = pd.DataFrame({"x": [1, 2, 4, 8]})
    >>> line["value"], line["ideal"] = theory.speedup(0.8, line["x"], 0.1), theory.expected_tokens(0.8, line["x"])
    >>> len(speedup_slice(line, over="gamma").data)
    2
    """
    columns_of("speedup_slice", line, LINE)
    figure = go.Figure(
        [
            _curve(line, "ideal", "E[N]: guesses and verification free", palette.OKABE_ITO["grey"], "dash"),
            _curve(line, "value", "theory at these costs", palette.SERIES[0], "solid"),
        ]
    )
    if points is not None and len(points):
        columns_of("speedup_slice", points, POINTS)
        figure.add_trace(_points(points))
    figure.add_hline(y=1.0, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_xaxes(title_text=AXES[over])
    figure.update_yaxes(title_text=name, rangemode="tozero")
    return finish(figure, title, template, height)


def _curve(line: pd.DataFrame, column: str, name: str, color: str, dash: str) -> go.Scatter:
    return go.Scatter(
        x=line["x"],
        y=line[column],
        mode="lines",
        name=name,
        line={"color": color, "width": 2, "dash": dash},
        hovertemplate="%{x:.3g}: %{y:.2f}<extra>%{fullData.name}</extra>",
    )


def _points(points: pd.DataFrame) -> go.Scatter:
    return go.Scatter(
        x=points["x"],
        y=points["measured"],
        error_y=error_bars(points, "measured", "low", "high"),
        mode="markers",
        name="measured, with interval",
        marker={"color": palette.SERIES[1], "size": 10, "symbol": palette.SYMBOLS[0]},
        text=[literal(str(label)) for label in points["label"]],
        hovertemplate="%{text}: %{y:.2f}<extra></extra>",
    )
