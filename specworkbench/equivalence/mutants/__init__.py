"""Wrong implementations that a check of losslessness must reject, and right ones that look odd, which it must not.

A module for each place where a fault can live: rules, proposals, loops, uniforms, trees; and the null controls.
"""

from specworkbench.equivalence.mutants.controls import NULL_CONTROLS
from specworkbench.equivalence.mutants.mutant import TESTS, Mutant
from specworkbench.equivalence.mutants.registry import MUTANTS, exact_tv, tv_table

__all__ = ["MUTANTS", "NULL_CONTROLS", "TESTS", "Mutant", "exact_tv", "tv_table"]
