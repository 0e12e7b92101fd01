"""Speedup, predicted and measured: a plain trace against a speculative one of the same prompts."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from specworkbench import theory
from specworkbench.analysis.acceptance import alpha_counts, alpha_overlap, block_efficiency
from specworkbench.analysis.estimate import Estimate, interval, resamples
from specworkbench.analysis.latency import cost_set, draft_cost, loop_overhead, verify_cost
from specworkbench.analysis.parts import gamma_varies, has_trees, prompts, select
from specworkbench.errors import InputError
from specworkbench.trace import Trace

SAME = ("target", "sampling", "device")
"""What of the manifests must agree for two traces to be compared."""


def measured_speedup(plain: Trace, speculative: Trace, *, prefill: bool = True) -> Estimate:
    """Plain time per emitted token over speculative time per emitted token: a ratio of totals. n: prompts.

    Interval by bootstrap over prompts, paired: a drawn prompt brings its plain and its speculative decoding. Prompts
    that only one of the traces has are left out. The time is that of whole sequences, both prefills included, or of
    their rounds alone with prefill=False (what the formulas speak of). There is none (None) where the cost of a
    proposer is set, not measured: the time of one that reads the target ahead means nothing.
    Raises `InputError` where the traces differ in target, sampling or device, or share no prompt.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> speedup = measured_speedup(plain, speculative)
    >>> speedup.low < speedup.value < speedup.high, speedup.n
    (True, 6)
    """
    before, after = (_by_prompt(trace, prefill) for trace in (plain, speculative))
    both = _comparable(plain, speculative, before, after)
    if any(cost_set(trace) is not None for trace in (plain, speculative)):
        return Estimate(None, None, None, len(both))
    totals = np.array([(*before[name], *after[name]) for name in both])
    value = _speedup(totals.sum(axis=0, keepdims=True))[0]
    if len(both) < 2:
        return Estimate(float(value), None, None, len(both))
    drawn = _speedup(resamples(len(both)) @ totals)
    return Estimate(float(value), *interval(drawn, np.ones(len(drawn))), len(both))


def predicted_speedup(plain: Trace, speculative: Trace, *, overhead: bool = False) -> float | None:
    """`theory.speedup` of the measured alpha_counts, gamma, c and v(gamma + 1); None where one is not measured.

    It takes every round to propose a chain of gamma tokens, and says nothing (None) of trees or of a gamma that varies.
    overhead: whether the loop's own time counts as well.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> predicted_speedup(plain, speculative) > 0
    True
    """
    if has_trees(speculative) or gamma_varies(speculative):
        return None
    gamma = speculative.gamma
    alpha, c = alpha_counts(speculative).value, draft_cost(speculative, plain).value
    cost = verify_cost(speculative, gamma + 1, plain).value
    extra = loop_overhead(speculative, plain).value if overhead else 0.0
    if None in (alpha, c, cost, extra):
        return None
    return theory.speedup(alpha, gamma, c, verify_cost=cost, overhead=extra)


def compare(plain: Trace, speculative: Trace) -> dict[str, Any]:
    """One row of a report, JSON-ready: what was measured beside what the theory expects of it.

    bucket is that of the prompts, or "all" where they are of several. tokens: emitted by the speculative decoding.
    What the theory expects is for chains of one gamma, and None for others. Where the proposer's cost is set
    (`cost_set`), c is that cost, and the measured speedup and its interval are None.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> row = compare(plain, speculative)
    >>> row["gamma"], row["tokens"], round(row["block_efficiency"], 3)
    (4, 384, 2.573)
    """
    alpha = alpha_counts(speculative).value
    expects_nothing = alpha is None or has_trees(speculative) or gamma_varies(speculative)
    gamma, buckets = speculative.gamma, {sequence["bucket"] for sequence in speculative.sequences}
    speedup, low, high = measured_speedup(plain, speculative)
    return {
        "proposer": speculative.manifest["proposer"]["name"],
        "bucket": buckets.pop() if len(buckets) == 1 else "all",
        "gamma": gamma,
        "temperature": speculative.manifest["sampling"]["temperature"],
        "alpha_counts": alpha,
        "alpha_overlap": alpha_overlap(speculative).value,
        "block_efficiency": block_efficiency(speculative).value,
        "expected_tokens": None if expects_nothing else theory.expected_tokens(alpha, gamma),
        "c": draft_cost(speculative, plain).value,
        "verify_cost": verify_cost(speculative, gamma + 1, plain).value,
        "speedup_predicted": predicted_speedup(plain, speculative),
        "speedup_measured": speedup,
        "speedup_low": low,
        "speedup_high": high,
        "tokens": int(speculative.rounds["emitted"].sum()),
    }


def shared(plain: Trace, speculative: Trace) -> tuple[Trace, Trace]:
    """Of both traces the sequences of the prompts that `measured_speedup` compares.

    Raises `InputError` where the traces differ in target, sampling or device, or share no prompt.
    """
    before, after = (_by_prompt(trace, prefill=True) for trace in (plain, speculative))
    both = set(_comparable(plain, speculative, before, after))
    kept = ([i for i, of in enumerate(trace.sequences) if of["id"] in both] for trace in (plain, speculative))
    return tuple(select(trace, chosen) for trace, chosen in zip((plain, speculative), kept, strict=True))


def _comparable(plain: Trace, speculative: Trace, before: Iterable[str], after: Container[str]) -> list[str]:
    """The ids of the prompts that both have, in the plain trace's order."""
    for key in SAME:
        if plain.manifest[key] != speculative.manifest[key]:
            raise InputError(
                f"the traces cannot be compared: {key} is {plain.manifest[key]} in the plain one and "
                f"{speculative.manifest[key]} in the other; decode the same prompts with the same settings"
            )
    both = [name for name in before if name in after]
    if not both:
        raise InputError("the traces cannot be compared: no prompt id with a timed output is in both of them")
    return both


def _by_prompt(trace: Trace, prefill: bool) -> dict[str, tuple[float, int]]:
    """{prompt id: (ms, emitted tokens)}, summed over its sequences; prompts without time or output are left out."""
    ids, prompt = prompts(trace)
    if prefill:
        times = np.array([sequence["ms_total"] for sequence in trace.sequences], dtype=np.float64)
    else:
        times = np.bincount(trace.rounds["sequence"], trace.rounds["ms_total"], minlength=len(trace.sequences))
    ms = np.bincount(prompt, times, minlength=len(ids))
    tokens = np.bincount(prompt, [len(sequence["token_ids"]) for sequence in trace.sequences], minlength=len(ids))
    rows = zip(ids, ms.tolist(), tokens.tolist(), strict=True)
    return {name: (time, int(count)) for name, time, count in rows if time > 0 and count}


def _speedup(totals: np.ndarray) -> np.ndarray:
    """(n,) speedups of (n, 4) totals: plain ms, plain tokens, speculative ms, speculative tokens."""
    plain_ms, plain_tokens, ms, tokens = totals.T
    return (plain_ms / plain_tokens) / (ms / tokens)
