"""A quantity over alpha and gamma, with lines of equal value, break-even among them, and measured points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, finish, literal

CELLS, LINES, POINTS = ("alpha", "gamma", "value"), ("level", "gamma", "alpha"), ("label", "alpha", "gamma", "measured")
GAIN, LOSS = palette.OKABE_ITO["blue"], palette.OKABE_ITO["vermillion"]
FULL = 4.0
"""How many times 1, or what part of it, has the full colour; 1 itself has none, and shows the page."""

_SHADES = [(0.0, palette.translucent(LOSS, 0.85)), (0.5, palette.translucent(LOSS, 0.0))]
_SHADES += [(0.5, palette.translucent(GAIN, 0.0)), (1.0, palette.translucent(GAIN, 0.85))]


def speedup_surface(
    cells: pd.DataFrame,
    lines: pd.DataFrame,
    points: pd.DataFrame | None = None,
    *,
    name: str = "speedup",
    title: str = "Speedup over alpha and gamma; heavy line: break-even",
    template: str | go.layout.Template | None = None,
    height: int = 460,
) -> go.Figure:
    """Blue where the value is above 1, vermillion below, by its logarithm; the line of level 1 is break-even.

    cells: `alpha`, `gamma`, `value`, a full grid. lines: `level`, `gamma`, `alpha`, in order of gamma. points: `label`,
    `alpha`, `gamma`, `measured`. name: of the value, when hovering.

    >>> import pandas as pd
    >>> from specworkbench import theory
    >>> pairs = [(alpha, gamma) for alpha in (0.2, 0.5, 0.8) for gamma in (1, 2, 4)]
    >>> cells = pd.DataFrame(pairs, columns=["alpha", "gamma"])
    >>> cells["value"] = theory.speedup(cells["alpha"], cells["gamma"], 0.3)
    >>> lines = pd.DataFrame({"level": 1.0, "gamma": [1, 2, 4], "alpha": theory.break_even_alpha([1, 2, 4], 0.3)})
    >>> speedup_surface(cells, lines).data[0].type
    'heatmap'
    """
    columns_of("speedup_surface", cells, CELLS)
    columns_of("speedup_surface", lines, LINES)
    grid = cells.pivot(index="gamma", columns="alpha", values="value")
    figure = go.Figure(
        go.Heatmap(
            x=grid.columns.tolist(), y=grid.index.tolist(), z=np.log(grid.to_numpy()).tolist(),
            customdata=grid.to_numpy().tolist(), zmin=-np.log(FULL), zmax=np.log(FULL), colorscale=_SHADES,
            colorbar={
                "tickvals": np.log([0.25, 0.5, 1, 2, 4]).tolist(),
                "ticktext": ["¼ or less", "½", "1", "2", "4 or more"],
            },
            hovertemplate=f"alpha %{{x:.2f}}, gamma %{{y}}: {literal(name)} %{{customdata:.2f}}<extra></extra>",
        )
    )  # fmt: skip
    for level, line in lines.groupby("level"):
        figure.add_trace(_line(level, line))
    if points is not None and len(points):
        columns_of("speedup_surface", points, POINTS)
        figure.add_trace(_points(points, name))
    figure.update_xaxes(title_text="alpha: acceptance probability", range=[0, 1])
    figure.update_yaxes(title_text="gamma: tokens proposed per round")
    figure.update_layout(showlegend=False)
    return finish(figure, title, template, height)


def _line(level: float, line: pd.DataFrame) -> go.Scatter:
    name = "break-even" if level == 1 else f"{level:g}"
    words = [""] * (len(line) - 1) + [name]
    return go.Scatter(
        x=line["alpha"],
        y=line["gamma"],
        mode="lines+text",
        text=words,
        textposition="middle left" if level == 1 else "bottom center",
        name=name,
        line={"color": INK, "width": 3 if level == 1 else 1},
        hoverinfo="skip",
    )


def _points(points: pd.DataFrame, name: str) -> go.Scatter:
    return go.Scatter(
        x=points["alpha"],
        y=points["gamma"],
        mode="markers",
        name="measured",
        marker={"color": LOSS, "size": 11, "symbol": "circle", "line": {"color": "white", "width": 1.5}},
        text=[literal(str(label)) for label in points["label"]],
        customdata=points["measured"],
        hovertemplate=f"%{{text}}: measured {literal(name)} %{{customdata:.2f}}<extra></extra>",
    )
