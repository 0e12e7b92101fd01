"""A trace in the words of vLLM and AIPerf: acceptance per request, as their servers and clients tell it.

Followed is vLLM 0.32 (v1/metrics/stats.py, `RequestSpecDecodeMetrics`; v1/core/sched/scheduler.py), whose fields AIPerf
takes over (common/models/spec_decode_models.py, `SpecDecodeAcceptanceRecord`):

- A request is a sequence; all requests together are the sum over their steps.
- A step is a round that proposed at least one token. A round without a guess is none, so that `mean_acceptance_length`
  = 1 + accepted / steps is above `block_efficiency` of a proposer that often finds nothing.
- Accepted is what the rule decided on, before EOS, a stop string or the limit cuts the output: the lengths of a
  request may sum to more than its tokens.
- k is gamma. vLLM proposes k tokens whatever is left of the budget; here the last rounds propose fewer, as
  `per_step_drafted` shows.
- vLLM draws a request's first token from the prefill, a step of no drafts; here the first round drafts already.
- Of a tree, drafted are its nodes and k its depth, so that a histogram has no more than k + 1 places.
- Plain decoding has no such metrics: null. Where a proposer found nothing at all there are zero steps, the mean is 1
  and the rate 0, as vLLM has it.

SGLang's `spec_accept_length` is another figure: completion tokens over steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.trace import Trace

ENGINE = "specworkbench"
PLAIN = "none"
Metrics = dict[str, Any]


def vllm_metrics(trace: Trace, *, detailed: bool = False) -> list[Metrics | None]:
    """vLLM's `metrics.speculative_decoding` of each sequence, JSON-ready; None for plain decoding.

    mean_acceptance_length: tokens per step, the bonus included; draft_acceptance_rate: accepted / drafted;
    acceptance_histogram: k + 1 counts, place j how many steps accepted j; num_spec_steps, num_accepted_draft_tokens,
    num_draft_tokens, num_spec_tokens (k). detailed adds per_step_accepted and per_step_drafted, in order, where there
    was a step.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> vllm_metrics(trace)[0]["acceptance_histogram"]
    [16, 11, 4, 2, 1]
    """
    return [_metrics(trace, steps, detailed) for steps in _steps_by_sequence(trace)]


def vllm_totals(trace: Trace) -> Metrics | None:
    """The same over the steps of all sequences. Its counts are what vLLM's `vllm:spec_decode_num_drafts`,
    `_num_draft_tokens` and `_num_accepted_tokens` would show for them.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(vllm_totals(trace)["draft_acceptance_rate"], 3)
    0.395
    """
    return _metrics(trace, _steps(trace), detailed=False)


def acceptance_records(trace: Trace, *, detailed: bool = False) -> list[Metrics | None]:
    """AIPerf's `SpecDecodeAcceptanceRecord` of each sequence, JSON-ready; None for plain decoding.

    As `vllm_metrics`, with engine and completion_tokens (those of the output, EOS included) before and behind, and the
    histogram sparse, {j: steps}, without empty places; per_step_accepted and per_step_drafted are None unless detailed.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> acceptance_records(trace)[0]["acceptance_histogram"]
    {0: 16, 1: 11, 2: 4, 3: 2, 4: 1}
    """
    tokens = [len(sequence["token_ids"]) for sequence in trace.sequences]
    return [_record(*pair) for pair in zip(vllm_metrics(trace, detailed=detailed), tokens, strict=True)]


def acceptance_totals(trace: Trace) -> Metrics | None:
    """The same over the steps of all sequences: what AIPerf pools.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(acceptance_totals(trace)["mean_acceptance_length"], 3)
    np.float64(2.533)
    """
    return _record(vllm_totals(trace), sum(len(sequence["token_ids"]) for sequence in trace.sequences))


def _vllm_request(metrics: Metrics | None) -> Metrics:
    return {"metrics": {"speculative_decoding": metrics}}


def _aiperf_request(record: Metrics | None) -> Metrics:
    return {"spec_decode_acceptance": record}


FORMATS: dict[str, tuple[Callable[..., list[Metrics | None]], Callable[..., Metrics | None], Callable]] = {
    "vllm": (vllm_metrics, vllm_totals, _vllm_request),
    "aiperf": (acceptance_records, acceptance_totals, _aiperf_request),
}
"""By name: what tells of each sequence, what of all, and under which key that project's own output has it."""


def export(trace: Trace, name: str, *, detailed: bool = False) -> dict[str, list[Metrics] | Metrics]:
    """{"requests": [...], "total": {...}}, JSON-ready, in the format of that name, one of `FORMATS`.

    A request has its id, `usage` (prompt_tokens, completion_tokens, total_tokens) and what vLLM's response has under
    `metrics.speculative_decoding`, or a line of AIPerf's profile_export.jsonl under `spec_decode_acceptance`.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> export(trace, "vllm")["requests"][0]["usage"]
    {'prompt_tokens': 100, 'completion_tokens': 64, 'total_tokens': 164}
    """
    each, all_of_them, placed = FORMATS[name]
    told = zip(trace.sequences, each(trace, detailed=detailed), strict=True)
    requests = [{"id": sequence["id"], "usage": _usage([sequence]), **placed(found)} for sequence, found in told]
    return {"requests": requests, "total": {"usage": _usage(trace.sequences), **placed(all_of_them(trace))}}


def _usage(sequences: list[dict[str, Any]]) -> dict[str, int]:
    prompt, completion = (sum(len(sequence[key]) for sequence in sequences) for key in ("prompt_tokens", "token_ids"))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _steps(trace: Trace) -> pd.DataFrame:
    """The rounds that proposed anything, in order."""
    return trace.rounds[trace.rounds["proposed"] > 0].sort_values(["sequence", "round"])


def _steps_by_sequence(trace: Trace) -> list[pd.DataFrame]:
    steps = _steps(trace)
    return [steps[steps["sequence"] == index] for index in range(len(trace.sequences))]


def _metrics(trace: Trace, steps: pd.DataFrame, detailed: bool) -> Metrics | None:
    if trace.manifest["proposer"]["name"] == PLAIN:
        return None
    k = max(trace.gamma, int(trace.rounds["gamma"].max()) if len(trace.rounds) else 0)
    accepted, drafted = steps["accepted"].to_numpy(dtype=np.int64), steps["proposed"].to_numpy(dtype=np.int64)
    found = {
        "mean_acceptance_length": 1.0 + accepted.sum() / len(steps) if len(steps) else 1.0,
        "draft_acceptance_rate": float(accepted.sum() / drafted.sum()) if len(steps) else 0.0,
        "acceptance_histogram": np.bincount(accepted, minlength=k + 1).tolist(),
        "num_spec_steps": len(steps),
        "num_accepted_draft_tokens": int(accepted.sum()),
        "num_draft_tokens": int(drafted.sum()),
        "num_spec_tokens": k,
    }
    if detailed and len(steps):
        found |= {"per_step_accepted": accepted.tolist(), "per_step_drafted": drafted.tolist()}
    return found


def _record(metrics: Metrics | None, completion_tokens: int) -> Metrics | None:
    if metrics is None:
        return None
    histogram = {j: count for j, count in enumerate(metrics["acceptance_histogram"]) if count}
    steps = {name: metrics.get(name) for name in ("per_step_accepted", "per_step_drafted")}
    return {
        "engine": ENGINE,
        **metrics,
        "acceptance_histogram": histogram,
        "completion_tokens": completion_tokens,
        **steps,
    }
