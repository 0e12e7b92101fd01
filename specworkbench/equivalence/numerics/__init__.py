"""Floating point is not bias: keep apart what rounding does to the target's rows from what a fault does.

L1, the sampler is exact given the rows it used, is tested elsewhere. L2: these rows equal single-token rows up to
rounding, by dtype. L3: the output's law is within the sum of L2's differences of the target's own.
"""

from specworkbench.equivalence.numerics.bound import TVBound, rerun, sequence_tv_bound
from specworkbench.equivalence.numerics.difference import RowDifference, tv, watch
from specworkbench.equivalence.numerics.divergence import Divergence, first_divergence, logit_noise
from specworkbench.equivalence.numerics.fresh import each_fresh_logits, fresh_logits, fresh_rows, round_logits
from specworkbench.equivalence.numerics.recheck import allowed, check_fresh_rows, recheck
from specworkbench.equivalence.numerics.same_shape import SameShape, plain, same_shape
from specworkbench.equivalence.numerics.settings import penalised, processed
from specworkbench.equivalence.numerics.verdict import RowVerdict, judge_rows

__all__ = [
    "RowDifference", "tv", "watch",
    "each_fresh_logits", "fresh_logits", "fresh_rows", "round_logits",
    "allowed", "check_fresh_rows", "recheck",
    "SameShape", "plain", "same_shape",
    "penalised", "processed",
    "RowVerdict", "judge_rows",
    "Divergence", "first_divergence", "logit_noise",
    "TVBound", "rerun", "sequence_tv_bound",
]  # fmt: skip
