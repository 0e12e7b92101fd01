"""Acceptance from the rows p and q themselves. p, q: (..., vocab) probabilities of target and proposer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import probability, row_pair, scalar_or_array


def overlap(p: ArrayLike, q: ArrayLike) -> float | np.ndarray:
    """beta = sum_x min(p(x), q(x)) = 1 - TV(p, q): (...) probability that a guess drawn from q is accepted.

    Leviathan et al. 2023, Theorem 3.5 (Definition 3.1 calls it beta), under the token rule, with the q that the guess
    was really drawn from.

    >>> overlap([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
    0.75
    """
    p, q = row_pair(p, q)
    return scalar_or_array(np.minimum(1.0, np.minimum(p, q).sum(axis=-1)))


def alpha_from_rows(p: ArrayLike, q: ArrayLike) -> float:
    """alpha = E[beta], the mean `overlap` over all rows.

    Leviathan et al. 2023, Corollary 3.6. Over the positions that were reached, it estimates the acceptance of examined
    positions with less variance than counting them does.

    >>> alpha_from_rows([[0.5, 0.5], [0.75, 0.25]], [[0.5, 0.5], [0.25, 0.75]])
    0.75
    """
    beta = np.asarray(overlap(p, q))
    if not beta.size:
        raise InputError("p and q have no rows; give at least one position")
    return float(beta.mean())


def acceptance_z(accepted: ArrayLike, beta: ArrayLike) -> float:
    """z = sum(accepted - beta) / sqrt(sum beta (1 - beta)) over reached positions: a standard normal, nearly.

    Derived: given what came before, a reached position is accepted with probability beta, so the partial sums are a
    martingale, whatever the dependence between positions. accepted: (positions,) true or false, beta: (positions,)
    their `overlap`. A test of the sampler for free: |z| above 4 hardly comes by chance. Where every beta is 0 or 1 it
    is 0 if every decision was the certain one, and infinite otherwise.

    >>> round(acceptance_z([True, True, False, True], [0.9, 0.8, 0.5, 0.6]), 2)
    0.23
    """
    accepted, beta = probability("accepted", accepted), probability("beta", beta)
    if accepted.shape != beta.shape or accepted.ndim != 1:
        raise InputError(f"accepted has shape {accepted.shape} and beta {beta.shape}; give one of each a position")
    off, variance = float((accepted - beta).sum()), float((beta * (1 - beta)).sum())
    if variance == 0:
        return 0.0 if (accepted == beta).all() else float(np.copysign(np.inf, off))
    return off / variance**0.5
