"""`PageRepairs`, `live_text`, `live_figure`, `redraw`: what two libraries forget of names, words and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import plotly.graph_objects as go
import traitlets

from specworkbench.plots import palette
from specworkbench.plots.style import ink_css
from specworkbench.widgets.page_style import PRINT

_FOLDER = Path(__file__).parent
LIVE, GROUP, _HEARD = "swb-live", "swb-group", "swb-heard"

class PageRepairs(anywidget.AnyWidget):
    """Put it last into a panel, such as a `VBox`: it shows nothing, and what stands beside it is mended on the page.

    name: the panel's, for screen readers. The sliders of the panel, however deep, get their description as their name;
    icons are kept out of the names of buttons; a `live_text` is told when it changes, a box of the class `GROUP` is a
    group named by its heading; each figure of plotly is described in words, and each `live_figure` becomes as wide as
    the panel, now and whenever that changes its width. What has the keyboard is framed and has its keys to itself, and
    a button that can no longer be pressed hands it on. Names of checkboxes and bars are not cut; text and axes of all
    figures on the page take its colour of text (see `plots.style.ink_css`). On paper the panel is dark on white.
    """

    _esm = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("keys.js", "page_repairs.js"))
    _css = f"{PRINT}.swb-mended {{--swb-focus: {palette.FOCUS};}}\n" + ink_css()
    _css += (_FOLDER / "page_repairs.css").read_text(encoding="utf-8")

    name = traitlets.Unicode().tag(sync=True)

    def __init__(self, name: str, **traits: Any):
        super().__init__(name=name, layout={"height": "0", "margin": "0"}, **traits)


def live_text(hidden: bool = False) -> widgets.HTML:
    """A text that is told to those who hear the page whenever it changes. hidden: told alone, and not seen."""
    text = widgets.HTML()
    text.add_class(LIVE)
    if hidden:
        text.add_class(_HEARD)
    return text


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
