"""The settings in which a claim was tested: effects with intervals, beside the region where the claim is right."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, broken, columns_of, error_bars, finish, literal

COLUMNS = ("part", "effect", "low", "high", "n", "verdict")
_SYMBOLS = {"holds here": "circle", "does not hold here": "x", "not decidable here": "circle-open"}
_ROW_PIXELS, _AXIS_CHARACTERS = 26, 30


def claim_parts(
    table: pd.DataFrame,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    effect: str = "effect",
    title: str = "The claim, setting by setting",
    template: str | go.layout.Template | None = None,
    height: int | None = None,
) -> go.Figure:
    """A row a setting, the first on top: a mark at the effect, a line over its interval, the colour of its verdict.

    table: `part` (text), `effect`, `low`, `high` (in the unit of `effect`), `n` (prompts), `verdict` (a key of
    `palette.VERDICTS`). low, high: the region in which the claim is right, shaded; infinite where it has no edge.
    effect: the name of the axis.

    >>> import pandas as pd
    >>> rows = [("eagle", 1.4, 1.2, 1.6, 36, "holds here"), ("ngram", 1.0, 0.9, 1.1, 36, "not decidable here")]
    >>> table = pd.DataFrame(rows, columns=["part", "effect", "low", "high", "n", "verdict"])
    >>> claim_parts(table, low=1.0, effect="speedup").layout.xaxis.title.text
    'speedup'
    """
    columns_of("claim_parts", table, COLUMNS)
    table = table.assign(place=range(len(table)))
    figure = go.Figure([
        _marks(table[table["verdict"] == verdict], verdict) for verdict in _SYMBOLS if verdict in set(table["verdict"])
    ])  # fmt: skip
    ends = [*table["low"], *table["high"], *table["effect"], *(edge for edge in (low, high) if math.isfinite(edge))]
    ends = [end for end in ends if math.isfinite(end)] or [0.0, 1.0]
    room = 0.05 * (max(ends) - min(ends) or 1.0)
    span = min(ends) - room, max(ends) + room
    figure.add_vrect(
        x0=max(low, span[0]), x1=min(high, span[1]), fillcolor=palette.OKABE_ITO["green"], opacity=0.1, line_width=0
    )
    for edge in (edge for edge in (low, high) if math.isfinite(edge)):
        figure.add_vline(x=edge, line={"color": INK, "width": 1, "dash": "dot"})
    effect = broken(literal(effect), _AXIS_CHARACTERS)
    figure.update_xaxes(title_text=effect, range=span, showgrid=True, automargin=True)
    names = [literal(str(part)) for part in table["part"]]
    figure.update_yaxes(
        tickvals=table["place"].tolist(), ticktext=names, range=[len(table) - 0.5, -0.5], zeroline=False,
        showgrid=False, automargin=True,
    )  # fmt: skip
    return finish(figure, literal(title), template, height or 190 + _ROW_PIXELS * len(table))


def _marks(rows: pd.DataFrame, verdict: str) -> go.Scatter:
    mark = palette.VERDICTS[verdict]
    return go.Scatter(
        x=rows["effect"].tolist(),
        y=rows["place"].tolist(),
        error_x=error_bars(rows, "effect", "low", "high"),
        customdata=rows[["low", "high", "n"]].to_numpy().tolist(),
        text=[literal(str(part)) for part in rows["part"]],
        mode="markers",
        name=f"{mark.glyph} {verdict}",
        marker={"color": mark.color, "size": 10, "symbol": _SYMBOLS[verdict]},
        hovertemplate="%{text}: %{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f}), %{customdata[2]} prompts"
        "<extra></extra>",
    )
