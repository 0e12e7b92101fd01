"""What `decode --json` prints of a trace."""

from __future__ import annotations

from typing import Any

from specworkbench.analysis.acceptance import (
    alpha_counts,
    alpha_overlap,
    block_efficiency,
    conditional_by_position,
    survival_by_position,
)
from specworkbench.trace import Trace

TOTALS = ("proposed", "examined", "accepted", "emitted")
PHASES = ("ms_propose", "ms_verify", "ms_accept", "ms_rollback")


def summary(trace: Trace) -> dict[str, Any]:
    """The figures of a trace, JSON-ready: None where nothing was examined or measured, never NaN.

    text, token_ids and stop_reason are the first sequence's; rule is the manifest's: its name, whether it is lossless,
    its settings; counts and times are totals over all of them. ms_total
    is that of whole sequences, prefill included. target_forwards are those of rounds, prefill apart. Lists have one
    entry a position 1..gamma. `block_efficiency` of plain decoding is 1: it needs no proposal.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> figures = summary(trace)
    >>> figures["proposed"], figures["accepted"], round(figures["block_efficiency"], 3)
    (583, 230, 2.573)
    """
    first = trace.sequences[0] if trace.sequences else {}
    rounds = trace.rounds
    return {
        "text": first.get("text"),
        "token_ids": first.get("token_ids"),
        "stop_reason": first.get("stop_reason"),
        "rule": trace.manifest["rule"],
        "rounds": len(rounds),
        **{name: int(rounds[name].sum()) for name in TOTALS},
        "alpha_counts": alpha_counts(trace).value,
        "alpha_overlap": alpha_overlap(trace).value,
        "block_efficiency": block_efficiency(trace).value,
        "survival_by_position": survival_by_position(trace),
        "acceptance_by_position": conditional_by_position(trace),
        "ms_prefill": _total(trace, "ms_prefill"),
        **{name: float(rounds[name].sum()) for name in PHASES},
        "ms_total": _total(trace, "ms_total"),
        "target_forwards": len(rounds),
        "draft_forwards": int(rounds["draft_forwards"].sum()),
    }


def _total(trace: Trace, key: str) -> float | None:
    """Sum over the sequences; None where one of them has none."""
    values = [sequence.get(key) for sequence in trace.sequences]
    return None if not values or None in values else float(sum(values))
