"""Engines that are not ours, tested by their outputs alone.

What draws: `AssistedGeneration` (transformers), `OurDecoding`; what others drew: `read_samples`. Against the target's
own rows: `sequence_cells`, `sequence_test`. Where no row is known: `two_samples`.
"""

from specworkbench.equivalence.others.assisted import AssistedGeneration
from specworkbench.equivalence.others.ours import OurDecoding
from specworkbench.equivalence.others.partition import SequenceCells, SequenceOutcome, sequence_cells, sequence_test
from specworkbench.equivalence.others.sample_files import Samples, read_samples, write_samples
from specworkbench.equivalence.others.samples import TwoSamples, permutations_for, two_samples

__all__ = [
    "AssistedGeneration", "OurDecoding",
    "SequenceCells", "SequenceOutcome", "sequence_cells", "sequence_test",
    "Samples", "TwoSamples", "permutations_for", "read_samples", "two_samples", "write_samples",
]  # fmt: skip
