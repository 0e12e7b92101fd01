"""Rounding or a fault? The differences of a run's rows against the floor of what kernels alone do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance from 1 to the next number of each dtype."""
TIMES_FLOOR = 3.0
"""Rows may be so many times as far from single-token rows as the floor: caches filled by other kernels add a little."""
SLACK = 8.0
"""And so many epsilons on top, for floors that happen to be zero."""


@dataclass(frozen=True)
class RowVerdict:
    """kind: "rounding", "cache" (rows differ only after tokens were taken back), "rows" (they differ without that) or
    "too few" (tokens, for a fault to be named at the level).

    p_value: of d_t being no more than the allowance, by random signs; ratio: mean d_t over the mean floor (at least one
    epsilon); first_ratio: the same in the first rounds of sequences, where nothing was taken back yet; trend: rank
    correlation (Spearman) of d_t with the number of rejections so far; sentence: all this in words.

    >>> rows = pd.DataFrame({"d": 2e-7, "floor": 1e-7, "round": range(12), "slot": 1, "rejections": range(12)})
    >>> print(judge_rows(rows, "float32").sentence)
    rounding: over 12 tokens the rows are 2e-07 (TV) from single-token rows in float32,
    1.68 times what a change of kernels does (p = 1)
    """

    kind: str
    p_value: float
    ratio: float
    first_ratio: float
    trend: float
    sentence: str


def judge_rows(rows: pd.DataFrame, dtype: str, level: float = 1e-3) -> RowVerdict:
    """The verdict on the rows of `RowDifference.frame` of a target in this dtype.

    Correct rows are as far from single-token rows as the floor is, in distribution, so that d_t - 3 floor_t - 8 epsilon
    is as likely below zero as above, or likelier; its mean is tested by random signs, and a fault is named where the
    p-value is at most `level` (which needs ten tokens at 1e-3). Where it shows says what it is: a fault of the caches
    not before tokens were taken back, but then in the first row of a round too.

    >>> rows = pd.DataFrame({"d": 2e-7, "floor": 1e-7, "round": range(12), "slot": 1, "rejections": range(12)})
    >>> later = 0.01 * (rows["round"] > 0)
    >>> [judge_rows(rows.assign(d=d), "float32").kind for d in (rows["d"], 0.01, later)]
    ['rounding', 'rows', 'cache']
    """
    epsilon = EPSILON[dtype]

    def excess(some: pd.DataFrame) -> pd.Series:
        return some["d"] - TIMES_FLOOR * some["floor"] - SLACK * epsilon

    def ratio(some: pd.DataFrame) -> float:
        return float(some["d"].mean() / max(some["floor"].mean(), epsilon)) if len(some) else float("nan")

    p_value = _random_signs(excess(rows).to_numpy()) if len(rows) else 1.0
    first, later = rows[rows["round"] == 0], rows[(rows["round"] > 0) & (rows["slot"] == 1)]
    kind = "too few" if 0.5 ** len(rows) > level else "rounding"
    if p_value <= level:
        kind = "cache" if excess(first).mean() <= 0 < excess(later).mean() else "rows"
    varied = rows["d"].nunique() > 1 and rows["rejections"].nunique() > 1
    trend = float(stats.spearmanr(rows["rejections"], rows["d"]).statistic) if varied else float("nan")
    of = len(rows), p_value, ratio(rows), ratio(first), trend
    return RowVerdict(kind, *of[1:], _sentence(kind, dtype, rows["d"].mean(), *of))


def _random_signs(x: np.ndarray) -> float:
    """p-value of a positive mean of values whose signs are as likely either way."""
    test = stats.permutation_test(
        (x,), np.mean, permutation_type="samples", alternative="greater", vectorized=True, n_resamples=9999,
        batch=1000, random_state=np.random.default_rng(0),
    )  # fmt: skip
    return float(test.pvalue)


def _sentence(
    kind: str, dtype: str, mean: float, tokens: int, p_value: float, ratio: float, first: float, trend: float
) -> str:
    if kind == "too few":
        return f"{tokens} tokens were measured: too few for a verdict on their rows"
    found = (
        f"over {tokens} tokens the rows are {mean:.2g} (TV) from single-token rows in {dtype}, {ratio:.3g} times what "
        f"a change of kernels does (p = {p_value:.2g})"
    )
    return {
        "rounding": f"rounding: {found}",
        "cache": f"a fault of the cache: {found}; in first rounds, before anything was taken back, {first:.3g} times, "
        f"and it grows with the rejections (correlation {trend:.2g})",
        "rows": f"a fault of the rows: {found}, and not only after tokens were taken back ({first:.3g} times in first "
        "rounds)",
    }[kind]
