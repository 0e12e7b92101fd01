"""The rules of one position, right and wrong ones, as three formulas each, and their settings. See `one_position`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specworkbench.errors import InputError


@dataclass(frozen=True)
class Setting:
    """A number that a rule takes: its default, its limits (both allowed), and the step of a control for it."""

    default: float
    low: float
    high: float
    step: float


SETTINGS = {
    "leniency": Setting(0.8, 0.01, 1.0, 0.01),
    "weight": Setting(0.8, 0.01, 1.0, 0.01),
    "epsilon": Setting(0.09, 0.0, 1.0, 0.01),
    "delta": Setting(0.3, 0.0, 1.0, 0.01),
    "k": Setting(2, 1, 1000, 1),
    "floor": Setting(0.05, 0.0, 1.0, 0.01),
}


def _cut(p: np.ndarray, q: np.ndarray, k: float) -> np.ndarray:
    """The k most probable tokens of q, and what is tied with the last of them, normalised."""
    kept = np.where(q >= np.sort(q)[::-1][min(int(k), len(q)) - 1], q, 0.0)
    return kept / kept.sum()


def _best(row: np.ndarray) -> np.ndarray:
    """All on the most probable token, the first among equals."""
    return np.eye(len(row))[np.argmax(row)]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above/below, at most 1; 1 where below is 0 (such a token is never asked about, or is accepted for certain)."""
    return np.divide(np.minimum(above, below), below, out=np.ones_like(above), where=below > 0)


def _typical(p: np.ndarray, q: np.ndarray, epsilon: float, delta: float) -> np.ndarray:
    positive = p[p > 0]
    return (p > min(epsilon, delta * np.exp((positive * np.log(positive)).sum()))).astype(float)


def _mixed(p: np.ndarray, q: np.ndarray, weight: float) -> np.ndarray:
    return _ratio(weight * p + (1 - weight) * q, q)


GUESSES: dict[str, Callable[..., np.ndarray]] = {
    "q": lambda p, q: q,
    "the top k of q": _cut,
    "argmax q": lambda p, q: _best(q),
}
"""The row g that the guess is drawn from, by its formula; settings by name."""

ACCEPTS: dict[str, Callable[..., np.ndarray]] = {
    "min(1, p/q)": lambda p, q: _ratio(p, q),
    "p": lambda p, q: p,
    "min(1, p/(leniency q))": lambda p, q, leniency: _ratio(p, leniency * q),
    "min(1, v/q), v = weight p + (1 − weight) q": _mixed,
    "1 if p > min(epsilon, delta exp(−H(p))), else 0": _typical,
    "1": lambda p, q: np.ones_like(p),
    "min(1, q/p)": lambda p, q: _ratio(q, p),
    "min(1, p/max(q, floor))": lambda p, q, floor: _ratio(p, np.maximum(q, floor)),
}
"""The probability a(x) of accepting guess x."""

REPLACEMENTS: dict[str, Callable[..., np.ndarray]] = {
    "max(p − q, 0)": lambda p, q: np.maximum(p - q, 0.0),
    "p (1 − q)": lambda p, q: p * (1.0 - q),
    "p": lambda p, q: p,
    "q": lambda p, q: q,
    "|p − q|": lambda p, q: np.abs(p - q),
    "max(q − p, 0)": lambda p, q: np.maximum(q - p, 0.0),
    "exp(max(p − q, 0))": lambda p, q: np.exp(np.maximum(p - q, 0.0)),
    "argmax p": lambda p, q: _best(p),
}
"""Weights, not yet normalised, of the token drawn when the guess is refused. Where nothing is left, p is taken.

p (1 - q): under equality a refused x leaves p without x; p(y) q(x) summed over all x other than y.
"""


@dataclass(frozen=True)
class PositionRule:
    """A rule of one position: the names of its three choices, and what is to be said of it.

    kind: whether it keeps p (`exact`), gives it up for acceptance (`lossy`), or is a mistake (`fault`).
    """

    label: str
    kind: str
    says: str
    guess: str = "q"
    accept: str = "min(1, p/q)"
    replacement: str = "max(p − q, 0)"
    settings: tuple[str, ...] = ()


RULES = {
    "token": PositionRule(
        "token rule", "exact", "What the guesses leave over of p is just what the residual gives: the sum is p."
    ),
    "equality": PositionRule(
        "equality rule", "exact",
        "The target draws by itself, so q has no say in what comes out; accepted is Σ p q, at most Σ min(p, q).",
        accept="p", replacement="p (1 − q)",
    ),
    "lenient": PositionRule(
        "lenient rule (ratio × 1/leniency)", "lossy",
        "Guesses are kept more often than p allows, so what the draft likes too much comes out too often.",
        accept="min(1, p/(leniency q))", settings=("leniency",),
    ),
    "ensemble": PositionRule(
        "ensemble rule", "lossy",
        "The token rule for a mixture of p and q: the mixture comes out, not p.",
        accept="min(1, v/q), v = weight p + (1 − weight) q", settings=("weight",),
    ),
    "typical": PositionRule(
        "typical acceptance", "lossy",
        "Nothing is drawn but the guess: it comes out with q wherever p is not small, else the first choice does.",
        accept="1 if p > min(epsilon, delta exp(−H(p))), else 0", replacement="argmax p", settings=("epsilon", "delta"),
    ),
    "always accept": PositionRule(
        "every guess is accepted", "fault", "The draft writes alone: q comes out.", accept="1"
    ),
    "resample from p": PositionRule(
        "refused: draw from p", "fault",
        "min(p, q) is given once by the guess and then again by p, so what both like comes out too often.",
        replacement="p",
    ),
    "resample from q": PositionRule(
        "refused: draw from q again", "fault",
        "The second draw is the draft's and nobody judges it.",
        replacement="q",
    ),
    "residual |p − q|": PositionRule(
        "residual |p − q|", "fault",
        "Where q is above p something is added too, though the guess has filled p there already.",
        replacement="|p − q|",
    ),
    "residual q − p": PositionRule(
        "residual q − p", "fault",
        "min(p, q) and max(q − p, 0) make q: the draft's own law comes out.",
        replacement="max(q − p, 0)",
    ),
    "softmax of the residual": PositionRule(
        "softmax of the residual", "fault",
        "The residual is weights already; taken as logits it becomes nearly level, and even its zeros are drawn.",
        replacement="exp(max(p − q, 0))",
    ),
    "ratio q/p": PositionRule(
        "ratio upside down, q/p", "fault",
        "It keeps what the draft likes too much and refuses what it likes too little.",
        accept="min(1, q/p)",
    ),
    "accept with p": PositionRule(
        "accept with p, residual of the ratio", "fault",
        "Half of the equality rule and half of the token rule: p q and the residual do not make p.",
        accept="p",
    ),
    "raw q": PositionRule(
        "guess from the top k, ratio with all of q", "fault",
        "The q in the ratio is smaller than the one the guess came from, so guesses are kept too often.",
        guess="the top k of q", settings=("k",),
    ),
    "greedy draft": PositionRule(
        "guess argmax q, ratio with q", "fault",
        "The guess was certain, so its q was 1; judged by the soft q it is kept far too often.",
        guess="argmax q",
    ),
    "q floored": PositionRule(
        "q not below a floor in the ratio", "fault",
        "Where q is small the ratio is too small, and the residual does not know of it.",
        accept="min(1, p/max(q, floor))", settings=("floor",),
    ),
}  # fmt: skip


def rule_named(name: str) -> PositionRule:
    """The rule of that name. Raises `InputError` where there is none."""
    if name not in RULES:
        raise InputError(f"there is no rule {name!r} of one position; choose one of {', '.join(RULES)}")
    return RULES[name]


def settings_of(rule: str, settings: dict[str, float]) -> dict[str, float]:
    """The rule's settings, defaults filled in. Raises `InputError` for an unknown one, or one out of its limits."""
    own = rule_named(rule).settings
    for name, value in settings.items():
        if name not in own:
            has = f"it has {', '.join(own)}" if own else "it has none"
            raise InputError(f"the rule {rule!r} has no setting {name!r}; {has}")
        limits = SETTINGS[name]
        if not (isinstance(value, int | float) and limits.low <= value <= limits.high):
            raise InputError(f"{name} is {value!r}; it must be from {limits.low:g} to {limits.high:g}")
    return {name: settings.get(name, SETTINGS[name].default) for name in own}
