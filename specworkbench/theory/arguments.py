"""Arguments of the formulas as arrays within their limits; what is outside is told in a sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError

SUMS_TO_ONE = 1e-6
"""How far the sum of a distribution may be from 1."""

ROUNDING = 1e-9
"""How far a probability may be outside 0 to 1 by rounding."""


Argument = Callable[[str, ArrayLike], np.ndarray]
"""The argument's name and value to an array, or `InputError` with the name, the value and the limit."""


def _limited(good: Callable[[np.ndarray], np.ndarray], limit: str) -> Argument:
    """The check of arguments that must be `good`, which `limit` says in words."""

    def check(name: str, value: ArrayLike) -> np.ndarray:
        value = _numbers(name, value)
        return _within(name, value, good(value), limit)

    return check


_IN_STEPS, _WORK = "it is a cost in units of one target step", "it is an amount of work"

count = _limited(lambda value: (value >= 0) & (value == np.floor(value)), "it is a number of tokens: 0, 1, 2, ...")
guesses = _limited(lambda value: (value >= 1) & (value == np.floor(value)), "it is a number of guesses: 1, 2, 3, ...")
cost = _limited(lambda value: value >= 0, f"{_IN_STEPS}, 0 or more")
positive_cost = _limited(lambda value: value > 0, f"{_IN_STEPS}, more than 0")
positive = _limited(lambda value: value > 0, "it must be more than 0")
ratio = _limited(lambda value: value >= 0, "it is a ratio of two probabilities, 0 or more")
duration = _limited(lambda value: value >= 0, "it is a time, 0 or more")
tokens_per_round = _limited(lambda value: value >= 1, "it is in tokens per round, 1 or more")
amount = _limited(lambda value: value >= 0, f"{_WORK}, 0 or more")
rate = _limited(lambda value: value > 0, f"{_WORK} per second, more than 0")


def probability(name: str, value: ArrayLike) -> np.ndarray:
    """Within `ROUNDING` of its ends it is taken for the end: a sum of probabilities may pass 1 by as much."""
    value = _numbers(name, value)
    good = (value >= -ROUNDING) & (value <= 1 + ROUNDING)
    return np.clip(_within(name, value, good, "it is a probability, from 0 to 1"), 0.0, 1.0)


def survival_rates(name: str, value: ArrayLike) -> np.ndarray:
    """(..., gamma) probabilities S_1, S_2, .., by measurement perhaps, so that S_j may come out above S_(j-1)."""
    value = probability(name, value)
    if value.ndim == 0:
        raise InputError(f"{name} is {value.item():g}; it must be a list of S_1, S_2, ..., one a position")
    return value


def rows(name: str, value: ArrayLike) -> np.ndarray:
    """(..., vocab) probabilities that sum to 1 over the last axis."""
    value = probability(name, value)
    if value.ndim == 0 or value.shape[-1] < 1:
        raise InputError(f"{name} has shape {value.shape}; it must be a row of probabilities, or rows of them")
    off = np.abs(value.sum(axis=-1) - 1.0)
    if off.max(initial=0.0) > SUMS_TO_ONE:
        total = value.sum(axis=-1).flat[int(off.argmax())]
        raise InputError(f"{name} sums to {total:.6g}; it must sum to 1: divide it by its sum")
    return value


def row_pair(p: ArrayLike, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """p and q as `rows` over the same tokens."""
    p, q = rows("p", p), rows("q", q)
    if p.shape[-1] != q.shape[-1]:
        raise InputError(f"p has {p.shape[-1]} tokens and q has {q.shape[-1]}; they must be over the same tokens")
    return p, q


def scalar_or_array(value: np.ndarray) -> float | np.ndarray:
    """A Python number for a 0-d array, anything else as it is."""
    return np.asarray(value).item() if np.ndim(value) == 0 else value


def _numbers(name: str, value: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}; it must be a number or an array of numbers") from error


def _within(name: str, value: np.ndarray, good: np.ndarray, limit: str) -> np.ndarray:
    good = good & np.isfinite(value)
    if not good.all():
        raise InputError(f"{name} is {value[~good].flat[0] if value.ndim else value.item():g}; {limit}")
    return value
