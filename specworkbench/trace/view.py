"""What the contracts share: a trace as sorted numpy columns, and the findings they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from specworkbench.trace import schema
from specworkbench.trace.trace import Trace

DIGITS, MOST_DIGITS = 3, 17
"""Significant digits of a number in a sentence: usually, and those at which any two float64 look different."""


@dataclass(frozen=True)
class Finding:
    """What a check found. detail: a sentence with the numbers; sequence, round: of the first offence, if it has one."""

    status: str  # "pass" | "fail" | "not recorded"
    detail: str
    sequence: int | None = None
    round: int | None = None

    @property
    def where(self) -> str:
        """` in sequence 0, round 3`, or nothing where the offence has no place."""
        places = [f"{name} {value}" for name, value in (("sequence", self.sequence), ("round", self.round))]
        places = [place for place in places if not place.endswith("None")]
        return f" in {', '.join(places)}" if places else ""


class Broken(Exception):
    """A fault that leaves a check nothing to work on; `args[0]` is its finding."""


def passed(detail: str) -> Finding:
    return Finding("pass", detail)


def not_recorded(detail: str) -> Finding:
    return Finding("not recorded", detail)


def worded(sentence: str, *values: float) -> str:
    """The sentence with these values in its braces, each in three significant digits, or in as many as it takes to
    tell it from the others and from 1. Whole numbers stand as they are, and NaN is called null.

    >>> worded("u = {} against accept_prob = {}", 0.3712345678901234, 0.99999)
    'u = 0.371 against accept_prob = 0.99999'
    >>> worded("p is {}, in its row {}", 0.4312345678, 0.4312346789)
    'p is 0.4312346, in its row 0.4312347'
    """
    numbers = [float(value) for value in values]
    return sentence.format(*(_told_from({*numbers, 1.0} - {value}, value) for value in numbers))


def _told_from(others: set[float], value: float) -> str:
    if np.isnan(value):
        return "null"
    for digits in range(DIGITS, MOST_DIGITS):
        if _shown(value, digits) not in {_shown(other, digits) for other in others}:
            return _shown(value, digits)
    return _shown(value, MOST_DIGITS)


def _shown(value: float, digits: int) -> str:
    if value.is_integer():
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if abs(value) < 10**DIGITS else f"{value:.{digits - DIGITS}f}"


def tolerance(view: View) -> float:
    """Allowance on sums over a row: 1e-9 for a float64 target, else 1e-6, as the rows may be float32."""
    return 1e-9 if str(view.manifest["target"].get("dtype")).endswith("float64") else 1e-6


class View:
    """The tables of a trace as numpy columns, sorted by sequence, round, and node (the drawn token last).

    rounds, positions: {column: (n,) array}, null as NaN. of: (positions,) the row in `rounds` of each position.
    Raises `Broken` where the two tables do not belong together.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.manifest = trace, trace.manifest
        rounds, positions = trace.rounds, trace.positions
        self.rounds = _columns("rounds", rounds, np.lexsort((rounds["round"], rounds["sequence"])))
        node = positions["node"].to_numpy()
        order = np.lexsort((node, node < 0, positions["round"], positions["sequence"]))
        self.positions = _columns("positions", positions, order)
        keys, own = _key(self.rounds), _key(self.positions)
        if len(keys) and (repeated := np.flatnonzero(np.diff(keys) == 0)).size:
            raise Broken(self.fault_of_round(repeated[0], "the round is in the table twice"))
        self.of = np.searchsorted(keys, own)
        inside = np.append(keys, -1)[self.of] == own
        if not inside.all():
            where = int(np.flatnonzero(~inside)[0])
            found = (int(self.positions[name][where]) for name in ("sequence", "round"))
            raise Broken(Finding("fail", "table 'positions' has tokens of a round that table 'rounds' lacks", *found))
        self.drawn = self.positions["node"] < 0
        self.proposed = ~self.drawn
        self.outcome = self.positions["outcome"]

    def having(self, outcomes: tuple[str, ...]) -> np.ndarray:
        """(positions,) whether the outcome is one of these."""
        return np.isin(self.outcome, outcomes)

    def count(self, mask: np.ndarray) -> np.ndarray:
        """(rounds,) how many of the masked positions each round has."""
        return np.bincount(self.of[mask], minlength=len(self.rounds["round"]))

    def accepted_parent(self) -> np.ndarray:
        """(positions,) whether each continues the context or an accepted node. Raises `Broken` for no such parent."""
        start = np.searchsorted(self.of, self.of)
        parent = self.positions["parent"].astype(np.int64)
        before = np.where(self.drawn, self.count(self.proposed)[self.of], np.arange(len(self.of)) - start)
        fault = self.judge((parent >= -1) & (parent < before), lambda i: f"its parent is {parent[i]}, not before it")
        if fault:
            raise Broken(fault)
        return (parent < 0) | (self.outcome[start + np.maximum(parent, 0)] == "accepted")

    def siblings_before(self, mask: np.ndarray) -> np.ndarray:
        """(positions,) how many masked children of the same parent stand before each: earlier siblings, or, of the
        drawn token, all of that parent's.
        """
        key = self.of.astype(np.int64) << 17 | self.positions["parent"].astype(np.int64) + 1
        order = np.argsort(key, kind="stable")  # within a key by node, the drawn token last
        counted = np.cumsum(mask[order])
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        before = np.repeat(counted[starts] - mask[order][starts], np.diff(np.append(starts, len(order))))
        found = np.empty(len(order), dtype=np.int64)
        found[order] = counted - mask[order] - before
        return found

    def last_of_sequence(self) -> np.ndarray:
        """(rounds,) whether the round is its sequence's last."""
        return np.diff(self.rounds["sequence"], append=-1) != 0

    def fault_of_round(self, row: int, detail: str) -> Finding:
        return Finding("fail", detail, int(self.rounds["sequence"][row]), int(self.rounds["round"][row]))

    def judge_rounds(self, good: np.ndarray, detail: Callable[[int], str]) -> Finding | None:
        """None where all rounds are good, else a finding on the first that is not. detail: its row in a sentence."""
        bad = np.flatnonzero(~good)
        return None if not bad.size else self.fault_of_round(bad[0], _counted(detail(bad[0]), bad.size, "rounds"))

    def judge(self, good: np.ndarray, detail: Callable[[int], str]) -> Finding | None:
        """The same for positions; the sentence is led by which position it is."""
        bad = np.flatnonzero(~good)
        if not bad.size:
            return None
        first = bad[0]
        lead = f"position {self.positions['position'][first]} ({self.outcome[first]}): "
        return self.fault_of_round(self.of[first], _counted(lead + detail(first), bad.size, "positions"))


def _counted(detail: str, number: int, kind: str) -> str:
    return detail if number == 1 else f"{detail} (the first of {number} {kind})"


def _columns(table: str, frame: pd.DataFrame, order: np.ndarray) -> dict[str, np.ndarray]:
    columns = {}
    for column in schema.TABLES[table]:
        values = frame[column.name]
        if column.dtype in ("Int32", "boolean"):
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)
        elif column.dtype == "str":
            values = values.to_numpy(dtype=object).astype(str)
        else:
            values = values.to_numpy()
        columns[column.name] = values[order]
    return columns


def _key(columns: dict[str, np.ndarray]) -> np.ndarray:
    return columns["sequence"].astype(np.int64) << 32 | columns["round"].astype(np.int64)
