"""Arguments of the formulas as arrays within their limits; what is outside is told in a sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError


def probability(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, (value >= 0) & (value <= 1), "it is a probability, from 0 to 1")


def count(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, (value >= 0) & (value == np.floor(value)), "it is a number of tokens: 0, 1, 2, ...")


def cost(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, value >= 0, "it is a cost in units of one target step, 0 or more")


def positive_cost(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, value > 0, "it is a cost in units of one target step, more than 0")


def amount(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, value >= 0, "it is an amount of work, 0 or more")


def rate(name: str, value: ArrayLike) -> np.ndarray:
    value = _numbers(name, value)
    return _within(name, value, value > 0, "it is an amount of work per second, more than 0")


def scalar_or_array(value: np.ndarray) -> float | np.ndarray:
    """A Python number for a 0-d array, anything else as it is."""
    return value.item() if np.ndim(value) == 0 else value


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
