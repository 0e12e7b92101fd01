"""How far a chain of guesses is kept, exactly, by going through every chain over a small vocabulary.

rows: a function of the guesses so far, a tuple of tokens, to (p, q), the (vocab,) rows of target and proposer after
them; `fixed_rows` makes one of arrays. The work is vocab^gamma: a few tokens, a few guesses. The survival rates that
come out go into `expected_tokens_survival` and its kin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import count, row_pair

Guesses = tuple[int, ...]
Rows = Callable[[Guesses], tuple[ArrayLike, ArrayLike]]
"""The guesses so far to (p, q), (vocab,) each."""


def fixed_rows(p: ArrayLike, q: ArrayLike) -> Rows:
    """Rows that depend on the position at most, not on the guesses. p, q: (vocab,), or (gamma, vocab) by position.

    >>> rows = fixed_rows([[0.5, 0.5], [0.25, 0.75]], [0.75, 0.25])
    >>> rows((0,))
    (array([0.25, 0.75]), array([0.75, 0.25]))
    """
    p, q = row_pair(p, q)
    if max(p.ndim, q.ndim) > 2:
        raise InputError(f"p has shape {p.shape} and q {q.shape}; give one row, or one row a position")

    def rows(guesses: Guesses) -> tuple[np.ndarray, np.ndarray]:
        return tuple(row if row.ndim == 1 else row[_place(row, guesses)] for row in (p, q))

    return rows


def kept_survival(kept: Callable[[Guesses], ArrayLike], gamma: int) -> np.ndarray:
    """(gamma,) S_j = sum over x_1..x_j of prod_i kept(x_i | x_1..x_(i-1)), of a rule that judges position by position.

    kept: the guesses so far to (vocab,) probabilities that a token is guessed and kept. Derived: the rule's decisions
    are independent, given the guesses.

    >>> kept_survival(lambda guesses: [0.5, 0.25], 2)
    array([0.75  , 0.5625])
    """
    found, chains = [], {(): 1.0}
    for _ in range(int(count("gamma", gamma))):
        chains = {
            (*guesses, token): weight * share
            for guesses, weight in chains.items()
            for token, share in enumerate(np.asarray(kept(guesses), dtype=np.float64).tolist())
            if share > 0
        }
        found.append(sum(chains.values()))
    return np.array(found)


def token_survival(rows: Rows, gamma: int) -> np.ndarray:
    """(gamma,) S_j under the token rule, which guesses and keeps x with min(p(x), q(x)).

    Leviathan et al. 2023, Theorem 3.5, position by position. With rows that depend on nothing it is beta^j.

    >>> token_survival(fixed_rows([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]), 3)
    array([0.75    , 0.5625  , 0.421875])
    """
    return kept_survival(lambda guesses: np.minimum(*row_pair(*rows(guesses))), gamma)


def block_survival(rows: Rows, gamma: int) -> np.ndarray:
    """(gamma,) S_j = E[b_j] under block verification, b_j = min(1, b_(j-1) p/q); E[tau] = sum_j E[b_j].

    Sun et al. 2024 (arXiv 2403.10444), Algorithm 2 and its proof, P(tau >= j | x) = b_j. Written with
    m_j(x_1..x_j) = q(x_1..x_j) b_j, which is min(q(x_1..x_j), m_(j-1) p(x_j | x_1..x_(j-1))), so that S_j = sum m_j:
    at least the token rule's sum of prod min(p, q), at most 1 - TV of the two laws of j tokens.

    >>> block_survival(fixed_rows([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]), 3)
    array([0.75   , 0.625  , 0.53125])
    """
    return _survival_of_pairs(rows, gamma, lambda drawn, kept, p, q: (drawn * q, np.minimum(drawn * q, kept * p)))


def overlap_survival(rows: Rows, gamma: int) -> np.ndarray:
    """(gamma,) 1 - TV between the laws of j tokens of target and proposer: no lossless rule keeps j guesses more often.

    Derived: kept guesses of a lossless rule are at most as probable as under either law, so at most min(p, q) of the
    whole prefix (Sun et al. 2024 start from the same coupling).

    >>> overlap_survival(fixed_rows([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]), 3)
    array([0.75    , 0.6875  , 0.609375])
    """
    return _survival_of_pairs(rows, gamma, lambda of_target, drawn, p, q: (of_target * p, drawn * q))


def _survival_of_pairs(rows: Rows, gamma: int, longer: Callable[..., tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(gamma,) sum over x_1..x_j of the smaller of two weights that go with every chain of guesses, (1, 1) at first.

    longer: the weights of a chain and the rows p and q after it to the weights, (vocab,) each, with one guess more.
    """
    found, chains = [], {(): (1.0, 1.0)}
    for _ in range(int(count("gamma", gamma))):
        grown = {}
        for guesses, pair in chains.items():
            first, second = longer(*pair, *row_pair(*rows(guesses)))
            for token in np.flatnonzero(np.minimum(first, second)).tolist():
                grown[*guesses, token] = float(first[token]), float(second[token])
        chains = grown
        found.append(sum(min(pair) for pair in chains.values()))
    return np.array(found)


def _place(row: np.ndarray, guesses: Guesses) -> int:
    if len(guesses) >= len(row):
        raise InputError(f"there are rows for {len(row)} positions, and gamma is more; give a row a position")
    return len(guesses)
