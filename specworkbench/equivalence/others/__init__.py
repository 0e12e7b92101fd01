"""Engines that are not ours, tested by their outputs alone."""

from specworkbench.equivalence.others.assisted import AssistedGeneration
from specworkbench.equivalence.others.partition import SequenceCells, SequenceOutcome, sequence_cells, sequence_test

__all__ = ["AssistedGeneration", "SequenceCells", "SequenceOutcome", "sequence_cells", "sequence_test"]
