"""The rule's decision as a bar from 0 to 1: accepted left of the threshold, rejected right of it, u a needle."""

from __future__ import annotations

import math

from specworkbench.plots import palette
from specworkbench.widgets.sentences import Decision
from specworkbench.widgets.text import distinct

WIDTH, HEIGHT = 600, 64
_LEFT, _RIGHT, _TOP, _BOTTOM = 12, 588, 22, 42
_ACCEPT, _REJECT = palette.OUTCOMES["accepted"], palette.OUTCOMES["rejected"]


def decision_svg(decision: Decision) -> str:
    """The bar as SVG whose text follows the colours of the page."""
    threshold, u = distinct(decision.accept_prob, decision.u)
    split = _x(decision.accept_prob)
    parts = [
        f'<svg class="swb-decision" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{describe(decision)}">',
        _bar(_LEFT, split, _ACCEPT.color, 1.0),
        _bar(split, _RIGHT, _REJECT.color, 0.55),
        _label((_LEFT + split) / 2, _TOP - 7, f"{_ACCEPT.glyph} accept", split - _LEFT > 70),
        _label((split + _RIGHT) / 2, _TOP - 7, f"{_REJECT.glyph} reject", _RIGHT - split > 70),
        _label(_LEFT, _BOTTOM + 16, "0", split - _LEFT > 60, "start"),
        _label(_RIGHT, _BOTTOM + 16, "1", _RIGHT - split > 60, "end"),
    ]
    if decision.greedy or math.isnan(decision.u):
        parts.append(_label((_LEFT + _RIGHT) / 2, _BOTTOM + 16, "the greedy rule compares tokens and draws no u", True))
    else:
        parts += [_threshold(split), _needle(_x(decision.u))]
        parts += _values(split, _x(decision.u), f"accept_prob {threshold}", f"u {u}")
    return "".join([*parts, "</svg>"])


def describe(decision: Decision) -> str:
    """The bar in words, for those who cannot see it."""
    verdict = "accepted" if decision.accepted else "rejected"
    if decision.greedy or math.isnan(decision.u):
        return f"Decision without a random number: {verdict}"
    threshold, u = distinct(decision.accept_prob, decision.u)
    return f"Decision: u = {u} against accept_prob = {threshold}, {verdict}"


def no_decision(outcome: str) -> str:
    """What stands in the bar's place where the rule judged nothing."""
    reasons = {
        "discarded": "No decision here: the rule stopped at an earlier position.",
        "bonus": "No decision here: the token was drawn from the target itself.",
        "plain": "No decision here: nothing was proposed, the target drew the token itself.",
    }
    return reasons.get(outcome, "No decision was recorded here.")


def _x(value: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(1.0, max(0.0, value))


def _bar(left: float, right: float, color: str, opacity: float) -> str:
    size = f'x="{left:.1f}" y="{_TOP}" width="{right - left:.1f}" height="{_BOTTOM - _TOP}"'
    return f'<rect {size} fill="{color}" fill-opacity="{opacity}"/>'


def _label(x: float, y: float, text: str, fits: bool, anchor: str = "middle") -> str:
    if not fits:
        return ""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="12" fill="currentColor">{text}</text>'


def _threshold(x: float) -> str:
    ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{_BOTTOM + 4}"'
    return f'<line {ends} stroke="currentColor" stroke-width="2"/>'


def _needle(x: float) -> str:
    tip = (_TOP + _BOTTOM) / 2
    return (
        f'<circle cx="{x:.1f}" cy="{tip}" r="6.5" fill="#fff" stroke="#111" stroke-width="2"/>'
        f'<circle cx="{x:.1f}" cy="{tip}" r="2" fill="#111"/>'
    )


def _values(split: float, needle: float, threshold: str, u: str) -> list[str]:
    """The two numbers below the bar, kept apart and inside it."""
    y = _BOTTOM + 16
    low, high = sorted(((split, threshold), (needle, u)))
    widths = [6.6 * len(low[1]), 6.6 * len(high[1])]
    left = min(max(low[0], _LEFT + 20 + widths[0] / 2), _RIGHT - 30 - widths[1] - widths[0] / 2)
    right = min(max(high[0], left + (widths[0] + widths[1]) / 2 + 14), _RIGHT - 14 - widths[1] / 2)
    return [_label(left, y, low[1], True), _label(right, y, high[1], True)]
