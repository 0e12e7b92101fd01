"""An anytime-valid test of the sampler: E-values that may be looked at after every token.

While every token follows the target's row p_t, each process here is a nonnegative supermartingale from 1, and so is
any mean of them with weights fixed beforehand. Ville: it ever reaches 1 / level with probability at most level. So the
run may stop at the first such token, or go on as long as it likes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from specworkbench.equivalence.evidence import ALTERNATIVES, GUIDED_ONLY, Evidence
from specworkbench.equivalence.statistics.levels import check_level
from specworkbench.errors import InputError

TOWARDS = (0.05, 0.2, 0.8)
"""lambda of the draft-overweight processes that bet on the set A: prod(1 + lambda (1[x in A] - p(A)))."""

AWAY = (0.1, 0.5)
"""w of those that bet against it, with lambda = -w / (1 - p(A)): a token in A multiplies by 1 - w, whatever p(A) is."""

SMALLEST_REST = 0.01
"""1 - p(A) is taken to be at least this in AWAY, so that no bet rests on the rounding of a p(A) near 1."""

OVERWEIGHT = tuple(f"overweight +{bet:g}" for bet in TOWARDS) + tuple(f"overweight -{bet:g}" for bet in AWAY)
PROCESSES = ALTERNATIVES + OVERWEIGHT
"""The processes of a stratum: one for each row r of `ALTERNATIVES`, prod r(x)/p(x), and the bets on A.

All factors have expectation 1 (or less) whatever the row, and are positive: lambda is fixed before the token is drawn,
|lambda| < 1 or, away from A, w < 1.
"""

ALL = np.ones(len(PROCESSES), bool)
FREE = np.array([name not in (*GUIDED_ONLY, *OVERWEIGHT) for name in PROCESSES])
"""(len(PROCESSES),) bool, the processes that need no row q."""

BLOCK = 4096
"""Tokens worked on at once, whatever the size of a chunk."""

POINTS = 1024
"""The history keeps at most this many points: whenever there are more, every second one is dropped."""


def log_factors(evidence: Evidence) -> np.ndarray:
    """(n, len(PROCESSES)) log of what each token multiplies each process by; +inf in the row of a token with p = 0."""
    if np.isnan(evidence.log_ratios).any():
        raise InputError("log_ratios holds NaN; where an alternative says nothing, its log ratio is 0")
    excess = np.where(evidence.guided, evidence.in_overweight - evidence.overweight_p, 0.0)
    if np.isnan(excess).any():
        raise InputError("in_overweight or overweight_p is NaN at a guided token; there both are numbers")
    rest = np.maximum(1.0 - np.where(evidence.guided, evidence.overweight_p, 0.0), SMALLEST_REST)
    bets = np.hstack([np.outer(excess, TOWARDS), np.outer(-excess / rest, AWAY)])
    factors = np.hstack([evidence.log_ratios, np.log1p(bets)])
    factors[evidence.p <= 0] = np.inf
    return factors


class Stratum:
    """The processes of some of the tokens, and the mean of their E-values.

    Weights are equal, but 0 for processes that can say nothing here: those that need a row q, where there is none.
    """

    def __init__(self, used: np.ndarray):
        """used: (len(PROCESSES),) bool, the processes with a weight."""
        self.used, self.log_weights = used, np.where(used, -np.log(used.sum()), -np.inf)
        self.tokens, self.outside, self.log_e = 0, 0, 0.0
        self.logs = np.zeros(len(PROCESSES))

    def advance(self, factors: np.ndarray) -> np.ndarray:
        """Judge n tokens: (n + 1,) log of the mean E-value before them and after each."""
        if not len(factors):
            return np.array([self.log_e])
        outside = np.isposinf(factors).any(axis=1)
        steps = np.where(outside[:, None], 0.0, factors)
        logs = self.logs + np.vstack([np.zeros(len(PROCESSES)), np.cumsum(steps, axis=0)])
        gone = self.outside + np.concatenate([[0], np.cumsum(outside)])
        means = np.where(gone > 0, np.inf, np.logaddexp.reduce(logs + self.log_weights, axis=1))
        self.tokens, self.outside, self.logs = self.tokens + len(factors), int(gone[-1]), logs[-1]
        self.log_e = float(means[-1])
        return means

    @property
    def best(self) -> str:
        """The process that holds the most evidence."""
        if self.outside:
            return "outside the support"
        return PROCESSES[int(np.argmax(np.where(self.used, self.logs, -np.inf)))]


class EProcess:
    """The mean of all processes: half the weight on those over all tokens, half shared equally by the strata.

    A stratum is a slot of 1..slots, with a row q or without: whether it exists is decided before its token is drawn.
    Within each the processes have equal weights. E-values are averaged, never the rows r. A token outside the support
    of its row (p = 0) makes the E-value infinite.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> process = EProcess(level=0.001, slots=3)
    >>> process.update(first_tokens_of(evidence_of(MUTANTS[0].apply(table_setup())), 200))  # accepts every guess
    >>> process.rejected, process.decided_at
    (True, 53)
    """

    def __init__(self, level: float, slots: int):
        """level: of false alarm, however often one looks; slots: gamma + 1."""
        check_level(level)
        if slots < 1:
            raise InputError(f"slots is {slots}; a round has 1 slot or more: gamma + 1")
        self.level, self.slots = level, slots
        self.whole = Stratum(ALL)
        self.strata = {
            (slot, guided): Stratum(ALL if guided else FREE)
            for slot in range(1, slots + 1)
            for guided in (True, False)
        }
        self.log_e, self.largest_log_e, self.decided_at = 0.0, 0.0, None
        self.history: list[tuple[int, float]] = [(0, 0.0)]
        """(tokens, log E) along the run, thinned."""
        self._stride = 1

    @property
    def threshold(self) -> float:
        """log(1 / level)."""
        return float(np.log(1 / self.level))

    @property
    def rejected(self) -> bool:
        return self.decided_at is not None

    @property
    def tokens(self) -> int:
        return self.whole.tokens

    def update(self, evidence: Evidence) -> None:
        """Judge the next tokens, in the order in which they were decided. Raises `InputError` for unfit columns."""
        if len(evidence) and not (evidence.slot.min() >= 1 and evidence.slot.max() <= self.slots):
            raise InputError(f"slots go from {evidence.slot.min()} to {evidence.slot.max()}; the limit is {self.slots}")
        for start in range(0, len(evidence), BLOCK):
            self._block(evidence[start : start + BLOCK])

    def _block(self, evidence: Evidence) -> None:
        before, factors = self.tokens, log_factors(evidence)
        share = -np.log(2 * len(self.strata))
        parts = [self.whole.advance(factors)[1:] - np.log(2)]
        for (slot, guided), stratum in self.strata.items():
            mine = (evidence.slot == slot) & (evidence.guided == guided)
            parts.append(stratum.advance(factors[mine])[np.cumsum(mine)] + share)
        combined = np.logaddexp.reduce(parts, axis=0)
        self.log_e = float(combined[-1])
        self.largest_log_e = max(self.largest_log_e, float(combined.max()))
        crossed = np.flatnonzero(combined >= self.threshold)
        if len(crossed) and not self.rejected:
            self.decided_at = before + int(crossed[0]) + 1
        self._remember(np.arange(before + 1, self.tokens + 1), combined)

    def _remember(self, tokens: np.ndarray, log_e: np.ndarray) -> None:
        kept = tokens % self._stride == 0
        self.history += zip(tokens[kept].tolist(), log_e[kept].tolist(), strict=True)
        while len(self.history) > POINTS:
            self._stride *= 2
            self.history = [point for point in self.history if point[0] % self._stride == 0]

    def by_slot(self) -> pd.DataFrame:
        """Which slot betrays it: slot, guided, tokens, log_e, best (the process with the most evidence)."""
        rows = [
            (slot, guided, stratum.tokens, stratum.log_e, stratum.best)
            for (slot, guided), stratum in sorted(self.strata.items())
            if stratum.tokens
        ]
        return pd.DataFrame(rows, columns=["slot", "guided", "tokens", "log_e", "best"])

    def by_alternative(self) -> pd.DataFrame:
        """alternative, log_e of its process over all tokens, and the largest log_e of it in a stratum with its slot."""
        strata = {key: stratum for key, stratum in self.strata.items() if stratum.tokens}
        rows = []
        for index, name in enumerate(PROCESSES):
            logs = {
                slot: np.inf if part.outside else part.logs[index]
                for (slot, _), part in strata.items()
                if part.used[index]
            }
            slot = max(logs, key=logs.__getitem__) if logs else 0
            rows.append((name, np.inf if self.whole.outside else self.whole.logs[index], logs.get(slot, 0.0), slot))
        return pd.DataFrame(rows, columns=["alternative", "log_e", "largest_in_slot", "slot"])
