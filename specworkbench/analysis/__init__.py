"""From traces to tables and figures with intervals. numpy, scipy and pandas only; what is not measured is None.

Acceptance: `alpha_counts`, `alpha_overlap`, `acceptance_by_position`, `survival_by_position`, `acceptance_by`,
`acceptance_map`, `block_efficiency`, `emitted_per_forward`, `accepted_per_proposed`. Time: `target_time`,
`draft_cost` (c), `cost_set`, `verify_cost` (v), `loop_overhead` (o), `latency_by_sequence` (TTFT, TPOT). Speedup:
`measured_speedup`, `predicted_speedup`, `compare`. From the formula to the measurement: `gap` (named steps that add
up), `predictions`, `survival_against_iid`, `autocorrelation`. Of one trace in all: `summary`; of its parts:
`by_bucket`, `select`. In others' words: `vllm_metrics`, `acceptance_records` (AIPerf) and their totals, `export`; in
others' tables: `spec_bench_table`, `speed_bench_table`.
"""

from specworkbench.analysis.acceptance import (
    acceptance_by,
    acceptance_by_position,
    accepted_per_proposed,
    alpha_counts,
    alpha_overlap,
    block_efficiency,
    emitted_per_forward,
    survival_by_position,
)
from specworkbench.analysis.acceptance_map import acceptance_map
from specworkbench.analysis.dependence import autocorrelation, survival_against_iid
from specworkbench.analysis.estimate import Estimate
from specworkbench.analysis.exports import acceptance_records, acceptance_totals, export, vllm_metrics, vllm_totals
from specworkbench.analysis.gap import Gap, gap
from specworkbench.analysis.latency import (
    cost_set,
    draft_cost,
    latency_by_sequence,
    loop_overhead,
    target_time,
    verify_cost,
)
from specworkbench.analysis.layouts import spec_bench_table, speed_bench_table
from specworkbench.analysis.parts import by_bucket, select
from specworkbench.analysis.predictions import predictions
from specworkbench.analysis.speedup import compare, measured_speedup, predicted_speedup
from specworkbench.analysis.summary import summary

__all__ = [
    "Estimate",
    "alpha_counts",
    "alpha_overlap",
    "acceptance_by_position",
    "survival_by_position",
    "acceptance_by",
    "acceptance_map",
    "block_efficiency",
    "emitted_per_forward",
    "accepted_per_proposed",
    "target_time",
    "cost_set",
    "draft_cost",
    "verify_cost",
    "loop_overhead",
    "latency_by_sequence",
    "measured_speedup",
    "predicted_speedup",
    "compare",
    "Gap",
    "gap",
    "predictions",
    "survival_against_iid",
    "autocorrelation",
    "summary",
    "vllm_metrics",
    "vllm_totals",
    "acceptance_records",
    "acceptance_totals",
    "export",
    "spec_bench_table",
    "speed_bench_table",
    "by_bucket",
    "select",
]
