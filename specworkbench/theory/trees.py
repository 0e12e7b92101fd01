"""Tokens of a tree of guesses, from the acceptance of its nodes.

parents: (nodes,) the index of each node's parent, which stands before it, -1 for the root (the last token there is).
accept: (..., nodes) the probability that a node is the child that is kept, given that its parent was kept (at the
root: in any case). At most one child of a node is kept, so that siblings' probabilities sum to 1 at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import probability, scalar_or_array

_ROUNDING = 1e-6


def node_values(accept: ArrayLike, parents: ArrayLike) -> np.ndarray:
    """(..., nodes) the probability that a node is kept: the product of accept along its path.

    Derived by the chain rule, for any dependence on the path. With a draft's confidences in place of accept it is the
    value by which EAGLE-2 (Li et al. 2024) keeps the best m nodes.

    >>> node_values([0.5, 0.25, 0.5], parents=[-1, -1, 0])
    array([0.5 , 0.25, 0.25])
    """
    accept, parents = probability("accept", accept), _parents(parents)
    if accept.ndim == 0 or accept.shape[-1] != len(parents):
        raise InputError(f"accept has shape {accept.shape} for {len(parents)} nodes; give one probability a node")
    for node in {-1, *parents.tolist()}:
        together = accept[..., parents == node].sum(axis=-1).max(initial=0.0)
        if together > 1 + _ROUNDING:
            raise InputError(f"the children of node {node} are kept with {together:g} in all; it must be 1 at most")
    kept = np.array(accept)
    for node in np.flatnonzero(parents >= 0):
        kept[..., node] *= kept[..., parents[node]]
    return kept


def expected_tokens_tree(accept: ArrayLike, parents: ArrayLike) -> float | np.ndarray:
    """E[N] = 1 + the sum of `node_values`, tokens per round: the kept path's length, and the token the rule draws.

    Derived (Chen et al. 2024, Sequoia, maximise the same sum over trees). On a chain it is `expected_tokens_survival`
    of S_j, on one node a position with accept alpha Eq. 1.

    >>> expected_tokens_tree([0.5, 0.25, 0.5], parents=[-1, -1, 0])
    2.0
    """
    return scalar_or_array(1.0 + node_values(accept, parents).sum(axis=-1))


def _parents(parents: ArrayLike) -> np.ndarray:
    found = np.asarray(parents)
    if found.ndim != 1 or (len(found) and not np.issubdtype(found.dtype, np.integer)):
        raise InputError(f"parents is {parents!r}; it must be a list of node numbers, -1 for the root")
    bad = np.flatnonzero((found < -1) | (found >= np.arange(len(found))))
    if len(bad):
        raise InputError(f"the parent of node {bad[0]} is {found[bad[0]]}; it must stand before it, or be -1")
    return found
