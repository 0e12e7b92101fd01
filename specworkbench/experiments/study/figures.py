"""The figures of a cell, from its two traces: what `compare` gives, with intervals. No torch."""

from __future__ import annotations

from typing import Any

from specworkbench import analysis
from specworkbench.trace import Trace

INTERVALS = {
    "alpha_counts": ("alpha_counts_low", "alpha_counts_high"),
    "alpha_overlap": ("alpha_overlap_low", "alpha_overlap_high"),
    "block_efficiency": ("block_efficiency_low", "block_efficiency_high"),
    "c": ("c_low", "c_high"),
    "verify_cost": ("verify_cost_low", "verify_cost_high"),
    "loop_overhead": ("loop_overhead_low", "loop_overhead_high"),
    "speedup_measured": ("speedup_low", "speedup_high"),
    "speedup_rounds": ("speedup_rounds_low", "speedup_rounds_high"),
}
"""The columns of the ends of a figure's interval."""

MEASURES = {
    "alpha_counts": "alpha: accepted / examined tokens",
    "alpha_overlap": "alpha as overlap: mean of sum min(p, q)",
    "block_efficiency": "tokens per round, E[N]",
    "expected_tokens": "tokens per round in theory, i.i.d.",
    "c": "c: proposer time per token, in target steps",
    "verify_cost": "v(gamma + 1): verification, in target steps",
    "loop_overhead": "loop overhead per round, in target steps",
    "speedup_predicted": "speedup in theory",
    "speedup_measured": "speedup, prefills included",
    "speedup_rounds": "speedup of the rounds alone",
    "plain_ms_per_token": "ms per token, plain",
    "speculative_ms_per_token": "ms per token, speculative",
    "tokens": "tokens decoded speculatively",
}
"""Every figure of a cell, in words with its unit."""


def figures(plain: Trace, speculative: Trace) -> dict[str, Any]:
    """`MEASURES` and the ends of `INTERVALS`, JSON-ready: None where nothing was measured.

    loop_overhead is what a round takes beside proposer, target and rule. speedup_rounds leaves both prefills out.
    """
    gamma = speculative.gamma
    estimates = {
        "alpha_counts": analysis.alpha_counts(speculative),
        "alpha_overlap": analysis.alpha_overlap(speculative),
        "block_efficiency": analysis.block_efficiency(speculative),
        "c": analysis.draft_cost(speculative, plain),
        "verify_cost": analysis.verify_cost(speculative, gamma + 1, plain),
        "loop_overhead": analysis.loop_overhead(speculative, plain),
        "speedup_measured": analysis.measured_speedup(plain, speculative),
        "speedup_rounds": analysis.measured_speedup(plain, speculative, prefill=False),
    }
    found = analysis.compare(plain, speculative)
    for name, estimate in estimates.items():
        found[name], found[INTERVALS[name][0]], found[INTERVALS[name][1]] = estimate
    for side, trace in (("plain", plain), ("speculative", speculative)):
        ms = sum(sequence["ms_total"] for sequence in trace.sequences)
        found[f"{side}_ms_per_token"] = ms / sum(len(sequence["token_ids"]) for sequence in trace.sequences)
    ends = [end for pair in INTERVALS.values() for end in pair]
    return {name: found[name] for name in (*MEASURES, *ends)}
