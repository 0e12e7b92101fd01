"""Without independence: what holds whatever the dependence between the positions of a round.

survival: (..., gamma) S_1, S_2, .., S_j the probability that the first j proposed tokens are all accepted
(unconditional; what vLLM reports per position). With S_j = alpha^j every formula here is the i.i.d. one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import cost, probability, scalar_or_array, survival_rates
from specworkbench.theory.costs import VerifyCosts, best_gamma, round_cost


def survival_from_acceptance(acceptance: ArrayLike) -> np.ndarray:
    """S_j = a_1 a_2 .. a_j, (..., gamma): a_j the acceptance probability at position j, given that it was examined.

    The chain rule of probability, so that it needs no independence either; a_j = alpha gives alpha^j.

    >>> survival_from_acceptance([0.75, 0.5, 0.5])
    array([0.75  , 0.375 , 0.1875])
    """
    return np.cumprod(np.atleast_1d(probability("acceptance", acceptance)), axis=-1)


def expected_tokens_survival(survival: ArrayLike) -> float | np.ndarray:
    """E[N] = 1 + sum_j S_j over the last axis, tokens per round.

    Derived: N - 1 is a count, and its mean is the sum of its tail probabilities. With S_j = alpha^j this is Leviathan
    et al. 2023, Eq. 1.

    >>> expected_tokens_survival([0.75, 0.5, 0.25])
    2.5
    """
    return scalar_or_array(1.0 + np.sum(survival_rates("survival", survival), axis=-1))


def speedup_survival(
    survival: ArrayLike, c: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """(1 + sum_j S_j) / (gamma c + verify_cost + overhead), gamma being how many rates there are.

    The cost-aware speedup (derived, see `costs.round_cost`) without the assumption of independence. It still takes the
    costs to be the same in every round.

    >>> speedup_survival([0.75, 0.5, 0.25], 0.125, verify_cost=1.125)
    1.6666666666666667
    """
    survival = survival_rates("survival", survival)
    steps = round_cost(survival.shape[-1], c, verify_cost=verify_cost, overhead=overhead)
    return scalar_or_array(expected_tokens_survival(survival) / steps)


def optimal_gamma_survival(
    survival: ArrayLike, c: ArrayLike, *, verify_costs: VerifyCosts = 1.0, overhead: ArrayLike = 0.0
) -> int | np.ndarray:
    """The gamma from 0 to the number of rates with the greatest `speedup_survival`, the smallest such.

    It takes S_j not to depend on gamma: what the first j guesses survive does not hang on how many follow. See
    `optimal_gamma` for the costs, and for gamma = 0.

    >>> optimal_gamma_survival([0.75, 0.5, 0.125, 0.0625], 0.125)
    2
    """
    survival = survival_rates("survival", survival)
    start = np.ones((*survival.shape[:-1], 1))
    tokens = np.concatenate([start, 1.0 + np.cumsum(survival, axis=-1)], axis=-1)
    c, overhead = np.broadcast_arrays(cost("c", c), cost("overhead", overhead))
    return scalar_or_array(best_gamma(tokens, c, verify_costs, overhead))
