"""`PageRepairs` and `live_figure`: names for sliders and room for figures, where two libraries forget them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go

from specworkbench.widgets.page_style import PRINT


class PageRepairs(anywidget.AnyWidget):
    """Put it last into a panel, such as a `VBox`: it shows nothing, and what stands beside it is mended on the page.

    The sliders of the panel, however deep, get their description as their name for screen readers; each `live_figure`
    becomes as wide as the panel, now and whenever that changes its width. On paper the panel is dark on white.
    """

    _esm = (Path(__file__).parent / "page_repairs.js").read_text(encoding="utf-8")
    _css = PRINT

    def __init__(self, **traits: Any):
        super().__init__(layout={"height": "0", "margin": "0"}, **traits)


def live_figure(figure: go.Figure | None = None) -> go.FigureWidget:
    """The figure as one that code may change while it is seen. It listens to changes of the page's width."""
    live = go.FigureWidget(figure)
    live._config = live._config | {"responsive": True}  # plotly has no public name for it
    return live
