"""What a round does in vain: guesses proposed but not emitted, and target positions forwarded for no token.

Derived from survival S_1, .., S_gamma, (..., gamma), without independence: a round of gamma guesses accepts
E[N] - 1 = sum_j S_j of them, rejects one with probability 1 - S_gamma, and discards the rest unexamined. For the i.i.d.
form give `survival_from_acceptance` of gamma times alpha. Chains, judged position by position.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import scalar_or_array, survival_rates


def expected_rejected(survival: ArrayLike) -> float | np.ndarray:
    """1 - S_gamma, guesses per round: a round rejects one guess, unless it accepts all.

    >>> expected_rejected([0.75, 0.5, 0.25])
    0.75
    """
    survival = survival_rates("survival", survival)
    return scalar_or_array(1.0 - survival[..., -1] if survival.shape[-1] else np.zeros(survival.shape[:-1]))


def expected_discarded(survival: ArrayLike) -> float | np.ndarray:
    """sum_j (S_(j-1) - S_j) (gamma - j) = sum_(j < gamma) (1 - S_j), guesses per round, S_0 = 1.

    A round that rejects position j discards the gamma - j after it.

    >>> expected_discarded([0.75, 0.5, 0.25])
    0.75
    """
    survival = survival_rates("survival", survival)
    return scalar_or_array(np.sum(1.0 - survival[..., :-1], axis=-1))


def wasted_guesses(survival: ArrayLike) -> float | np.ndarray:
    """gamma - sum_j S_j, guesses per round that do not become tokens: the rejected and the discarded together.

    >>> wasted_guesses([0.75, 0.5, 0.25])
    1.5
    """
    survival = survival_rates("survival", survival)
    return scalar_or_array(np.sum(1.0 - survival, axis=-1))


def wasted_positions(survival: ArrayLike) -> float | np.ndarray:
    """1 - E[N] / (gamma + 1): the share of the target's positions that give no token.

    A forward computes gamma + 1 rows and N of them become tokens: of the accepted guesses, and of the one the rule
    draws. Leviathan et al. 2023, Theorem 3.11 with c_hat = 0 counts the same as 1 / (1 - share) operations per token.

    >>> wasted_positions([0.75, 0.5, 0.25])
    0.375
    """
    survival = survival_rates("survival", survival)
    return scalar_or_array(np.sum(1.0 - survival, axis=-1) / (survival.shape[-1] + 1))
