"""p against q at one position as SVG that follows the colours of the page: drawn at once, and the same in an export.

The same picture as `plots.distribution`, which is for print and hovering.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import count
from math import floor, log10

import pandas as pd

from specworkbench.plots import palette
from specworkbench.widgets.text import number

WIDTH, HEIGHT = 760, 336
_LEFT, _RIGHT = 62, 750
_LONGEST = 14
_numbers = count()


@dataclass(frozen=True)
class _Panel:
    """A part of the picture with an axis of its own: top and bottom (pixels), and the value at the top."""

    top: float
    bottom: float
    highest: float

    def height(self, value: float) -> float:
        """Pixels above the panel's floor."""
        return (self.bottom - self.top) * value / self.highest if self.highest > 0 else 0.0

    def bar(self, left: float, width: float, value: float, look: str) -> str:
        """A bar on the floor; nothing where it could not be seen."""
        height = self.height(value)
        if height < 0.05:
            return ""
        place = f'x="{left:.1f}" y="{self.bottom - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
        return f"<rect {place} {look}/>"

    def axis(self, name: str, at_most: int) -> str:
        """Grid lines with their values, and the panel's name standing beside them."""
        parts = []
        for value in ticks(self.highest, at_most):
            y = self.bottom - self.height(value)
            line = f'x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            parts.append(f'<line {line} stroke="currentColor" stroke-opacity="0.22"/>')
            parts.append(_text(_LEFT - 6, y + 4, f"{value:g}", "end", 11))
        middle = (self.top + self.bottom) / 2
        turned = f'transform="rotate(-90 14 {middle:.1f})"'
        return "".join([*parts, _text(14, middle, name, "middle", 12, turned)])


def distribution_svg(table: pd.DataFrame) -> str:
    """Bars of p and q with their overlap framed and hatched, the residual below; table as in `plots.distribution`."""
    proposed = bool(table["q"].notna().any())
    highest = float(table[["p", "q"] if proposed else ["p"]].max(axis=None))
    upper = _Panel(34, 184 if proposed else 264, highest)
    lower = _Panel(206, 264, float(table["residual"].max())) if proposed else None
    hatch = f"swb-hatch-{next(_numbers)}"
    overlap = f'fill="url(#{hatch})" stroke="{palette.OVERLAP}" stroke-width="2"'
    parts = [
        f'<svg class="swb-chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(describe(table))}">',
        _hatch(hatch),
        _legend(proposed, overlap),
        upper.axis("probability", 4),
        lower.axis("residual", 2) if lower else "",
    ]
    slot = (_RIGHT - _LEFT) / len(table)
    for place, row in enumerate(table.itertuples()):
        parts.append(_token(row, _LEFT + slot * (place + 0.12), slot * 0.76, upper, lower, overlap))
    return "".join([*parts, "</svg>"])


def describe(table: pd.DataFrame) -> str:
    """The chart in words: the three most probable tokens, and the overlap."""
    first = ", ".join(f"{row.label} {number(row.p)}" for row in table.head(3).itertuples())
    if not table["q"].notna().any():
        return f"Target p, highest first: {first}"
    overlap, residual = (number(float(table[name].sum())) for name in ("overlap", "residual"))
    return f"Target p against draft q: overlap {overlap}, residual {residual}; highest p: {first}"


def numbers_html(table: pd.DataFrame) -> str:
    """The numbers of the chart by token, as a table that can be folded away; table as in `plots.distribution`."""
    names = ["p", "q", "overlap", "residual"] if table["q"].notna().any() else ["p"]
    head = "".join(f'<th scope="col" align="right">{name}</th>' for name in names)
    rows = []
    for _, row in table.iterrows():
        label = f"<code>{escape(row['label'])}</code>" if row.name < len(table) - 1 else escape(row["label"])
        glyph = f"{palette.OUTCOMES[row['mark']].glyph} " if row["mark"] else ""
        cells = "".join(f'<td align="right">{number(row[name])}</td>' for name in names)
        rows.append(f'<tr><th scope="row" align="left">{glyph}{label}</th>{cells}</tr>')
    table_html = f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<details class="swb-table" open><summary>The same in numbers</summary>{table_html}</details>'


def _token(row: tuple, left: float, width: float, upper: _Panel, lower: _Panel | None, overlap: str) -> str:
    """All bars of one token, its label, and its numbers as a tooltip."""
    bars = [upper.bar(left, width / 2 if lower else width, row.p, f'fill="{palette.TARGET}"')]
    if lower:
        bars.append(upper.bar(left + width / 2, width / 2, row.q, f'fill="{palette.DRAFT}"'))
        bars.append(upper.bar(left, width, row.overlap, overlap))
        bars.append(lower.bar(left, width, row.residual, f'fill="{palette.RESIDUAL}"'))
    numbers = [("p", row.p), ("q", row.q), ("overlap", row.overlap), ("residual", row.residual)]
    shown = ", ".join(f"{name} {number(value)}" for name, value in numbers if not pd.isna(value))
    tooltip = f"<title>{escape(row.label)}: {shown}</title>"
    return f"<g>{tooltip}{''.join(bars)}{_label(row, left + width / 2)}</g>"


def _label(row: tuple, x: float) -> str:
    """The token below the axis, slanted; bold and with its glyph where the round is about it."""
    text = row.label if len(row.label) <= _LONGEST else row.label[: _LONGEST - 1] + "…"
    look = f'class="swb-code" transform="rotate(-35 {x:.1f} 278)"'
    if row.mark:
        text, look = f"{palette.OUTCOMES[row.mark].glyph} {text}", f'{look} font-weight="700"'
    return _text(x, 278, text, "end", 12, look)


def _text(x: float, y: float, text: str, anchor: str, size: int, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="currentColor" {more}>{escape(text)}</text>'


def _hatch(name: str) -> str:
    """White strokes on a veil of the overlap's colour, as a pattern to fill with."""
    return (
        f'<defs><pattern id="{name}" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="7" height="7" fill="{palette.OVERLAP}" fill-opacity="0.3"/>'
        '<rect width="2" height="7" fill="#fff" fill-opacity="0.8"/></pattern></defs>'
    )


def ticks(highest: float, at_most: int) -> list[float]:
    """0 and round values up to `highest`, so many intervals at most."""
    if not highest > 0:
        return [0.0]
    rough = highest / at_most
    power = 10.0 ** floor(log10(rough))
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * (1 - 1e-9))
    return [round(step * i, 12) for i in range(floor(highest / step + 1e-9) + 1)]


def _legend(proposed: bool, overlap: str) -> str:
    entries = [("p (target)", f'fill="{palette.TARGET}"')]
    if proposed:
        entries += [
            ("q (draft)", f'fill="{palette.DRAFT}"'),
            ("overlap min(p, q)", overlap),
            ("residual max(p − q, 0)", f'fill="{palette.RESIDUAL}"'),
        ]
    x, parts = _LEFT, []
    for name, look in entries:
        parts.append(f'<rect x="{x}" y="7" width="12" height="12" {look}/>{_text(x + 18, 17, name, "start", 12)}')
        x += 44 + 7 * len(name)
    return "".join(parts)
