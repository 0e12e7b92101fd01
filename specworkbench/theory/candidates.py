"""Several candidates for one position: how often one of k children of a node is accepted. p, q: (vocab,) rows.

Every scheme here is lossless and judges the children in turn: r starts as p, a refused child changes r, and when none
is left the token is drawn from r. They differ in how the children are drawn. All give the overlap 1 - TV(p, q) for
k = 1, except the certain children, which are not drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from specworkbench.theory.arguments import guesses, positive, row_pair
from specworkbench.theory.one_position import distribution


def independent_acceptance(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """k children drawn independently from q: 1 - prod_i (1 - beta_i), beta_i = sum_x min(r_i(x), q(x)).

    SpecInfer, Miao et al. 2023, Algorithm 2: accept x with min(1, r(x)/q(x)), else r <- max(0, r - q), normalised. What
    is left of p after i refusals does not depend on which children they were, hence the product (derived).

    >>> [independent_acceptance([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], k) for k in (1, 2)]
    [0.75, 0.8125]
    """
    left, q = _pair(p, q)
    refused = 1.0
    for _ in range(_children(k)):
        refused *= 1.0 - np.minimum(left, q).sum()
        left = _left(left, q)
    return float(1.0 - refused)


def distinct_acceptance(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """k children drawn from q without replacement: every order in which they can be drawn is gone through (vocab^k).

    Recursive rejection, Jeon et al. 2024 (arXiv 2402.14160), and Sequoia, Chen et al. 2024 (arXiv 2402.12374): the i-th
    child comes from q without the ones before, normalised, and that row is what it is judged by and what r loses.

    >>> [distinct_acceptance([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], k) for k in (1, 2, 3)]
    [0.75, 0.875, 1.0]
    """
    return _distinct(*_pair(p, q), _children(k))


def certain_acceptance(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """The k most probable tokens of q as children, each certain: p(top-k of q), the lowest ids first among equals.

    As in EAGLE-2 (Li et al. 2024): a child that was not drawn has a one-hot q, is accepted with r(x), and zeroes r
    there when refused; together they are kept with the p that they have (derived).

    >>> [certain_acceptance([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], k) for k in (1, 2, 3)]
    [0.25, 0.75, 1.0]
    """
    p, q = _pair(p, q)
    return float(p[np.argsort(-q, kind="stable")[: _children(k)]].sum())


def k_seq_beta(p: ArrayLike, q: ArrayLike, rho: float) -> float:
    """beta(rho) = sum_x min(q(x), p(x)/rho): how often K-SEQ accepts one child. rho: 1 or more.

    >>> k_seq_beta([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], rho=1)
    0.75
    """
    p, q = _pair(p, q)
    return float(np.minimum(q, p / float(positive("rho", rho))).sum())


def k_seq_rho(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """The rho from 1 to k that solves 1 - (1 - beta(rho))^k = rho beta(rho).

    SpecTr, Sun et al. 2023 (arXiv 2310.15141), Algorithm 2: with a smaller rho the residual would be negative
    somewhere, a greater one accepts less. Where p and q have nothing in common every rho solves it; 1 is returned.

    >>> round(k_seq_rho([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], 2), 4)
    1.3904
    """
    p, q = _pair(p, q)
    k = _children(k)

    def excess(rho: float) -> float:
        beta = k_seq_beta(p, q, rho)
        return 1.0 - (1.0 - beta) ** k - rho * beta

    if excess(1.0) <= 0:
        return 1.0
    return float(k) if excess(k) >= 0 else float(brentq(excess, 1.0, k, xtol=1e-14))


def k_seq_acceptance(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """p_acc = 1 - (1 - beta)^k = rho beta: k independent children, each accepted with min(1, p(x)/(rho q(x))).

    SpecTr, Sun et al. 2023; at least 1 - (1 - 1/k)^k, which is above 1 - 1/e, of `transport_bound`.

    >>> round(k_seq_acceptance([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], 2), 4)
    0.8476
    """
    return 1.0 - (1.0 - k_seq_beta(p, q, k_seq_rho(p, q, k))) ** _children(k)


def k_seq_residual(p: ArrayLike, q: ArrayLike, k: int) -> np.ndarray:
    """(vocab,) the row to draw from when all k are refused: (p - min(q, p/rho) p_acc/beta) / (1 - p_acc).

    SpecTr, Sun et al. 2023, Algorithm 2. p itself where all are always refused or never.

    >>> k_seq_residual([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], 2).round(4)
    array([1., 0., 0.])
    """
    p, q = _pair(p, q)
    rho, accepted = k_seq_rho(p, q, k), k_seq_acceptance(p, q, k)
    beta = k_seq_beta(p, q, rho)
    if beta == 0 or accepted >= 1.0:
        return p
    return np.maximum(p - np.minimum(q, p / rho) * accepted / beta, 0.0) / (1.0 - accepted)


def transport_bound(p: ArrayLike, q: ArrayLike, k: int) -> float:
    """alpha*_k = min over sets H of p(H) + 1 - q(H)^k: no lossless rule for k independent children accepts more often.

    The optimal transport of Sun et al. 2023 (SpecTr), by its dual over sets. Derived: as -x^k is concave, it lies below
    its tangent at the best set's q(H), and the set that minimises the tangent, all x with p(x)/q(x) below a threshold,
    is as good; so only the vocab + 1 sets in the order of p/q are tried.

    >>> round(transport_bound([0.5, 0.25, 0.25], [0.25, 0.25, 0.5], 2), 4)
    0.9375
    """
    p, q = _pair(p, q)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(np.where(q > 0, p / q, np.inf), kind="stable")
    p_of, q_of = (np.concatenate([[0.0], np.cumsum(row[order])]) for row in (p, q))
    return float(min(1.0, (p_of + 1.0 - q_of ** _children(k)).min()))


def _distinct(left: np.ndarray, q: np.ndarray, k: int) -> float:
    """The first child is kept, or it is not and one of the others is, drawn without it."""
    total, rest_left = float(np.minimum(left, q).sum()), _left(left, q)
    if k == 1:
        return total
    for token in np.flatnonzero(q).tolist():
        others = np.where(np.arange(len(q)) == token, 0.0, q)
        refused = max(0.0, float(q[token] - left[token]))
        if refused > 0 and others.sum() > 0:
            total += refused * _distinct(rest_left, others / others.sum(), k - 1)
    return total


def _left(left: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What a refused child leaves of r, normalised; all of it where nothing is left."""
    rest = np.maximum(left - q, 0.0)
    return rest / rest.sum() if rest.sum() > 0 else left


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    return row_pair(distribution("p", p), distribution("q", q))


def _children(k: int) -> int:
    return int(guesses("k", k))
