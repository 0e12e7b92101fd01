"""Is acceptance independent and alike, as Leviathan's formula takes it? Survival against alpha^j, and round by round.

Rounds count whose proposal was not shortened by the remaining budget or the end of a context.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from specworkbench.analysis.estimate import LEVEL, SEED, interval, resamples
from specworkbench.analysis.parts import has_trees, prompt_totals
from specworkbench.trace import Trace

PERMUTATIONS = 1000
SURVIVAL_COLUMNS = (
    "position", "examined", "accepted", "acceptance", "survival", "low", "high", "iid", "difference",
    "difference_low", "difference_high",
)  # fmt: skip
COUNTED = ("examined", "accepted")
LAG_COLUMNS = ("lag", "pairs", "autocorrelation", "band_low", "band_high")


def survival_product(examined: np.ndarray, accepted: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(..., gamma) chance that the first j guesses are all accepted: the product of accepted / examined up to j.

    examined, accepted: (..., gamma) rounds that examined, and that accepted, a guess at each position; alpha: (...)
    what is taken for a position that none examined. A proposal of fewer than gamma tokens says nothing of the positions
    it does not have, in contrast to S_j of `acceptance_by_position`, where they count as not survived (Kaplan and Meier
    1958, Eq. 2b: censored observations). Where every round proposes gamma tokens the two are equal.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        conditional = np.where(examined > 0, accepted / examined, np.asarray(alpha)[..., None])
    return np.cumprod(conditional, axis=-1)


def position_totals(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """examined and accepted, each (prompts, largest gamma): rounds of each prompt by position in a chain."""
    rounds, gamma = whole_rounds(trace), trace.rounds["gamma"].max() if len(trace.rounds) else 0
    examined, accepted = (
        np.array([prompt_totals(trace, rounds["sequence"], rounds[name] > before) for before in range(gamma)])
        for name in COUNTED
    )
    return examined.reshape(gamma, -1).T, accepted.reshape(gamma, -1).T


def whole_rounds(trace: Trace) -> pd.DataFrame:
    """The rounds whose proposal was not shortened."""
    return trace.rounds[trace.rounds["shortened"] == ""]


def survival_against_iid(trace: Trace) -> pd.DataFrame:
    """One row a position 1..gamma of chains: the measured survival beside alpha^j, if acceptance were i.i.d.

    examined, accepted: rounds; acceptance: accepted / examined there; survival: `survival_product`, with its interval
    low..high; iid: alpha^j of `alpha_counts`; difference: survival - iid, with its interval. Intervals by bootstrap
    over prompts, NaN with fewer than two. No rows where nothing was examined, and of trees.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> survival_against_iid(trace)[["position", "survival", "iid"]].round(3)
       position  survival    iid
    0         1     0.678  0.657
    1         2     0.413  0.432
    2         3     0.287  0.284
    3         4     0.196  0.186
    """
    examined, accepted = position_totals(trace)
    if has_trees(trace) or not examined.sum():
        return pd.DataFrame(columns=list(SURVIVAL_COLUMNS), dtype=float)
    judged, kept = (prompt_totals(trace, trace.rounds["sequence"], trace.rounds[name]) for name in COUNTED)
    sums = examined.sum(axis=0), accepted.sum(axis=0)
    survival, iid = (found[0] for found in _survivals(*(part[None] for part in (*sums, judged.sum(), kept.sum()))))
    ends = np.full((2, 2, len(survival)), np.nan)
    if len(examined) > 1:
        weights = resamples(len(examined))
        drawn = _survivals(*(weights @ part for part in (examined, accepted, judged, kept)))
        there = weights @ judged
        for number, values in enumerate((drawn[0], drawn[0] - drawn[1])):
            ends[number] = np.array([interval(of_position * there, there) for of_position in values.T]).T
    with np.errstate(invalid="ignore"):
        columns = (
            np.arange(1, len(survival) + 1), *sums, sums[1] / sums[0], survival, *ends[0], iid, survival - iid, *ends[1]
        )  # fmt: skip
    table = pd.DataFrame(dict(zip(SURVIVAL_COLUMNS, columns, strict=True)))
    return table.astype({name: np.int64 for name in SURVIVAL_COLUMNS[:3]})


def autocorrelation(trace: Trace, lags: int = 5) -> pd.DataFrame:
    """One row a lag 1..lags: do rounds that follow each other accept alike?

    autocorrelation: of the accepted lengths of rounds that proposed anything, lag rounds apart in a sequence, about the
    mean of all; pairs: so many. band_low..band_high: where it lies in 95 % of shuffles of each sequence's rounds. It is
    beyond the band where the order of the rounds matters, and the band is off 0 where prompts differ. NaN where no two
    rounds are so far apart, or all accept alike.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> autocorrelation(trace, lags=2)[["lag", "pairs", "autocorrelation"]].round(2)
       lag  pairs  autocorrelation
    0    1    137             0.42
    1    2    131             0.17
    """
    rounds = whole_rounds(trace)
    rounds = rounds[rounds["proposed"] > 0].sort_values(["sequence", "round"], kind="stable")
    sequence = rounds["sequence"].to_numpy()
    values = rounds["accepted"].to_numpy(dtype=np.float64)
    values = values - values.mean() if len(values) else values
    together = [np.flatnonzero(sequence[lag:] == sequence[:-lag]) for lag in range(1, lags + 1)]
    found = _correlations(values, together)
    rng = np.random.default_rng([SEED, len(values)])
    shuffled = (values[np.lexsort((rng.random(len(values)), sequence))] for _ in range(PERMUTATIONS))
    null = np.array([_correlations(order, together) for order in shuffled])
    tails = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(null, [tails, 100 - tails], axis=0)
    columns = (np.arange(1, lags + 1), [len(pairs) for pairs in together], found, low, high)
    return pd.DataFrame(dict(zip(LAG_COLUMNS, columns, strict=True)))


def _survivals(
    examined: np.ndarray, accepted: np.ndarray, judged: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, gamma) survival and alpha^j of n totals: (n, gamma) by position, (n,) of all tokens."""
    alpha = np.divide(kept, judged, out=np.zeros_like(judged, dtype=np.float64), where=judged > 0)
    return survival_product(examined, accepted, alpha), alpha[:, None] ** np.arange(1, examined.shape[-1] + 1)


def _correlations(values: np.ndarray, together: list[np.ndarray]) -> np.ndarray:
    """(lags,) mean product of values lag apart, over their mean square."""
    square = np.mean(values**2) if len(values) else 0.0
    if not square:
        return np.full(len(together), np.nan)
    products = (values[at] @ values[at + lag] for lag, at in enumerate(together, start=1))
    pairs = (len(at) * square for at in together)
    return np.array([product / count if count else np.nan for product, count in zip(products, pairs, strict=True)])
