"""Where speculation begins to pay, and whether one more guess does. i.i.d. acceptance; costs in target steps.

The letters: S the speedup, E[N] = `expected_tokens`, C(gamma) = gamma c + v(gamma + 1) + o the round's cost. The
cost-aware forms are derived from S = E[N] / C; with v = 1 and o = 0 they are those of Leviathan et al. 2023.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import cost, count, guesses, positive_cost, probability, scalar_or_array
from specworkbench.theory.costs import VerifyCosts, last_gamma, round_cost, verify_cost_at
from specworkbench.theory.iid import expected_tokens

_HALVINGS = 60
"""Of the interval from 0 to 1, after which alpha is known to the last digit."""


def break_even_c(
    alpha: ArrayLike, gamma: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """The c at which S = 1: (E[N] - v - o) / gamma, target steps per proposed token. gamma: 1 or more.

    Derived from S = E[N] / C. A cheaper proposer wins, a dearer one loses. Below 0 no proposer wins, not even one that
    costs nothing: its guesses do not bring what verifying them costs.

    >>> break_even_c(0.5, 2), break_even_c(0.5, 2, verify_cost=1.25)
    (0.375, 0.25)
    """
    gamma, tokens = guesses("gamma", gamma), expected_tokens(alpha, gamma)
    return scalar_or_array((tokens - positive_cost("verify_cost", verify_cost) - cost("overhead", overhead)) / gamma)


def break_even_alpha(
    gamma: ArrayLike, c: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """The alpha at which S = 1 for this gamma: E[N](alpha) = gamma c + v + o. gamma: 1 or more.

    Derived; found by bisection, as E[N] rises in alpha from 1 to gamma + 1. 0 where every alpha wins (the round costs
    no more than a plain step), NaN where none does (it costs more than gamma + 1 of them).

    >>> round(break_even_alpha(4, 0.1), 4)
    0.2871
    >>> break_even_alpha([1, 2], 0.5, verify_cost=2)
    array([nan,  1.])
    """
    gamma = guesses("gamma", gamma)
    gamma, steps = np.broadcast_arrays(gamma, round_cost(gamma, c, verify_cost=verify_cost, overhead=overhead))
    low, high = np.zeros(gamma.shape), np.ones(gamma.shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = expected_tokens(middle, gamma) >= steps
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found = np.where(steps <= 1, 0.0, high)
    return scalar_or_array(np.where(steps > gamma + 1, np.nan, found))


def least_alpha(
    c: ArrayLike, *, verify_costs: VerifyCosts = 1.0, overhead: ArrayLike = 0.0, max_gamma: int | None = None
) -> float | np.ndarray:
    """The alpha above which some gamma from 1 to max_gamma has S > 1; NaN where none has.

    With the keywords left alone it is c (Leviathan et al. 2023, Corollary 3.9), reached with gamma = 1. Cost-aware: the
    least `break_even_alpha` over gamma (derived). For the keywords see `optimal_gamma`.

    >>> round(least_alpha(0.1), 4)
    0.1
    """
    gamma = np.arange(1, last_gamma(verify_costs, max_gamma) + 1)
    c, overhead = np.broadcast_arrays(cost("c", c), cost("overhead", overhead))
    costs = verify_cost_at(verify_costs, gamma + 1)
    found = break_even_alpha(gamma, c[..., None], verify_cost=costs, overhead=overhead[..., None])
    least = np.min(np.where(np.isnan(found), np.inf, found), axis=-1, initial=np.inf)
    return scalar_or_array(np.where(np.isinf(least), np.nan, least))


def guaranteed_speedup(alpha: ArrayLike, c: ArrayLike) -> float | np.ndarray:
    """(1 + alpha) / (1 + c): where alpha > c, some gamma gives at least this; gamma = 1 gives just this.

    Leviathan et al. 2023, Corollary 3.9, with v = 1 and no overhead. At most 1 where alpha is no more than c: there
    the best is not to speculate.

    >>> guaranteed_speedup(0.8, 0.2)
    1.5
    """
    return scalar_or_array((1 + probability("alpha", alpha)) / (1 + cost("c", c)))


def gain_of_one_more(
    alpha: ArrayLike, gamma: ArrayLike, c: ArrayLike, *, verify_costs: VerifyCosts = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """S(g + 1) - S(g) = (alpha^(g + 1) C(g) - (C(g + 1) - C(g)) E[N](g)) / (C(g) C(g + 1)), g for gamma.

    Derived. One more guess pays iff this is above 0; with the keywords left alone that is
    alpha^(gamma + 1) (gamma c + 1) > c E[N](gamma). verify_costs: v over n, see `optimal_gamma`. Here gamma = 0 is a
    speculative round without guesses, which pays v(1) and the overhead.

    >>> gain_of_one_more(0.8, [1, 4, 8], 0.1).round(3)
    array([ 0.397,  0.058, -0.056])
    """
    alpha, gamma = probability("alpha", alpha), count("gamma", gamma)
    now, then = (
        round_cost(g, c, verify_cost=verify_cost_at(verify_costs, g + 1), overhead=overhead) for g in (gamma, gamma + 1)
    )
    won = alpha ** (gamma + 1) * now - (then - now) * expected_tokens(alpha, gamma)
    return scalar_or_array(won / (now * then))
