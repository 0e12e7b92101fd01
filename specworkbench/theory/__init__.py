"""What speculative decoding should give: one formula, one function, its source cited.

Notation, as everywhere: p is the target's distribution, q the proposer's. `alpha` is the acceptance probability of an
examined position, `gamma` the tokens proposed per round, `c` the proposer's time per proposed token over the target's
time per plain step. All functions take scalars or arrays, which broadcast; scalars in give a scalar out.

Sources: Leviathan, Kalman, Matias 2023, "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192);
what is marked as derived follows from it. Other sources stand with their formulas.
"""

from specworkbench.theory.iid import (
    alpha_from_counts,
    expected_tokens,
    operations_factor,
    optimal_gamma,
    speedup,
)
from specworkbench.theory.roofline import arithmetic_time, least_time, memory_time
from specworkbench.theory.survival import expected_tokens_survival

__all__ = [
    "alpha_from_counts",
    "arithmetic_time",
    "expected_tokens",
    "expected_tokens_survival",
    "least_time",
    "memory_time",
    "operations_factor",
    "optimal_gamma",
    "speedup",
]
