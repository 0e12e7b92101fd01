"""Block verification, one drafted block at a time: Sun et al. 2024 (arXiv 2403.10444), Algorithm 2.

Given the guesses x_1..x_gamma: ratios p(x_i)/q(x_i); b_i, the probability that at least i of them are kept; r_i, the
mass that the residual after i of them has; h_i, what the uniform of position i is compared with. The accepted length
is tau = max{i : u_i < h_i}. Positions are on the last axis, so that many blocks go at once. What to expect over all
drafts is `chains.block_survival`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import probability, ratio, row_pair, scalar_or_array


def block_kept(ratios: ArrayLike) -> np.ndarray:
    """(..., gamma) b_i = min(1, b_(i-1) p(x_i)/q(x_i)), b_0 = 1: P(tau >= i | x_1..x_i).

    ratios: (..., gamma) p(x_i)/q(x_i), 0 or more.

    >>> block_kept([2.0, 0.25, 1.5])
    array([1.   , 0.25 , 0.375])
    """
    ratios = np.atleast_1d(ratio("ratios", ratios))
    kept, so_far = np.empty(ratios.shape), np.ones(ratios.shape[:-1])
    for place in range(ratios.shape[-1]):
        so_far = np.minimum(1.0, so_far * ratios[..., place])
        kept[..., place] = so_far
    return kept


def block_residual(kept: ArrayLike, p: ArrayLike, q: ArrayLike) -> float | np.ndarray:
    """(...) r_i = sum_v max(b_i p(v) - q(v), 0), p and q: (..., vocab) the rows after i guesses; kept: (...) b_i.

    >>> block_residual(0.5, [0.5, 0.5], [0.25, 0.75])
    0.0
    """
    kept, (p, q) = probability("kept", kept), row_pair(p, q)
    return scalar_or_array(np.maximum(kept[..., None] * p - q, 0.0).sum(axis=-1))


def block_thresholds(kept: ArrayLike, residual: ArrayLike) -> np.ndarray:
    """(..., gamma) h_i = r_i / (r_i + 1 - b_i), and h_gamma = b_gamma; 0 where r_i = 0.

    kept: (..., gamma) b_1..b_gamma; residual: (..., gamma - 1) r_1..r_(gamma - 1).

    >>> block_thresholds([1.0, 0.5], [0.25])
    array([1. , 0.5])
    """
    kept, residual = np.atleast_1d(probability("kept", kept)), np.atleast_1d(probability("residual", residual))
    if residual.shape[-1] != kept.shape[-1] - 1:
        raise InputError(
            f"kept has {kept.shape[-1]} positions and residual {residual.shape[-1]}; the last position has no residual"
        )
    whole = residual + 1.0 - kept[..., :-1]
    before = np.divide(residual, whole, out=np.zeros(np.broadcast(residual, whole).shape), where=residual > 0)
    return np.concatenate([before, np.broadcast_to(kept[..., -1:], (*before.shape[:-1], 1))], axis=-1)


def block_lengths(thresholds: ArrayLike) -> np.ndarray:
    """(..., gamma + 1) P(tau = 0), .., P(tau = gamma) of one block: h_i prod_(k > i) (1 - h_k), with h_0 = 1.

    Derived from tau = max{i : u_i < h_i}, uniforms independent.

    >>> block_lengths([1.0, 0.5])
    array([0. , 0.5, 0.5])
    """
    thresholds = np.atleast_1d(probability("thresholds", thresholds))
    ends = np.ones((*thresholds.shape[:-1], 1))
    passed = np.concatenate([ends, thresholds], axis=-1)
    failed_after = np.concatenate([np.cumprod(1.0 - thresholds[..., ::-1], axis=-1)[..., ::-1], ends], axis=-1)
    return passed * failed_after
