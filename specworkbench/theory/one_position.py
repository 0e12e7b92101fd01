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
from specworkbench.theory.position_rules import (
    ACCEPTS,
    GUESSES,
    REPLACEMENTS,
    RULES,
    SETTINGS,
    PositionRule,
    rule_named,
    settings_of,
)

EXACT = 1e-12
"""A law this near to p, in total variation, is p."""


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


def _used(formula: str) -> set[str]:
    """The settings that a formula names."""
    words = formula.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return set(words) & set(SETTINGS)


__all__ = [
    "EXACT", "RULES", "SETTINGS", "OnePosition", "PositionRule", "distribution", "emitted_law", "one_position",
    "rule_named", "settings_of", "with_probability",
]  # fmt: skip
