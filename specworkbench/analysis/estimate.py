"""`Estimate`, a figure with its interval, and the four ways an interval is made here. All intervals are 95 %.

- Wilson's, for a share of independent trials (a cell of a table).
- Cluster bootstrap by prompt, for a ratio of totals: the rounds of one prompt resemble each other, so that prompts are
  drawn anew, not rounds. Percentiles of seeded resamples; with fewer than two prompts there is no interval. With few
  prompts (say, under ten) percentile intervals are somewhat too narrow.
- Order statistics, for a median: no assumption on the distribution.
- Bootstrap of pairs, for a ratio of medians of two things that were timed in the same turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

LEVEL = 0.95
RESAMPLES = 4000
SEED = 20230227


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval; None where there is nothing to measure (or, for the interval, too little).

    n: how many observations the value rests on; which ones, the function says that returns it.

    >>> Estimate(0.74, 0.69, 0.78, n=412)
    Estimate(value=0.74, low=0.69, high=0.78, n=412)
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    def __iter__(self) -> Iterator[float | None]:
        """value, low, high = estimate"""
        return iter((self.value, self.low, self.high))

    def over(self, unit: float | None) -> Estimate:
        """The estimate in units of another figure, which is taken as exact; nothing where that is None."""
        if unit is None or self.value is None:
            return Estimate(None, None, None, self.n)
        return Estimate(*(None if part is None else part / unit for part in self), self.n)


def wilson(successes: int, trials: int) -> Estimate:
    """Share of successes with Wilson's interval. n: trials."""
    if not trials:
        return Estimate(None, None, None, 0)
    interval = stats.binomtest(int(successes), int(trials)).proportion_ci(LEVEL, method="wilson")
    return Estimate(successes / trials, float(interval.low), float(interval.high), int(trials))


def median(values: np.ndarray) -> Estimate:
    """Median with the interval between two order statistics. n: values; fewer than six have no interval."""
    values = np.sort(np.asarray(values, dtype=np.float64))
    size = len(values)
    if not size:
        return Estimate(None, None, None, 0)
    below = int(stats.binom.ppf((1 - LEVEL) / 2, size, 0.5)) - 1
    low, high = (None, None) if below < 0 else (float(values[below]), float(values[size - 1 - below]))
    return Estimate(float(np.median(values)), low, high, size)


def ratio_of_medians(numerator: np.ndarray, denominator: np.ndarray) -> Estimate:
    """median(numerator) / median(denominator) with percentiles of a bootstrap over pairs.

    numerator, denominator: (turns,), each pair measured in one turn. n: pairs; fewer than six have no interval, as the
    medians themselves have none.
    """
    pairs = np.array([numerator, denominator], dtype=np.float64)
    size = pairs.shape[1]
    if not size:
        return Estimate(None, None, None, 0)
    over, under = np.median(pairs, axis=1)
    if median(numerator).low is None:
        return Estimate(float(over / under), None, None, size)
    drawn = np.random.default_rng([SEED, size]).integers(size, size=(RESAMPLES, size))
    return Estimate(float(over / under), *interval(*np.median(pairs[:, drawn], axis=-1)), size)


def ratio_of_totals(numerator: np.ndarray, denominator: np.ndarray) -> Estimate:
    """sum(numerator) / sum(denominator) with a cluster-bootstrap interval.

    numerator, denominator: (clusters,) totals of each prompt. n: the denominator's total.
    """
    total = float(np.sum(denominator))
    if not total:
        return Estimate(None, None, None, 0)
    weights = resamples(len(denominator))
    low, high = (
        interval(weights @ numerator, weights @ denominator) if np.count_nonzero(denominator) > 1 else (None, None)
    )
    return Estimate(float(np.sum(numerator)) / total, low, high, int(total))


def interval(numerators: np.ndarray, denominators: np.ndarray) -> tuple[float, float]:
    """Percentiles of the resampled ratios; resamples that drew only prompts without observations are left out."""
    drawn = denominators > 0
    tails = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(numerators[drawn] / denominators[drawn], [tails, 100 - tails])
    return float(low), float(high)


@lru_cache(maxsize=32)
def resamples(clusters: int) -> np.ndarray:
    """(RESAMPLES, clusters) how often each cluster was drawn, with replacement; the same on every call."""
    rng = np.random.default_rng([SEED, clusters])
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=RESAMPLES).astype(np.float64)
    drawn.setflags(write=False)
    return drawn
