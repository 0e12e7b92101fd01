"""Checks of a trace's numbers: nulls, probabilities, times. See `contracts`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specworkbench.trace import schema
from specworkbench.trace.view import Finding, View, passed, tolerance, worded

PHASES = ("ms_propose", "ms_verify", "ms_accept", "ms_rollback")
ROW_COLUMNS = ("q", "overlap", "tv", "residual_mass", "entropy_q", "rank_q", "overweight_p", "overweight_q")


def nulls_are_where_nothing_was(view: View) -> Finding:
    examined = view.having(schema.EXAMINED)
    without = view.having(("bonus", "plain"))
    for name in ROW_COLUMNS:
        null = np.isnan(view.positions[name])
        good = np.where(without, null, ~null | (view.outcome == "discarded"))
        said = "null although a row was proposed" if not without[~good].any() else "given although no row was proposed"
        if fault := view.judge(good, lambda i, n=name, s=said: f"{n} is {s}"):
            return fault
    for name in ("p", "entropy_p"):
        fault = view.judge(
            ~np.isnan(view.positions[name]) | (view.outcome == "discarded"), lambda i, n=name: f"{n} is null"
        )
        if fault:
            return fault
    return passed(f"{int(examined.sum())} examined positions, {int(view.drawn.sum())} drawn")


def probabilities_agree(view: View) -> Finding:
    near = tolerance(view)
    at = view.positions
    for name in ("p", "q", "accept_prob", "overlap", "tv", "residual_mass", "overweight_p", "overweight_q"):
        value = at[name]
        inside = np.isnan(value) | (value >= -near) & (value <= 1 + near)
        if fault := view.judge(inside, lambda i, n=name: worded(n + " = {} is no probability", at[n][i])):
            return fault
    identities = {
        "overlap + tv = 1": at["overlap"] + at["tv"] - 1,
        "residual_mass = tv": at["residual_mass"] - at["tv"],
        "overweight_q - overweight_p = tv": at["overweight_q"] - at["overweight_p"] - at["tv"],
    }
    for name, error in identities.items():
        if fault := view.judge(~(np.abs(error) > near), lambda i, n=name, e=error: worded(n + " is off by {}", e[i])):
            return fault
    heavier = np.isnan(at["in_overweight"]) | ((at["q"] > at["p"]) == (at["in_overweight"] == 1))
    possible, why = _what_may_be_drawn(view)
    fault = (
        view.judge(
            heavier, lambda i: worded("in_overweight does not say whether q = {} > p = {}", at["q"][i], at["p"][i])
        )
        or view.judge(possible, why)
        or view.judge(~(at["entropy_p"] < -near) & ~(at["entropy_q"] < -near), lambda i: "an entropy is negative")
        or view.judge((at["rank_p"] >= 1) & ~(at["rank_q"] < 1), lambda i: "ranks begin at 1")
    )
    return fault or passed(f"{len(view.of)} positions, within {near:g}")


def _what_may_be_drawn(view: View) -> tuple[np.ndarray, Callable[[int], str]]:
    """(positions,) whether the rule can have drawn this token, as far as scalars say; and why not, in words.

    From a residual max(p - q, 0) comes no token with p <= q, and none that a certain guess refused there had; to the
    equality rule all guesses are certain. Other rules draw nothing: their token is the target's first choice.
    """
    rule, at, corrected = view.manifest["rule"]["name"], view.positions, view.having(("corrected",))
    if rule in schema.FIRST_CHOICE:
        rank = at["rank_p"]
        return ~view.drawn | (rank == 1), lambda i: f"it has rank {rank[i]}, and the rule {rule} emits the first choice"
    apart = at["tv"] > tolerance(view)
    if rule == "equality":
        return ~(corrected & _was_refused(view, apart)), lambda i: "a refused guess had this token"
    if rule not in schema.RESIDUALS:
        return np.ones(len(view.of), dtype=bool), str
    possible = ~corrected | ~apart | (at["p"] > at["q"])
    possible &= ~(corrected & _was_refused(view, apart & (at["q"] == 1.0)))
    return possible, lambda i: worded("p = {}, q = {}: the residual has no mass there", at["p"][i], at["q"][i])


def _was_refused(view: View, among: np.ndarray) -> np.ndarray:
    """(positions,) whether a guess among these was refused beside this position with the same token."""
    place = view.positions
    same = (view.of.astype(np.int64) << 38) + ((place["parent"].astype(np.int64) + 1) << 22) + place["token"]
    return np.isin(same, same[view.having(("rejected",)) & among])


def times_add_up(view: View) -> Finding:
    """CUDA events resolve half a microsecond, hence the wider allowance there."""
    clock = view.manifest["clock"]
    near = 1e-6 if clock == "perf_counter" else 5e-3
    times = np.stack([view.rounds[name] for name in (*PHASES, "ms_total")])
    total, phases = times[-1], times[:-1].sum(axis=0)
    fault = view.judge_rounds((times >= 0).all(axis=0), lambda i: "a time is negative or missing") or view.judge_rounds(
        phases <= total + near, lambda i: worded("its phases take {} of {} ms in all", phases[i], total[i])
    )
    if fault:
        return fault
    spent = np.bincount(view.rounds["sequence"], total, minlength=len(view.trace.sequences))
    for index, sequence in enumerate(view.trace.sequences):
        whole, prefill = sequence["ms_total"], sequence["ms_prefill"] or 0.0
        if whole is not None and prefill + spent[index] > whole + near * (1 + len(total)):
            taken = prefill + spent[index]
            return Finding("fail", worded("prefill and rounds take {} ms of {} ms in all", taken, whole), index)
    return passed(f"{len(total)} rounds")
