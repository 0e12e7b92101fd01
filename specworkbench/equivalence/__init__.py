"""Is the output distributed as the target's own? Exact laws by enumeration of the real code, and mutants to catch."""

from specworkbench.equivalence.choosers import BranchingChooser, BranchingStreams, WiredStreams, enumerate_paths
from specworkbench.equivalence.closed_forms import block_survival, closed_law, survival
from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.law import (
    accepted_law,
    decode_law,
    decode_law_memoised,
    first_tokens,
    largest_difference,
    product_law,
    slot_law,
    total_variation,
)
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS, Mutant
from specworkbench.equivalence.racing import racing
from specworkbench.equivalence.setup import Setup, record, run, sample
from specworkbench.equivalence.toys import TableModel, table_setup, toy_model

__all__ = [
    "BranchingChooser", "BranchingStreams", "WiredStreams", "enumerate_paths",
    "accepted_law", "decode_law", "decode_law_memoised", "first_tokens", "largest_difference", "product_law",
    "slot_law", "total_variation",
    "block_survival", "closed_law", "survival",
    "MUTANTS", "NULL_CONTROLS", "Mutant",
    "Evidence", "Monitor", "racing",
    "Setup", "record", "run", "sample",
    "TableModel", "table_setup", "toy_model",
]  # fmt: skip
