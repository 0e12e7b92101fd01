"""What is timed, and how samples become figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from specworkbench.analysis.estimate import Estimate
from specworkbench.errors import InputError

__all__ = ["CostSettings", "Cell"]

WARM_UP = 2
"""Turns that come first and count nowhere."""


@dataclass(frozen=True)
class CostSettings:
    """What is timed.

    contexts: tokens in the cache before a forward; rows: of a forward, 1 always among them; runs: how often each is
    timed; limit: whether the machine's rates are measured as well; gamma: tokens that a proposer is asked for.
    Raises `InputError` for a number below 1.

    >>> CostSettings(contexts=(64,), rows=(5,)).rows
    (1, 5)
    """

    contexts: tuple[int, ...] = (64,)
    rows: tuple[int, ...] = (1, 2, 3, 5, 9)
    runs: int = 25
    limit: bool = False
    gamma: int = 4

    def __post_init__(self) -> None:
        if (context := min(self.contexts, default=0)) < 1:
            raise InputError(f"context is {context}; a step has at least 1 token before it")
        if (rows := min(self.rows, default=1)) < 1:
            raise InputError(f"rows is {rows}; a forward has at least 1 row")
        if self.runs < 1:
            raise InputError(f"runs is {self.runs}; every forward must be timed at least once")
        if self.gamma < 1:
            raise InputError(f"gamma is {self.gamma}; a proposer is asked for at least 1 token")
        object.__setattr__(self, "contexts", tuple(sorted(set(self.contexts))))
        object.__setattr__(self, "rows", tuple(sorted({1, *self.rows})))


class Cell(NamedTuple):
    """So many rows with so many tokens in the cache.

    >>> Cell(context=64, rows=5).rows
    5
    """

    context: int
    rows: int


def named(name: str, estimate: Estimate) -> dict[str, float | None]:
    """The estimate as entries of a row: its name, name_low, name_high."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
