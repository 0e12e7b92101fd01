"""A field with two axes in SVG that follows the colours of the page: lines, marks, intervals and cells to scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from specworkbench.widgets.chart import ticks

WIDTH, HEIGHT = 360, 288
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 352, 10, 248

MARKS = {
    "circle": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "diamond": "M0 -6.5L6.5 0L0 6.5L-6.5 0z",
    "star": "M0 -8L2.1 -2.9L7.6 -2.5L3.4 1.1L4.7 6.5L0 3.6L-4.7 6.5L-3.4 1.1L-7.6 -2.5L-2.1 -2.9z",
    "triangle": "M0 -6.5L6.5 5L-6.5 5z",
}
"""Outlines around the origin."""


@dataclass(frozen=True)
class Field:
    """Axes from `x_low` to `x_high` and `y_low` to `y_high`, in the unit of the data."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (value - self.x_low) / (self.x_high - self.x_low)

    def y(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - self.y_low) / (self.y_high - self.y_low)

    def svg(self, label: str, x_title: str, y_title: str, parts: Iterable[str]) -> str:
        """The whole picture. label: it in words, for who does not see it."""
        middle = (_TOP + _BOTTOM) / 2
        titles = [
            text((_LEFT + _RIGHT) / 2, HEIGHT - 6, x_title),
            text(11, middle, y_title, more=f'transform="rotate(-90 11 {middle:.1f})"'),
        ]
        shape = f'class="swb-field" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}"'
        return f"<svg {shape}>{self._grid()}{''.join(parts)}{''.join(titles)}</svg>"

    def _grid(self) -> str:
        parts = []
        for value in ticks(self.y_high, 6):
            if value >= self.y_low:
                parts.append(_line(_LEFT, self.y(value), _RIGHT, self.y(value), "swb-grid"))
                parts.append(text(_LEFT - 5, self.y(value) + 4, f"{value:g}", "end"))
        for value in ticks(self.x_high, 6):
            if value >= self.x_low:
                parts.append(_line(self.x(value), _BOTTOM, self.x(value), _BOTTOM + 4, "swb-grid"))
                parts.append(text(self.x(value), _BOTTOM + 17, f"{value:g}"))
        return "".join(parts)

    def curve(self, points: Iterable[tuple[float, float]], look: str) -> str:
        """A line through the points that lie within the axes."""
        inside = [(x, y) for x, y in points if self.y_low <= y <= self.y_high and self.x_low <= x <= self.x_high]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in inside)
        return f'<polyline points="{path}" {look}/>' if len(inside) > 1 else ""

    def level(self, value: float, look: str) -> str:
        """A line across the field."""
        return _line(_LEFT, self.y(value), _RIGHT, self.y(value), look) if self.y_low <= value <= self.y_high else ""

    def upright(self, value: float, look: str) -> str:
        return _line(self.x(value), _TOP, self.x(value), _BOTTOM, look) if self.x_low <= value <= self.x_high else ""

    def interval(self, x: float, low: float, high: float, look: str) -> str:
        """A bar from low to high, with ends; what is beyond the axis is cut off. Nothing for NaN."""
        if not low <= high:
            return ""
        low, high = (min(max(value, self.y_low), self.y_high) for value in (low, high))
        place, ends = self.x(x), [self.y(low), self.y(high)]
        bars = "".join(_line(place - 4, end, place + 4, end, look) for end in ends)
        return _line(place, ends[0], place, ends[1], look) + bars

    def mark(self, shape: str, x: float, y: float, look: str, title: str = "") -> str:
        """One of `MARKS`; nothing outside the axes. title: what hovering says."""
        if not (self.x_low <= x <= self.x_high and self.y_low <= y <= self.y_high):
            return ""
        said = f"<title>{escape(title)}</title>" if title else ""
        return f'<path d="{MARKS[shape]}" transform="translate({self.x(x):.1f} {self.y(y):.1f})" {look}>{said}</path>'

    def cell(self, x: tuple[float, float], y: tuple[float, float], look: str, title: str) -> str:
        """A rectangle over a piece of both axes."""
        left, top = self.x(x[0]), self.y(y[1])
        size = f'width="{self.x(x[1]) - left:.1f}" height="{self.y(y[0]) - top:.1f}"'
        return f'<rect x="{left:.1f}" y="{top:.1f}" {size} {look}><title>{escape(title)}</title></rect>'

    def note(self, x: float, y: float, words: str) -> str:
        """Words at a point of the data."""
        return text(self.x(x), self.y(y), words, more='class="swb-note"')


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{look}"/>'
