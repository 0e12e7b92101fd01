"""Claims about the speedup that are told as rules, and are to be tested: none of them is derived here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import cost, guesses, scalar_or_array, tokens_per_round


def shortcut_speedup(gamma: ArrayLike, accept_length: ArrayLike, c: ArrayLike) -> float | np.ndarray:
    """1 / (gamma / accept_length + c): a shortcut for the speedup that articles give. A claim, and not `speedup`.

    accept_length: tokens per round, 1 or more. Its first term charges a target step for every guess, though one forward
    verifies all gamma of them, and its second charges the proposer once, though it runs gamma times. The formula is
    E[N] / (gamma c + 1) (Leviathan et al. 2023, Theorem 3.8); the two agree where gamma = 1 and c = 0, or by chance.

    >>> round(shortcut_speedup(4, 3.36, 0.05), 2)
    0.81
    >>> from specworkbench.theory import speedup
    >>> round(speedup(0.8, 4, 0.05), 2)
    2.8
    """
    steps = guesses("gamma", gamma) / tokens_per_round("accept_length", accept_length) + cost("c", c)
    return scalar_or_array(1 / steps)
