"""What speculative decoding should give: one formula, one function, its source cited.

Notation, as everywhere: p is the target's distribution, q the proposer's. `alpha` is the acceptance probability of an
examined position, `gamma` the tokens proposed per round, `c` the proposer's time per proposed token over the target's
time per plain step. All functions take scalars or arrays, which broadcast; scalars in give a scalar out.

- `iid`: Leviathan's formulas. `survival`: the same without independence. `costs`: what a round costs, batches.
- `tradeoff`: break-even, whether one more guess pays. `waste`: what a round does in vain. `claims`: rules to test.
- `overlap`: alpha from rows p and q. `chains`, `block`: chains of guesses, judged by position or as a block.
- `candidates`, `trees`: several guesses for one position. `one_position`: every rule of one position, right or wrong.
- `roofline`: the least time of a forward.

Sources: Leviathan, Kalman, Matias 2023, "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192);
what is marked as derived follows from it. Other sources stand with their formulas.
"""

from specworkbench.theory.block import block_kept, block_lengths, block_residual, block_thresholds
from specworkbench.theory.candidates import (
    certain_acceptance,
    distinct_acceptance,
    independent_acceptance,
    k_seq_acceptance,
    k_seq_beta,
    k_seq_residual,
    k_seq_rho,
    transport_bound,
)
from specworkbench.theory.chains import block_survival, fixed_rows, kept_survival, overlap_survival, token_survival
from specworkbench.theory.claims import shortcut_speedup
from specworkbench.theory.costs import batched_speedup, implied_tokens, round_cost
from specworkbench.theory.iid import (
    alpha_from_counts,
    expected_tokens,
    operations_factor,
    optimal_gamma,
    speedup,
)
from specworkbench.theory.overlap import acceptance_z, alpha_from_rows, overlap
from specworkbench.theory.roofline import arithmetic_time, least_time, memory_time
from specworkbench.theory.survival import (
    expected_tokens_survival,
    optimal_gamma_survival,
    speedup_survival,
    survival_from_acceptance,
)
from specworkbench.theory.tradeoff import (
    break_even_alpha,
    break_even_c,
    gain_of_one_more,
    guaranteed_speedup,
    least_alpha,
)
from specworkbench.theory.trees import expected_tokens_tree, node_values
from specworkbench.theory.waste import expected_discarded, expected_rejected, wasted_guesses, wasted_positions

__all__ = [
    "acceptance_z",
    "alpha_from_counts",
    "alpha_from_rows",
    "arithmetic_time",
    "batched_speedup",
    "block_kept",
    "block_lengths",
    "block_residual",
    "block_survival",
    "block_thresholds",
    "break_even_alpha",
    "break_even_c",
    "certain_acceptance",
    "distinct_acceptance",
    "expected_discarded",
    "expected_rejected",
    "expected_tokens",
    "expected_tokens_survival",
    "expected_tokens_tree",
    "fixed_rows",
    "gain_of_one_more",
    "guaranteed_speedup",
    "implied_tokens",
    "independent_acceptance",
    "k_seq_acceptance",
    "k_seq_beta",
    "k_seq_residual",
    "k_seq_rho",
    "kept_survival",
    "least_alpha",
    "least_time",
    "memory_time",
    "node_values",
    "operations_factor",
    "optimal_gamma",
    "optimal_gamma_survival",
    "overlap",
    "overlap_survival",
    "round_cost",
    "shortcut_speedup",
    "speedup",
    "speedup_survival",
    "survival_from_acceptance",
    "token_survival",
    "transport_bound",
    "wasted_guesses",
    "wasted_positions",
]
