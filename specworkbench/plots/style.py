"""What all figures share: a look that reads on light and dark pages, and text that plotly takes literally."""

from __future__ import annotations

import textwrap

import pandas as pd
import plotly.graph_objects as go

INK = "#7A7A7A"
"""Grey of text and axes, the one with the most contrast on both white (4.3 to 1) and JupyterLab's dark page (4.4 to 1).
Where a page has a colour of its own for text, `ink_css` gives them that one.
"""

_TITLE_PIXELS, _LINE_PIXELS, _TITLE_CHARACTERS = 34, 20, 52
"""Height of a title of one line with its padding, of each further line, and how long a line may be in a narrow page."""

TOP = 80
"""Pixels above the axes of a figure with a title of one line."""

_GRID = "rgba(128, 128, 128, 0.25)"
_AXIS = {
    "gridcolor": _GRID,
    "zerolinecolor": _GRID,
    "linecolor": INK,
    "ticks": "outside",
    "tickcolor": INK,
    "title": {"font": {"size": 13}},
}

NEUTRAL = go.layout.Template(
    layout={
        "font": {"color": INK, "size": 13},
        "title": {  # at the very top; the legend's rows begin below it (see `finish`)
            "x": 0.0,
            "xanchor": "left",
            "xref": "container",
            "y": 1.0,
            "yanchor": "top",
            "pad": {"t": 10, "l": 10},
            "font": {"size": 15},
        },
        "xaxis": {**_AXIS, "showgrid": False},
        "yaxis": _AXIS,
        "legend": {
            "orientation": "h",
            "x": 0.0,
            "xref": "container",
            "yref": "container",
            "yanchor": "top",
            "title": {"text": ""},
        },
        "hoverlabel": {"align": "left"},
        "margin": {"l": 60, "r": 20, "t": TOP, "b": 50},
        "bargap": 0.25,
    }
)


def finish(figure: go.Figure, title: str, template: str | go.layout.Template | None, height: int) -> go.Figure:
    """Title, template (`NEUTRAL` when None), transparent background; height in pixels.

    The legend of `NEUTRAL` hangs below the title: plotly makes room for as many rows as the page's width leaves it. A
    long title is put on lines of its own making, as plotly breaks none; one with markup is left as it is.
    """
    text = title if "<" in title else broken(title, _TITLE_CHARACTERS)
    if template is None:
        more = _LINE_PIXELS * (text.count("<br>") - title.count("<br>"))
        figure.update_layout(legend_y=1.0 - (_TITLE_PIXELS + more) / height, margin_t=TOP + more)
    if further := text.count("<br>"):
        figure.update_layout(title_pad_t=10 + further * _LINE_PIXELS / 2)  # plotly begins several higher than one
    figure.update_layout(
        title_text=text,
        template=NEUTRAL if template is None else template,
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        height=height,
    )
    return figure


def broken(text: str, characters: int) -> str:
    """The text on lines of so many characters at most, where its words allow that.

    >>> broken("tokens per round", 12)
    'tokens per<br>round'
    """
    return "<br>".join(textwrap.wrap(text, characters, break_long_words=False, break_on_hyphens=False))


def ink_css(color: str = f"var(--jp-ui-font-color1, {INK})") -> str:
    """CSS by which whatever plotly draws in `INK` takes a colour of the page, and is black on white in print.

    color: as CSS says it, such as a variable of the page; by default that of JupyterLab's text. It goes by the colour
    that plotly writes into each node, so that nothing has to be drawn again and no other colour is touched.

    >>> print(ink_css("currentColor").splitlines()[0])
    .js-plotly-plot text[style*="fill: rgb(122, 122, 122)"] {fill: currentColor !important;}
    """
    written = f"rgb({', '.join(str(int(INK[i : i + 2], 16)) for i in (1, 3, 5))})"

    def rules(shown: str) -> str:
        return (
            f'.js-plotly-plot text[style*="fill: {written}"] {{fill: {shown} !important;}}\n'
            f'.js-plotly-plot [style*="stroke: {written}"] {{stroke: {shown} !important;}}\n'
        )

    paper = ".js-plotly-plot {background: #fff;}\n"  # which a browser prints where it is told to print grounds
    return f"{rules(color)}@media print {{\n{paper}{rules('#000')}}}\n"


def literal(text: str) -> str:
    """Text that plotly shows as it is: plotly reads a small HTML, and LaTeX between dollar signs."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;")):
        text = text.replace(character, entity)
    return text


def columns_of(figure_name: str, table: pd.DataFrame, wanted: tuple[str, ...]) -> None:
    """Raises `KeyError` naming the columns that a figure needs and the table lacks."""
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        there = ", ".join(map(str, table.columns))
        raise KeyError(f"the figure {figure_name!r} needs the columns {', '.join(missing)}; the table has {there}")


def error_bars(table: pd.DataFrame, middle: str, low: str, high: str) -> dict:
    """Plotly's asymmetric error bars from the ends of an interval, in the unit of the middle column."""
    return {
        "type": "data",
        "symmetric": False,
        "array": (table[high] - table[middle]).clip(lower=0),
        "arrayminus": (table[middle] - table[low]).clip(lower=0),
        "thickness": 1.5,
        "width": 5,
    }
