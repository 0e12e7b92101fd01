"""Tables by category as Spec-Bench and SPEED-Bench print theirs, with our own figures beside them where they differ.

A category is a prompt's bucket, so that any prompts make such a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.analysis.acceptance import block_efficiency
from specworkbench.analysis.exports import vllm_totals
from specworkbench.analysis.latency import cost_set
from specworkbench.analysis.parts import by_bucket
from specworkbench.analysis.speedup import measured_speedup
from specworkbench.errors import InputError
from specworkbench.trace import Trace

MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
SPEC_BENCH_TASKS = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")
SPEED_BENCH_CATEGORIES = (
    "coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem", "summarization",
    "writing",
)  # fmt: skip
SPEED_BENCH_TIERS = ("low_entropy", "mixed", "high_entropy")
METRICS = ("accept_length", "accept_rate", "throughput", "block_efficiency")


def spec_bench_table(plain: Trace, speculative: Trace) -> pd.DataFrame:
    """One row a task, in Spec-Bench's order, and "overall"; index: task. What is not measured is NaN.

    Spec-Bench's own columns (evaluation/speed.py): `#Mean accepted tokens`, the mean over all rounds of accepted + 1,
    the bonus included; `Tokens per second` and `Tokens per second for the baseline`, means over the questions of each
    one's tokens over its seconds, prefill included; `Speedup ratio`, the ratio of these means. A mean of rates lets
    short questions weigh as much as long ones. Spec-Bench counts the baseline's tokens in its text, tokenised anew;
    here the tokens decoded are counted on both sides.

    Ours: `block_efficiency` leaves rounds out that the budget shortened; `speedup` with its 95 % interval `low`..`high`
    is a ratio of totals over the questions both traces have. `questions`: how many the speculative trace has.

    The eight categories of MT-bench are one task, mt_bench; buckets of no task of Spec-Bench are tasks of their own.
    Raises `InputError` as `measured_speedup` does.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> spec_bench_table(plain, speculative)["#Mean accepted tokens"].round(2).to_dict()
    {'code': 2.13, 'prose': 2.03, 'structured': 4.13, 'overall': 2.49}
    """
    before, after = _by_task(plain), _by_task(speculative)
    rows = {task: _spec_bench_row(before[task], part) for task, part in after.items() if task in before}
    rows["overall"] = _spec_bench_row(plain, speculative)
    return pd.DataFrame.from_dict(rows, orient="index").astype({"questions": np.int64}).rename_axis("task")


def speed_bench_table(traces: Mapping[str, Trace], metric: str = "accept_length") -> pd.DataFrame:
    """One row a trace, named by its key, one column a category and "Overall"; index: Model. NaN where nothing was.

    The layout and the first three metrics are those of `aiperf speed-bench-report`: accept_length = 1 + accepted /
    steps over the steps that proposed (see `analysis.exports`), accept_rate = accepted / proposed, throughput = tokens
    per second of whole sequences. block_efficiency is ours. Overall is the mean of the categories, each weighing the
    same. (NVIDIA's specdec_bench averages the acceptance lengths of requests instead.)

    The columns are in SPEED-Bench's order where all categories, or all tiers, are its own, else sorted.
    Raises `InputError` for an unknown metric.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> speed_bench_table({"draft-m": trace}).loc["draft-m"].round(2).to_dict()
    {'code': 2.17, 'prose': 2.05, 'structured': 4.23, 'Overall': 2.82}
    """
    if metric not in METRICS:
        raise InputError(f"there is no metric {metric!r} of SPEED-Bench's table; choose one of {', '.join(METRICS)}")
    rows = {
        label: {bucket: _speed_bench_cell(part, metric) for bucket, part in by_bucket(trace).items()}
        for label, trace in traces.items()
    }
    found = {bucket for row in rows.values() for bucket in row}
    known = next((own for own in (SPEED_BENCH_CATEGORIES, SPEED_BENCH_TIERS) if found <= set(own)), sorted(found))
    columns = [bucket for bucket in known if bucket in found]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns).astype(np.float64)
    return table.assign(Overall=table.mean(axis=1)).rename_axis("Model")


def _by_task(trace: Trace) -> dict[str, Trace]:
    parts = by_bucket(trace, lambda bucket: "mt_bench" if bucket in MT_BENCH else bucket)
    order = [*(task for task in SPEC_BENCH_TASKS if task in parts), *parts]
    return {task: parts[task] for task in order}


def _spec_bench_row(plain: Trace, speculative: Trace) -> dict[str, float | int | None]:
    baseline, rate = _mean_rate(plain), _mean_rate(speculative)
    speedup = measured_speedup(plain, speculative)
    return {
        "#Mean accepted tokens": speculative.rounds["verdict_length"].mean(),
        "Tokens per second": rate,
        "Tokens per second for the baseline": baseline,
        "Speedup ratio": rate / baseline,
        "block_efficiency": block_efficiency(speculative).value,
        "speedup": speedup.value,
        "low": speedup.low,
        "high": speedup.high,
        "questions": len(speculative.sequences),
    }


def _mean_rate(trace: Trace) -> float:
    """Tokens per second, a mean over the sequences; NaN where the time means nothing, as the proposer's cost is set."""
    if cost_set(trace) is not None:
        return np.nan
    return float(np.mean([_tokens([sequence]) / _seconds([sequence]) for sequence in trace.sequences]))


def _speed_bench_cell(trace: Trace, metric: str) -> float | None:
    if metric == "block_efficiency":
        return block_efficiency(trace).value
    if metric == "throughput":
        return np.nan if cost_set(trace) is not None else _tokens(trace.sequences) / _seconds(trace.sequences)
    totals = vllm_totals(trace)
    if not totals or not totals["num_spec_steps"]:
        return None
    return totals["mean_acceptance_length" if metric == "accept_length" else "draft_acceptance_rate"]


def _tokens(sequences: list[dict[str, Any]]) -> int:
    return sum(len(sequence["token_ids"]) for sequence in sequences)


def _seconds(sequences: list[dict[str, Any]]) -> float:
    """Of whole sequences, prefill included; NaN where one was not timed."""
    return np.sum(np.array([sequence["ms_total"] for sequence in sequences], dtype=np.float64)) / 1e3
