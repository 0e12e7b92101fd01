"""The playground's figures, words and numbers as HTML without scripts, by the same measures as its script's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import count

import numpy as np

from specworkbench.theory.one_position import EXACT, OnePosition, PositionRule

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 264, 34, 354, 16, 196
SEEN = 5e-4
"""A difference below this is not seen in three digits."""

_names = count()
_PATTERNS = """<defs>
<pattern id="{0}-overlap" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" class="swb-ground-overlap"/><rect width="2" height="6" class="swb-ink-overlap"/></pattern>
<pattern id="{0}-residual" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" class="swb-ground-residual"/>
<circle cx="3" cy="3" r="1.3" class="swb-ink-residual"/></pattern>
<pattern id="{0}-draft" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" class="swb-ground-draft"/><rect width="6" height="1.6" class="swb-ink-draft"/></pattern>
</defs>"""


def playground_html(title: str, tokens: Sequence[str], rule: PositionRule, position: OnePosition) -> str:
    """Everything but the controls."""
    words = verdict(position, rule, tokens)
    sign = "= p" if position.tv < EXACT else "≠ p"
    heading = f'<div class="swb-title">{escape(title)}</div>' if title else ""
    refused = f"(probability {1 - position.acceptance:.3f})"
    figures = [
        _figure("p and q", f"p and q over {len(tokens)} tokens", tokens, lambda name: _given(name, position)),
        _figure(
            f"residual max(p − q, 0); framed, what is drawn when refused {refused}",
            f"Residual of mass {position.residual.sum():.3f}", tokens, lambda name: _residual(name, position),
        ),
        _figure(
            "accepted + drawn when refused = what comes out; the frame is p",
            words, tokens, lambda name: _emitted(name, position),
        ),
    ]  # fmt: skip
    return (
        f'<div class="swb swb-scripted swb-play">{heading}'
        f'<p class="swb-formula">{escape(rule.label)}: {escape(in_words(rule))}</p>'
        f'<div class="swb-fields">{"".join(figures)}</div>'
        f'<p class="swb-says"><strong>{sign}</strong> {escape(words)} {escape(rule.says)}</p>'
        f"{numbers_html(tokens, position)}</div>"
    )


def verdict(position: OnePosition, rule: PositionRule, tokens: Sequence[str]) -> str:
    """What comes out, in words."""
    accepted = f"Accepted with probability {position.acceptance:.3f}."
    if position.tv < EXACT:
        luck = "" if rule.kind == "exact" else " That is so with these numbers; in general the rule does not keep p."
        return f"{accepted} What comes out is p.{luck}"
    worst = int(np.argmax(np.abs(position.emitted - position.p)))
    instead = f"{position.emitted[worst]:.3f} in place of {position.p[worst]:.3f}"
    return f"{accepted} What comes out is not p: TV {position.tv:.3f}; {tokens[worst]} comes out with {instead}."


def in_words(rule: PositionRule) -> str:
    """What the rule does."""
    instead = "take {}" if rule.replacement.startswith("argmax") else "draw in proportion to {}"
    return f"Guess from {rule.guess}; accept with {rule.accept}; when refused, {instead.format(rule.replacement)}."


def signed(value: float) -> str:
    """A difference with its sign; 0 below what three digits show."""
    return "0" if abs(value) < SEEN else f"{'+' if value > 0 else '−'}{abs(value):.3f}"


def numbers_html(tokens: Sequence[str], position: OnePosition) -> str:
    """The numbers of the figures, by token."""
    rows = {
        "p (target)": position.p,
        "q (draft)": position.q,
        "min(p, q)": np.minimum(position.p, position.q),
        "max(p − q, 0)": position.residual,
        "accepted": position.accepted,
        "drawn when refused": position.replaced,
        "comes out": position.emitted,
    }
    cells = {name: [f"{value:.3f}" for value in row] for name, row in rows.items()}
    cells["comes out − p"] = [signed(value) for value in position.emitted - position.p]
    head = "".join(f'<th scope="col" class="swb-code">{escape(_shorten(token))}</th>' for token in tokens)
    body = "".join(
        f'<tr><th scope="row">{name}</th><td>{"</td><td>".join(row)}</td></tr>' for name, row in cells.items()
    )
    return f'<table class="swb-numbers"><tr><td></td>{head}</tr>{body}</table>'


def _figure(caption: str, label: str, tokens: Sequence[str], bars: Callable[[str], Iterable[str]]) -> str:
    name = f"swb-twin-{next(_names)}"
    return (
        f'<figure class="swb-figure"><figcaption>{escape(caption)}</figcaption>'
        f'<svg class="swb-field" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{_PATTERNS.format(name)}{_axis()}{''.join(_labels(tokens))}{''.join(bars(name))}</svg></figure>"
    )


def _given(name: str, position: OnePosition) -> Iterable[str]:
    for i, (p, q) in enumerate(zip(position.p, position.q, strict=True)):
        slots = len(position.p)
        yield _bar(i, slots, 0.08, 0.49, 0, p, 'class="swb-p"')
        yield _bar(i, slots, 0.51, 0.92, 0, q, f'fill="url(#{name}-draft)"')
        yield _bar(i, slots, 0.08, 0.92, 0, min(p, q), f'class="swb-overlap" fill="url(#{name}-overlap)"')


def _residual(name: str, position: OnePosition) -> Iterable[str]:
    for i, (residual, replacement) in enumerate(zip(position.residual, position.replacement, strict=True)):
        yield _bar(i, len(position.p), 0.08, 0.49, 0, residual, f'fill="url(#{name}-residual)"')
        yield _bar(i, len(position.p), 0.51, 0.92, 0, replacement, 'class="swb-replacement"')


def _emitted(name: str, position: OnePosition) -> Iterable[str]:
    slots = len(position.p)
    for i, (p, accepted, replaced) in enumerate(zip(position.p, position.accepted, position.replaced, strict=True)):
        yield _bar(i, slots, 0.15, 0.85, 0, accepted, f'fill="url(#{name}-overlap)"')
        yield _bar(i, slots, 0.15, 0.85, accepted, replaced, f'fill="url(#{name}-residual)"')
        yield _bar(i, slots, 0.06, 0.94, 0, p, 'class="swb-outline"')
        off = accepted + replaced - p
        if abs(off) >= SEEN:
            top = _y(max(p, accepted + replaced)) - 4
            yield _text(_x(i + 0.5, slots), top, "▲" if off > 0 else "▼", 'class="swb-mark"')


def _bar(slot: int, slots: int, start: float, end: float, floor: float, value: float, look: str) -> str:
    left, width = _x(slot + start, slots), (end - start) * (RIGHT - LEFT) / slots
    height = _y(floor) - _y(floor + value)
    place = f'x="{left:.2f}" y="{_y(floor + value):.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f"<rect {place} {look}/>"


def _axis() -> str:
    lines = []
    for value in (0, 0.25, 0.5, 0.75, 1):
        y = _y(value)
        lines.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:g}" y2="{y:g}" class="swb-grid"/>')
        lines.append(_text(LEFT - 4, y + 3.5, f"{value:g}", "", "end"))
    return "".join(lines)


def _labels(tokens: Sequence[str]) -> Iterable[str]:
    for i, token in enumerate(tokens):
        x, slanted = _x(i + 0.5, len(tokens)), len(token) > 4
        turn = f'transform="rotate(-38 {x:.2f} {BOTTOM + 14})"' if slanted else ""
        yield _text(x, BOTTOM + 15, _shorten(token), f'class="swb-code" {turn}', "end" if slanted else "middle")


def _text(x: float, y: float, text: str, look: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" {look}>{escape(text)}</text>'


def _shorten(text: str, most: int = 10) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _x(slot: float, slots: int) -> float:
    return LEFT + slot * (RIGHT - LEFT) / slots


def _y(value: float) -> float:
    return BOTTOM - value * (BOTTOM - TOP)
