"""`PageRepairs`, `live_text` and `live_figure`: names, words that are told and room for figures, where two libraries
forget them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import plotly.graph_objects as go
import traitlets

from specworkbench.plots import palette

_FOLDER = Path(__file__).parent
LIVE, GROUP, _HEARD = "swb-live", "swb-group", "swb-heard"


class PageRepairs(anywidget.AnyWidget):
    """Put it last into a panel, such as a `VBox`: it shows nothing, and what stands beside it is mended on the page.

    name: the panel's, for screen readers. The sliders of the panel, however deep, get their description as their name;
    icons are kept out of the names of buttons; a `live_text` is told when it changes, a box of the class `GROUP` is a
    group named by its heading; each figure of plotly is described in words, and each `live_figure` becomes as wide as
    the panel, now and whenever that changes its width. What has the keyboard is framed and has its keys to itself, and
    a button that can no longer be pressed hands it on.
    """

    _esm = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("keys.js", "page_repairs.js"))
    _css = f"""
.{_HEARD} {{position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);}}
.swb-mended :is(a, button, input, select, summary, textarea, [contenteditable], [tabindex]):focus-visible {{
  outline: 3px solid {palette.FOCUS} !important; outline-offset: 1px;}}
.swb-mended .modebar:focus-within {{opacity: 1 !important;}}
@media (forced-colors: active) {{
  .swb-mended :is(.jupyter-button, .noUi-target, .progress) {{border: 1px solid ButtonText;}}
  .swb-mended .progress-bar {{forced-color-adjust: none;}}
}}
"""

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
