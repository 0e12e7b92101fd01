"""Without independence: what holds whatever the dependence between the positions of a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import probability, scalar_or_array


def expected_tokens_survival(survival: ArrayLike) -> float | np.ndarray:
    """E[N] = 1 + sum_j S_j over the last axis, tokens per round.

    survival: (..., gamma), S_j the probability that the first j proposed tokens are all accepted (unconditional; what
    vLLM reports per position). Derived: N - 1 is a count, and its mean is the sum of its tail probabilities. With
    S_j = alpha^j this is Leviathan et al. 2023, Eq. 1.
    """
    survival = probability("survival", survival)
    if survival.ndim == 0:
        raise InputError(f"survival is {survival.item():g}; it must be a list of S_1, S_2, ..., one a position")
    return scalar_or_array(1.0 + np.sum(survival, axis=-1))
