"""Tests of a sampler on columns of `Evidence` and on samples: numpy and scipy only.

Anytime-valid: `EProcess`. At a fixed number of tokens: `overweight_test`, `acceptance_test`, `cells_test`. Against an
exact law: `law_test`. Between two samples: `mmd_test`. What is left open: `equivalence`, `detectable_tv`. For all
p-values together: `holm`. `check_level` says what a level may be.
"""

from specworkbench.equivalence.statistics.bounds import (
    Equivalence,
    detectable_by_e_process,
    detectable_tv,
    equivalence,
    holm,
    partition_tv,
    tv_bound,
)
from specworkbench.equivalence.statistics.cells import cells_test, law_test
from specworkbench.equivalence.statistics.e_process import EProcess
from specworkbench.equivalence.statistics.levels import check_level
from specworkbench.equivalence.statistics.overweight import acceptance_test, overweight_by_slot, overweight_test
from specworkbench.equivalence.statistics.result import Test
from specworkbench.equivalence.statistics.two_sample import mmd_test

__all__ = [
    "EProcess", "Test",
    "acceptance_test", "cells_test", "law_test", "mmd_test", "overweight_by_slot", "overweight_test",
    "Equivalence", "detectable_by_e_process", "detectable_tv", "equivalence", "holm", "partition_tv", "tv_bound",
    "check_level",
]  # fmt: skip
