"""The speedup explorer's pictures as figures of plotly, for print and hovering."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from specworkbench.errors import InputError
from specworkbench.plots import speedup_slice, speedup_surface
from specworkbench.widgets.speedup_figures import View
from specworkbench.widgets.speedup_tables import COLUMNS, QUANTITIES, level_table, slice_table, surface_table


def plotly_figure(view: View, name: str = "surface", **options: Any) -> go.Figure:
    """One of the pictures as a figure of plotly: "surface", "gamma" or "alpha"; options: of its plot.

    Raises `InputError` for another name.
    """
    measured, low, high = COLUMNS[view.quantity]
    points = view.points.rename(columns={measured: "measured", low: "low", high: "high"}).dropna(subset="measured")
    options = {"name": QUANTITIES[view.quantity]} | options
    if name == "surface":
        cells, lines = (of(view.costs, view.quantity, view.max_gamma) for of in (surface_table, level_table))
        return speedup_surface(cells, lines, points, **options)
    if name not in ("gamma", "alpha"):
        raise InputError(f"there is no figure {name!r}; choose surface, gamma or alpha")
    line = slice_table(
        view.costs, view.quantity, over=name, alpha=view.alpha, gamma=view.gamma, max_gamma=view.max_gamma
    )
    return speedup_slice(line, points.assign(x=points[name]), over=name, **options)
