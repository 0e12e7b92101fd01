"""The speedup explorer's figures as SVG: the surface over alpha and gamma, and a slice along each of them.

The same pictures as `plots.speedup_surface` and `plots.speedup_slice`, which are for print and hovering.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from math import ceil, isnan, log2

import pandas as pd

from specworkbench.plots import palette
from specworkbench.widgets.field import MARKS, Field
from specworkbench.widgets.page_style import STYLE as UNSTYLED
from specworkbench.widgets.page_style import unstyled
from specworkbench.widgets.speedup_tables import (
    COLUMNS,
    QUANTITIES,
    Costs,
    level_table,
    slice_table,
    surface_table,
)
from specworkbench.widgets.text import number

MOST_TOLD = 6
"""Measured points that the words of a slice name."""

GAIN, LOSS = palette.OKABE_ITO["blue"], palette.OKABE_ITO["vermillion"]
STYLE = f"""
{UNSTYLED}.swb-explorer {{font-family: var(--jp-ui-font-family, system-ui, sans-serif);
  font-size: var(--jp-ui-font-size1, 13px); line-height: 1.5; color: var(--jp-ui-font-color1, inherit);}}
.swb-explorer p {{margin: 4px 0; max-width: 64em;}}
.swb-explorer .swb-fields {{display: flex; flex-wrap: wrap; gap: 4px 14px;}}
.swb-explorer figure {{margin: 0; flex: 1 1 300px; max-width: 460px;}}
.swb-explorer figcaption {{min-height: 3em;}}
.swb-explorer .swb-field {{display: block; width: 100%; height: auto;}}
.swb-explorer .swb-field rect {{shape-rendering: crispEdges;}}
.swb-field text {{fill: currentColor; font-size: 11px;}}
.swb-field text.swb-note {{font-size: 10px; paint-order: stroke; stroke: var(--jp-layout-color0, Canvas);
  stroke-width: 3px;}}
.swb-field .swb-grid {{stroke: currentColor; stroke-opacity: 0.22;}}
.swb-field .swb-one {{stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 2 3; fill: none;}}
.swb-field .swb-level {{stroke: currentColor; stroke-opacity: 0.55; fill: none;}}
.swb-field .swb-even {{stroke: currentColor; stroke-width: 2.5; fill: none;}}
.swb-field .swb-here {{stroke: currentColor; stroke-opacity: 0.5; stroke-dasharray: 4 3;}}
.swb-explorer .swb-bar {{stroke: {palette.OKABE_ITO["vermillion"]}; stroke-width: 1.8;}}
.swb-explorer .swb-theory {{stroke: {palette.OKABE_ITO["blue"]}; stroke-width: 2.2; fill: none;}}
.swb-explorer .swb-ideal {{stroke: {palette.OKABE_ITO["grey"]}; stroke-width: 1.8; stroke-dasharray: 6 4; fill: none;}}
.swb-explorer .swb-now {{fill: {palette.OKABE_ITO["blue"]};}}
.swb-explorer .swb-best {{fill: {palette.OKABE_ITO["green"]};}}
.swb-explorer .swb-now, .swb-explorer .swb-best {{stroke: var(--jp-layout-color0, Canvas); stroke-width: 1.5;}}
.swb-explorer .swb-measured {{fill: var(--jp-layout-color0, Canvas); stroke: {palette.OKABE_ITO["vermillion"]};
  stroke-width: 2.4;}}
.swb-explorer .swb-chosen {{fill: {palette.OKABE_ITO["vermillion"]}; stroke: {palette.OKABE_ITO["vermillion"]};}}
.swb-explorer .swb-guess {{fill: {palette.OKABE_ITO["purple"]};}}
.swb-explorer .swb-key {{margin-right: 1.2em; white-space: nowrap; display: inline-block;}}
.swb-explorer .swb-key svg {{width: 24px; height: 14px; vertical-align: -2px; margin-right: 4px;}}
@media (forced-colors: active) {{.swb-explorer {{--jp-layout-color0: Canvas;}}}}
.swb-explorer .swb-table table {{border-collapse: collapse; margin: 4px 0 10px; color: inherit; font-size: inherit;
  font-variant-numeric: tabular-nums;}}
.swb-explorer .swb-table tr:nth-child(n) {{background: none;}}
.swb-explorer .swb-table :is(th, td) {{padding: 0 0 0 1.4em; border: 0; font-weight: 400;}}
.swb-explorer .swb-table :is(th:first-child, th[scope=row]) {{padding-left: 0; text-align: left;}}
.swb-explorer .swb-table tbody tr {{border-top: 1px solid #8c8c8c4d;}}
"""


@dataclass(frozen=True)
class View:
    """What the explorer stands at. points: as `points_table`, those that may be seen; chosen: index in it, or -1;
    guess: of the quantity at alpha and gamma, None for none.
    """

    quantity: str
    alpha: float
    gamma: int
    max_gamma: int
    costs: Costs
    points: pd.DataFrame
    chosen: int = -1
    guess: float | None = None

    @property
    def value(self) -> float:
        """Of the quantity, here."""
        return float(self.costs.value(self.quantity, self.alpha, self.gamma))

    @property
    def best(self) -> int:
        """The best gamma at this alpha; 0: do not speculate."""
        return self.costs.best_gamma(self.alpha, self.max_gamma)


def figures_html(view: View) -> str:
    """The three figures and their legend."""
    name = QUANTITIES[view.quantity]
    captions = {
        f"{name} over alpha and gamma; heavy line: break-even": _surface(view),
        f"over gamma, at alpha = {view.alpha:.2f}": _slice(view, "gamma"),
        f"over alpha, at gamma = {view.gamma}": _slice(view, "alpha"),
    }
    figures = "".join(
        f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" for caption, svg in captions.items()
    )
    return f'<div class="swb-fields">{figures}</div>{_legend(view)}'


def shade(quantity: str, value: float) -> str:
    """The colour of a cell: nothing at 1, blue the more above, vermillion the more below; full at four times."""
    strength = min(1.0, abs(log2(value)) / 2)
    return f'fill="{GAIN if value >= 1 else LOSS}" fill-opacity="{0.85 * strength:.2f}"'


def _surface(view: View) -> str:
    field = Field(0.0, 1.0, 0.5, view.max_gamma + 0.5)
    cells = surface_table(view.costs, view.quantity, view.max_gamma)
    half = (cells["alpha"].iloc[1] - cells["alpha"].iloc[0]) / 2
    parts = [
        field.cell(
            (row.alpha - half, row.alpha + half), (row.gamma - 0.5, row.gamma + 0.5), shade(view.quantity, row.value),
            f"alpha {row.alpha:.2f}, gamma {row.gamma}: {row.value:.2f}",
        )
        for row in cells.itertuples()
    ]  # fmt: skip
    parts += _levels(field, view)
    parts += [field.upright(view.alpha, "swb-here"), field.level(view.gamma, "swb-here")]
    parts += [_point(field, view, place, row.alpha, row.gamma) for place, row in _measured(view)]
    parts.append(field.mark("diamond", view.alpha, view.gamma, 'class="swb-now"', f"here: {view.value:.2f}"))
    if view.best:
        parts.append(field.mark("star", view.alpha, view.best, 'class="swb-best"', f"best gamma: {view.best}"))
    words = f"{QUANTITIES[view.quantity]} over alpha and gamma: {view.value:.2f} at {view.alpha:.2f} and {view.gamma}"
    return field.svg(words, "alpha: acceptance probability", "gamma: tokens proposed", parts)


def _levels(field: Field, view: View) -> Iterable[str]:
    """Lines of equal value, each with its number at another height, so that no two meet."""
    for place, (level, line) in enumerate(level_table(view.costs, view.quantity, view.max_gamma).groupby("level")):
        points = list(zip(line["alpha"], line["gamma"], strict=True))
        yield field.curve(points, f'class="{"swb-even" if level == 1 else "swb-level"}"')
        alpha, gamma = points[-1 - len(points) * (1 + 2 * place) // 16]
        yield field.note(min(max(alpha, 0.12), 0.97), gamma, "break-even" if level == 1 else f"{level:g}")


def _slice(view: View, over: str) -> str:
    line = slice_table(
        view.costs, view.quantity, over=over, alpha=view.alpha, gamma=view.gamma, max_gamma=view.max_gamma
    )
    field = Field(0.0, float(view.max_gamma if over == "gamma" else 1), 0.0, _top(view, line))
    parts = [
        field.level(1.0, "swb-one"),
        field.upright(view.gamma if over == "gamma" else view.alpha, "swb-here"),
        *(
            field.curve(zip(line["x"], line[name], strict=True), f'class="{look}"')
            for name, look in (("ideal", "swb-ideal"), ("value", "swb-theory"))
            if name == "value" or view.quantity == "speedup"
        ),
    ]
    value, low, high = COLUMNS[view.quantity]
    for place, row in _measured(view):
        x = getattr(row, over)
        parts.append(field.interval(x, getattr(row, low), getattr(row, high), "swb-bar"))
        parts.append(_point(field, view, place, x, getattr(row, value)))
    here = view.gamma if over == "gamma" else view.alpha
    parts.append(field.mark("diamond", here, view.value, 'class="swb-now"', f"here: {view.value:.2f}"))
    if over == "gamma" and view.best and view.quantity == "speedup":
        best = float(view.costs.speedup(view.alpha, view.best))
        parts.append(field.mark("star", view.best, best, 'class="swb-best"', f"best gamma: {view.best}, {best:.2f}"))
    if view.guess is not None:
        parts.append(field.mark("triangle", here, view.guess, 'class="swb-guess"', f"your guess: {view.guess:.2f}"))
    title = "gamma: tokens proposed" if over == "gamma" else "alpha: acceptance probability"
    return field.svg(_told(view, over, line), title, QUANTITIES[view.quantity], parts)


def _told(view: View, over: str, line: pd.DataFrame) -> str:
    """A slice for who does not see it: where it stands, its ends, the best gamma, and what was measured."""
    here = view.gamma if over == "gamma" else view.alpha
    told = [f"{QUANTITIES[view.quantity]} over {over}: {view.value:.2f} at {number(here) if here < 1 else f'{here:g}'}"]
    told.append(", ".join(f"{row.value:.2f} at {row.x:g}" for row in line.iloc[[0, -1]].itertuples()))
    if over == "gamma" and view.best and view.quantity == "speedup":
        told.append(f"best gamma {view.best}")
    points = [f"{row.label} {getattr(row, COLUMNS[view.quantity][0]):.2f}" for _, row in _measured(view)]
    if points:
        more = f" and {len(points) - MOST_TOLD} more" if len(points) > MOST_TOLD else ""
        told.append(f"measured: {', '.join(points[:MOST_TOLD])}{more}")
    return "; ".join(told)


def _measured(view: View) -> Iterable[tuple[int, tuple]]:
    """(index, row) of the points that have the quantity."""
    column = COLUMNS[view.quantity][0]
    return [(row.Index, row) for row in view.points.itertuples() if not isnan(getattr(row, column))]


def _point(field: Field, view: View, place: int, x: float, y: float) -> str:
    row = view.points.loc[place]
    value, low, high = (row[name] for name in COLUMNS[view.quantity])
    around = "" if isnan(low) else f" ({low:.2f} to {high:.2f})"
    look = 'class="swb-chosen"' if place == view.chosen else 'class="swb-measured"'
    return field.mark("circle", x, y, look, f"{row['label']}: measured {value:.2f}{around}")


def _top(view: View, line: pd.DataFrame) -> float:
    """Where the axis ends: above the theory's line and all that was measured or guessed; the ideal may leave it."""
    value, _, high = COLUMNS[view.quantity]
    seen = [line["value"].max(), 1.5, view.guess or 0.0]
    seen += [view.points[name].max() for name in (value, high) if view.points[name].notna().any()]
    return ceil(2.2 * max(seen)) / 2


def _legend(view: View) -> str:
    keys = [("diamond", "swb-now", "where the sliders stand"), ("star", "swb-best", "best gamma at this alpha")]
    if view.points[COLUMNS[view.quantity][0]].notna().any():
        keys.append(("circle", "swb-measured", "measured, with its interval (filled: the chosen one)"))
    if view.guess is not None:
        keys.append(("triangle", "swb-guess", "your guess"))
    keys.append(("line", "swb-theory", "theory at these costs"))
    if view.quantity == "speedup":
        keys.append(("line", "swb-ideal", "E[N]: were guesses and their verification free"))
    shapes = MARKS | {"line": "M-12 0H12"}
    entries = [
        f'<span class="swb-key"><svg viewBox="-12 -8 24 16" aria-hidden="true">'
        f'<path d="{shapes[shape]}" class="{look}"/></svg>{words}</span>'
        for shape, look, words in keys
    ]
    colours = "blue: above 1, vermillion: below 1" if view.quantity == "speedup" else "blue: more tokens per round"
    return f'<p>{unstyled("; ").join(entries)}{unstyled("; ")}<span class="swb-key">surface: {colours}</span></p>'
