"""Chi-square: of a partition that every row declares, and of whole outputs against an exact law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from scipy import stats

from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.statistics.result import Test
from specworkbench.errors import InputError

SMALLEST_CELL = 5.0
"""Cells with a smaller expected count are pooled: beforehand, from the expected counts alone."""


def cells_test(evidence: Evidence) -> Test:
    """Do the tokens fall into `CELLS` as often as the rows say, whatever the direction of the error?

    d = sum(1[cell_t] - p_t), a martingale with covariance V = sum(diag(p_t) - p_t p_t^T), p_t = `cell_probs`. For many
    tokens d^T V^+ d is chi-square with rank V degrees of freedom. Directions with a variance below `SMALLEST_CELL`
    (rows that are all but certain) have no normal law and are left out; rows that never change leave none out.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> right = table_setup()
    >>> wrong = MUTANTS[0].apply(right)  # accepts every guess
    >>> [cells_test(first_tokens_of(evidence_of(setup), 200)).p_value < 0.001 for setup in (right, wrong)]
    [False, True]
    """
    name, n = "cells", len(evidence)
    if not n:
        return Test.without(name, "there was no token")
    outside = int(np.sum(evidence.p <= 0))
    if outside:
        return Test(name, float("inf"), 0.0, n, f"{outside} tokens lie outside the support of their row")
    pool = pooling(evidence.cell_probs.sum(axis=0))
    probs = evidence.cell_probs @ pool
    difference = (pool[evidence.cell] - probs).sum(axis=0)
    covariance = np.diag(probs.sum(axis=0)) - probs.T @ probs
    variances, directions = np.linalg.eigh(covariance)
    kept = variances >= SMALLEST_CELL * (1 - 1e-9)
    freedom = int(kept.sum())
    if not freedom:
        return Test.without(name, f"with {n} tokens of such rows fewer than two cells can be filled", n)
    statistic = float(np.sum((directions[:, kept].T @ difference) ** 2 / variances[kept]))
    detail = f"{pool.shape[1]} cells of {len(pool)} after pooling, {freedom} degrees of freedom"
    return Test(name, statistic, float(stats.chi2.sf(statistic, freedom)), n, detail)


def law_test(
    counts: Mapping[tuple, int], law: Mapping[tuple, float], statistic: Literal["chi-square", "G"] = "chi-square"
) -> Test:
    """Are sampled outputs distributed as an exact law says? counts: outputs to how often; law: to probabilities.

    Cells with n P < 5 are pooled. Outputs that the law does not have make the p-value 0. Raises `InputError` for a law
    that does not sum to 1, and for an unknown statistic.

    >>> [round(law_test({(0,): heads, (1,): 100 - heads}, {(0,): 0.5, (1,): 0.5}).p_value, 5) for heads in (52, 70)]
    [0.68916, 6e-05]
    >>> law_test({(0,): 52, (2,): 1}, {(0,): 0.5, (1,): 0.5}).detail
    '1 of 53 outputs lie outside the support of the law'
    """
    kinds = {"chi-square": "pearson", "G": "log-likelihood"}
    if statistic not in kinds:
        raise InputError(f"there is no statistic {statistic!r}; say 'chi-square' or 'G'")
    total = sum(law.values())
    if abs(total - 1.0) > 1e-6:
        raise InputError(f"the law sums to {total:.9g}; it must sum to 1")
    n, outputs = sum(counts.values()), [output for output, probability in law.items() if probability > 0]
    outside = n - sum(counts.get(output, 0) for output in outputs)
    if outside:
        return Test(statistic, float("inf"), 0.0, n, f"{outside} of {n} outputs lie outside the support of the law")
    expected = n * np.array([law[output] for output in outputs]) / total
    pool = pooling(expected)
    if pool.shape[1] < 2:
        return Test.without(statistic, f"{n} outputs of such a law fill fewer than two cells", n)
    observed = np.array([counts.get(output, 0) for output in outputs]) @ pool
    found = stats.power_divergence(observed, expected @ pool, lambda_=kinds[statistic])
    detail = f"{pool.shape[1]} cells of {len(pool)} after pooling; nothing outside the support"
    return Test(statistic, float(found.statistic), float(found.pvalue), n, detail)


def pooling(expected: np.ndarray) -> np.ndarray:
    """(cells, pools) 0 or 1: which pool each cell belongs to, by its expected count (cells,) alone.

    Cells of `SMALLEST_CELL` or more stay alone, the others make one pool; if that is still too small, it joins the
    smallest of those that stayed alone.
    """
    large = np.flatnonzero(expected >= SMALLEST_CELL)
    small = expected < SMALLEST_CELL
    large = large[np.argsort(expected[large], kind="stable")]
    pools = np.zeros((len(expected), len(large)))
    pools[large, np.arange(len(large))] = 1.0
    if expected[small].sum() >= SMALLEST_CELL or not len(large):
        return np.column_stack([pools, small.astype(float)])
    pools[small, 0] = 1.0
    return pools
