"""Leviathan's formulas: every position of a round is accepted with the same probability, independently."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import cost, count, probability, scalar_or_array
from specworkbench.theory.costs import VerifyCosts, best_gamma, last_gamma, round_cost


def expected_tokens(alpha: ArrayLike, gamma: ArrayLike) -> float | np.ndarray:
    """E[N], tokens per round: (1 - alpha^(gamma + 1)) / (1 - alpha), and gamma + 1 for alpha = 1.

    Leviathan et al. 2023, Eq. 1. N is the verdict length: accepted tokens and the one the rule draws.

    >>> round(expected_tokens(0.8, 4), 4)
    3.3616
    >>> expected_tokens([0.0, 0.5, 1.0], 2)
    array([1.  , 1.75, 3.  ])
    """
    alpha, gamma = probability("alpha", alpha), count("gamma", gamma)
    return scalar_or_array(_expected_tokens(alpha, gamma))


def speedup(
    alpha: ArrayLike, gamma: ArrayLike, c: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """Plain time per token over speculative time per token: E[N] / (gamma c + verify_cost + overhead).

    Leviathan et al. 2023, Theorem 3.8, E[N] / (gamma c + 1), with the keywords left alone. The cost-aware form
    (derived) takes verify_cost = v(gamma + 1) = T_target(gamma + 1) / T_target(1), and overhead, the loop's own time
    per round, in target steps.

    >>> round(speedup(0.8, 4, 0.05), 3)
    2.801
    >>> round(speedup(0.8, 4, 0.05, verify_cost=1.3, overhead=0.1), 3)
    2.101
    """
    steps = round_cost(gamma, c, verify_cost=verify_cost, overhead=overhead)
    return scalar_or_array(expected_tokens(alpha, gamma) / steps)


def optimal_gamma(
    alpha: ArrayLike,
    c: ArrayLike,
    *,
    verify_costs: VerifyCosts = 1.0,
    overhead: ArrayLike = 0.0,
    max_gamma: int | None = None,
) -> int | np.ndarray:
    """The gamma from 0 to max_gamma with the greatest `speedup`, the smallest such; 0 means: do not speculate.

    Derived from Leviathan et al. 2023, Theorem 3.8 (their Section 3.5 finds it numerically too), by trying every gamma.
    With the keywords left alone it is, by Corollary 3.9, at least 1 exactly where alpha > c; where c = 0 every further
    token pays as long as alpha^gamma still counts. Cost-aware: verify_costs is v over n, as a number, a table v(1),
    v(2), .. or a function of n; overhead the loop's time per round in target steps. gamma = 0 is plain decoding, whose
    speedup is 1 and which pays no overhead. max_gamma: 64, or where a table of v ends.

    >>> optimal_gamma(0.8, 0.05), optimal_gamma(0.8, 0.9)
    (8, 0)
    >>> optimal_gamma([0.5, 0.7, 0.9], 0.1, verify_costs=[1, 1.05, 1.1, 1.2, 1.4, 1.9])
    array([2, 3, 3])
    """
    arrays = probability("alpha", alpha), cost("c", c), cost("overhead", overhead)
    alpha, c, overhead = np.broadcast_arrays(*arrays)
    tokens = _expected_tokens(alpha[..., None], np.arange(last_gamma(verify_costs, max_gamma) + 1))
    return scalar_or_array(best_gamma(tokens, c, verify_costs, overhead))


def operations_factor(alpha: ArrayLike, gamma: ArrayLike, c_hat: ArrayLike) -> float | np.ndarray:
    """Arithmetic operations per token, over those of plain decoding: (gamma c_hat + gamma + 1) / E[N].

    Leviathan et al. 2023, Theorem 3.11. c_hat: operations per token of the draft over those of the target.

    >>> round(operations_factor(0.8, 4, 0.05), 3)
    1.547
    """
    alpha, gamma, c_hat = probability("alpha", alpha), count("gamma", gamma), cost("c_hat", c_hat)
    return scalar_or_array((gamma * c_hat + gamma + 1) / _expected_tokens(alpha, gamma))


def alpha_from_counts(accepted: ArrayLike, rejected: ArrayLike) -> float | np.ndarray:
    """alpha = accepted / (accepted + rejected); NaN where nothing was examined.

    The maximum-likelihood estimate when a round stops at its first rejection or after gamma tokens (derived: the
    likelihood alpha^accepted (1 - alpha)^rejected). Dividing by the tokens proposed would count discarded ones as if
    they had been examined.

    >>> alpha_from_counts(60, 20)
    0.75
    """
    accepted, rejected = count("accepted", accepted), count("rejected", rejected)
    with np.errstate(invalid="ignore"):
        return scalar_or_array(np.divide(accepted, accepted + rejected))


def _expected_tokens(alpha: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Eq. 1 through expm1 and log1p, which keep the digits that 1 - alpha^(gamma + 1) loses near alpha = 1."""
    miss = 1.0 - alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -np.expm1((gamma + 1.0) * np.log1p(-miss)) / miss
    return np.where((miss == 0) | (gamma == 0), gamma + 1.0, value)
