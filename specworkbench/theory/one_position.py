"""One position in closed form: a guess drawn from q is judged against p, and one token comes out.

Every rule of one position, right or wrong, is three choices: the row g that the guess x is drawn from, the probability
a(x) of accepting it, and the row r that the token is drawn from when it is refused. What comes out is

    emitted(x) = g(x) a(x) + (1 - sum g a) r(x)                                                            (derived)

The token rule takes g = q, a = min(1, p/q), r = max(p - q, 0) normalised: g a = min(p, q), and emitted = min(p, q) +
max(p - q, 0) = p (Leviathan, Kalman, Matias 2023, Algorithm 1 and appendix A.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import probability, rows

EXACT = 1e-12
"""A law this near to p, in total variation, is p."""


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


@dataclass(frozen=True)
class OnePosition:
    """What happens at one position; all arrays (vocab,).

    guess: g, sums to 1; accept: a; accepted: g a, what comes out as an accepted guess; residual: max(p - q, 0);
    replacement: r, normalised; replaced: (1 - acceptance) r, what comes out in place of a refused guess.
    """

    p: np.ndarray
    q: np.ndarray
    guess: np.ndarray
    accept: np.ndarray
    accepted: np.ndarray
    residual: np.ndarray
    replacement: np.ndarray
    replaced: np.ndarray

    @property
    def acceptance(self) -> float:
        """Probability that the guess is accepted."""
        return float(self.accepted.sum())

    @property
    def emitted(self) -> np.ndarray:
        """(vocab,) the law of the token that comes out."""
        return self.accepted + self.replaced

    @property
    def tv(self) -> float:
        """Total variation between what comes out and p."""
        return float(np.abs(self.emitted - self.p).sum() / 2)


def one_position(p: ArrayLike, q: ArrayLike, rule: str = "token", **settings: float) -> OnePosition:
    """All that happens at one position under a rule of `RULES`; p, q: (vocab,) probabilities that sum to 1.

    settings: the rule's own, see `SETTINGS`. Raises `InputError` for what is no distribution, for an unknown rule and
    for a setting that the rule does not have or that is out of its limits.
    """
    p, q = distribution("p", p), distribution("q", q)
    if len(p) != len(q):
        raise InputError(f"p has {len(p)} tokens and q has {len(q)}; they must be over the same tokens")
    chosen, given = rule_named(rule), settings_of(rule, settings)

    def row(choices: dict[str, Callable[..., np.ndarray]], name: str) -> np.ndarray:
        return choices[name](p, q, **{key: value for key, value in given.items() if key in _used(name)})

    guess, accept = row(GUESSES, chosen.guess), row(ACCEPTS, chosen.accept)
    weights = row(REPLACEMENTS, chosen.replacement)
    weights = weights if weights.sum() > 0 else p
    accepted, replacement = guess * accept, weights / weights.sum()
    replaced = max(0.0, 1.0 - accepted.sum()) * replacement
    return OnePosition(p, q, guess, accept, accepted, np.maximum(p - q, 0.0), replacement, replaced)


def emitted_law(p: ArrayLike, q: ArrayLike, rule: str = "token", **settings: float) -> np.ndarray:
    """(vocab,) the law of the one token that comes out; see `one_position`."""
    return one_position(p, q, rule, **settings).emitted


def with_probability(probs: ArrayLike, index: int, value: float) -> np.ndarray:
    """The distribution with one probability set to `value`, the others scaled so that all sum to 1.

    Where the others are all 0 they share the rest equally.
    """
    probs = np.array(distribution("the distribution", probs))
    others = np.arange(len(probs)) != index
    value = float(probability("the new value", value))
    rest = probs[others].sum()
    shares = probs[others] / rest if rest > 0 else 1 / others.sum()
    probs[others] = (1 - value) * shares
    probs[index] = value
    return probs


def distribution(name: str, probs: ArrayLike) -> np.ndarray:
    """(vocab,) float64. Raises `InputError` for what is not a list of probabilities that sum to 1."""
    probs = probability(name, probs)
    if probs.ndim != 1 or len(probs) < 2:
        raise InputError(f"{name} has shape {probs.shape}; it must be a list of at least 2 probabilities")
    return rows(name, probs)


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


def _used(formula: str) -> set[str]:
    """The settings that a formula names."""
    words = formula.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return set(words) & set(SETTINGS)
