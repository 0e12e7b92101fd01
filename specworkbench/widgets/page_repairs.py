"""`PageRepairs`, `live_figure`, `redraw`: what two libraries forget of sliders and of figures that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go


class PageRepairs(anywidget.AnyWidget):
    """Put it last into a panel, such as a `VBox`: it shows nothing, and what stands beside it is mended on the page.

    The sliders of the panel, however deep, get their description as their name for screen readers; each `live_figure`
    becomes as wide as the panel, now and whenever that changes its width.
    """

    _esm = (Path(__file__).parent / "page_repairs.js").read_text(encoding="utf-8")

    def __init__(self, **traits: Any):
        super().__init__(layout={"height": "0", "margin": "0"}, **traits)


def live_figure(figure: go.Figure | None = None) -> go.FigureWidget:
    """The figure as one that code may change while it is seen. It listens to changes of the page's width."""
    live = go.FigureWidget(figure)
    live._config = live._config | {"responsive": True}  # plotly has no public name for it
    return live


def redraw(live: go.FigureWidget, figure: go.Figure) -> None:
    """Show another figure in its place, on pages that are open and on those that will be opened later, as in Voila."""
    with live.batch_update():
        live.data = ()
        live.add_traces(figure.data)
        live.layout = figure.layout
    live._repr_mimebundle_()  # plotly brings the state that a page is opened with up to date only when asked
