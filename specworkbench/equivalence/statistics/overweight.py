"""Two sums of what was to be expected before each token: of the draft-overweight set, and of acceptance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.statistics.result import Test

SMALLEST_VARIANCE = 10.0
"""Of a sum, in squared tokens: below it the p-value is a bound and not the normal law's."""


def overweight_test(evidence: Evidence) -> Test:
    """Does the token fall into A = {x: q(x) > p(x)} as often as p says? Two-sided, from all guided tokens.

    Z = sum(1[x_t in A_t] - p_t(A_t)) / sqrt(sum p_t(A_t) (1 - p_t(A_t))): A_t is fixed before x_t is drawn, so that the
    sum is a martingale and Z is normal for many tokens. Z > 0: the draft is followed too much.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> right = table_setup()
    >>> wrong = MUTANTS[0].apply(right)  # accepts every guess
    >>> [overweight_test(first_tokens_of(evidence_of(setup), 200)).p_value < 0.001 for setup in (right, wrong)]
    [False, True]
    """
    name, guided = "overweight", evidence[evidence.guided]
    if not len(guided):
        return Test.without(name, "no token had a row q")
    z, p_value = martingale_z(guided.in_overweight, guided.overweight_p)
    if z is None:
        return Test.without(name, "the draft overweights nothing, or all that can come", len(guided))
    observed, expected = guided.in_overweight.mean(), guided.overweight_p.mean()
    says = "{:.4f} of the tokens are among those that the draft overweights, where the target's rows say {:.4f}"
    return Test(name, z, p_value, len(guided), says.format(observed, expected))


def overweight_by_slot(evidence: Evidence) -> pd.DataFrame:
    """The same within each slot: slot, tokens, observed and expected share, z and p_value (NaN where certain).

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> wrong = MUTANTS[0].apply(table_setup())  # accepts every guess
    >>> table = overweight_by_slot(first_tokens_of(evidence_of(wrong), 200))
    >>> table[["slot", "tokens", "observed", "expected"]].round(2)
       slot  tokens  observed  expected
    0     1      67      0.60      0.28
    1     2      67      0.81      0.44
    """
    rows = []
    for slot in np.unique(evidence.slot[evidence.guided]):
        mine = evidence[evidence.guided & (evidence.slot == slot)]
        z, p_value = martingale_z(mine.in_overweight, mine.overweight_p)
        shares = mine.in_overweight.mean(), mine.overweight_p.mean()
        rows.append((int(slot), len(mine), *shares, np.nan if z is None else z, np.nan if z is None else p_value))
    return pd.DataFrame(rows, columns=["slot", "tokens", "observed", "expected", "z", "p_value"])


def acceptance_test(evidence: Evidence) -> Test:
    """Is the first guess accepted as often as the rule's probability says? Two-sided, over all positions reached.

    Z = sum(accepted_t - b_t) / sqrt(sum b_t (1 - b_t)), b_t = `expected_accept`. It sees lost speed (Z < 0), which the
    output's law cannot show, and false acceptance (Z > 0) alike.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> wrong = MUTANTS[0].apply(table_setup())  # accepts every guess
    >>> acceptance_test(first_tokens_of(evidence_of(wrong), 200)).detail
    'a guess is accepted with probability 1.0000, where the rows say 0.7630'
    """
    name = "acceptance"
    known = ~np.isnan(evidence.accepted) & ~np.isnan(evidence.expected_accept)
    if not known.any():
        return Test.without(name, "no token had a guess whose probability of acceptance the rule can say beforehand")
    accepted, expected = evidence.accepted[known], evidence.expected_accept[known]
    z, p_value = martingale_z(accepted, expected)
    if z is None:
        return Test.without(name, "every acceptance was certain beforehand", len(accepted))
    says = "a guess is accepted with probability {:.4f}, where the rows say {:.4f}"
    return Test(name, z, p_value, len(accepted), says.format(accepted.mean(), expected.mean()))


def martingale_z(happened: np.ndarray, probability: np.ndarray) -> tuple[float | None, float | None]:
    """Z of the sum S of happened - probability, and its two-sided p-value; None for both where all was certain.

    happened: (n,) 0 or 1; probability: (n,) of it, before it is known. V = sum b (1 - b), b the probability. From
    V >= `SMALLEST_VARIANCE` on the p-value is the normal law's; below, Freedman's bound (1975) for a martingale with
    steps of at most 1, 2 exp(-V h(|S| / V)) with h(x) = (1 + x) ln(1 + x) - x, which holds for rare events too.
    """
    expected = np.clip(probability, 0.0, 1.0)
    excess, variance = float(np.sum(happened - expected)), float(np.sum(expected * (1 - expected)))
    if variance <= 0:
        return (None, None) if excess == 0 else (float(np.copysign(np.inf, excess)), 0.0)
    z = excess / np.sqrt(variance)
    if variance >= SMALLEST_VARIANCE:
        return float(z), float(2 * stats.norm.sf(abs(z)))
    ratio = abs(excess) / variance
    return float(z), min(1.0, 2 * float(np.exp(-variance * ((1 + ratio) * np.log1p(ratio) - ratio))))
