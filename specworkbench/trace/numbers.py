"""Checks of a trace's numbers: decisions, uniforms, probabilities, times, distributions. See `contracts`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from specworkbench.trace import schema
from specworkbench.trace.view import Finding, View, not_recorded, passed

PHASES = ("ms_propose", "ms_verify", "ms_accept", "ms_rollback")
ROW_COLUMNS = ("q", "overlap", "tv", "residual_mass", "entropy_q", "rank_q", "overweight_p", "overweight_q")
FLOAT32_ROWS = 1e-6


def tolerance(view: View) -> float:
    """Allowance on sums over a row: 1e-9 for a float64 target, else 1e-6, as the rows may be float32."""
    return 1e-9 if str(view.manifest["target"].get("dtype")).endswith("float64") else 1e-6


def accepted_iff_u_is_below(view: View) -> Finding:
    u, prob = view.positions["u"], view.positions["accept_prob"]
    examined, accepted = view.having(schema.EXAMINED), view.having(("accepted",))
    certain = np.isnan(u) & np.isin(prob, (0.0, 1.0)) & (view.manifest["rule"]["name"] == "greedy")
    known = ~examined | certain | ~(np.isnan(u) | np.isnan(prob))
    below = np.where(certain, prob == 1.0, u < prob)
    good = ~examined | (below == accepted)
    compared = np.isnan(prob) & np.isnan(u) | view.proposed
    fault = (
        view.judge(known, lambda i: f"u is {u[i]} and accept_prob is {prob[i]}, so that nothing decided")
        or view.judge(good, lambda i: f"u = {u[i]!r} against accept_prob = {prob[i]!r}")
        or view.judge(compared, lambda i: "a drawn token has no u and no accept_prob")
    )
    return fault or passed(f"{int(examined.sum())} examined positions")


def accept_prob_is_recomputed(view: View) -> Finding:
    rule = view.manifest["rule"]["name"]
    p, q, prob = (view.positions[name] for name in ("p", "q", "accept_prob"))
    recorded = view.proposed & ~np.isnan(prob)
    if rule in ("token", "tree"):
        first = view.siblings_before(view.proposed) == 0
        expected = _ratio(p, q, prob)
        fault = view.judge(
            ~(recorded & first) | (prob == expected),
            lambda i: f"accept_prob is {prob[i]!r} and min(1, p/q) = {expected[i]!r} with p = {p[i]!r}, q = {q[i]!r}",
        ) or _certain_siblings(view, recorded & ~first)
    elif rule == "greedy":
        top = view.positions["rank_p"] == 1
        fault = view.judge(
            ~recorded | (prob == 0.0) | (prob == 1.0) & top,
            lambda i: (
                f"accept_prob is {prob[i]!r} for a token of rank {view.positions['rank_p'][i]} in the target's row"
            ),
        )
    else:
        return not_recorded(f"the rule {rule!r} decides on more than the p and q of a position")
    return fault or passed(f"{int(recorded.sum())} proposed positions")


def _certain_siblings(view: View, later: np.ndarray) -> Finding | None:
    """Of guesses that were certain (q = 1) with all their earlier siblings: p over what these leave of the row.

    later: (positions,) which have an earlier sibling. A token that an earlier sibling has had is never accepted. Where
    the siblings leave nothing, one of them was accepted, and what the rule makes of the rest says nothing. For sampled
    siblings whole rows decide, which the positions do not hold.
    """
    if not later.any():
        return None
    p, q, prob, token = (view.positions[name] for name in ("p", "q", "accept_prob", "token"))
    parent = view.positions["parent"]
    expected, near = np.full(len(p), np.nan), np.ones(len(p))
    had: dict[tuple[int, int], dict[int, float]] = {}
    for i in np.flatnonzero(view.proposed):
        row = had.setdefault((view.of[i], parent[i]), {})
        if q[i] != 1.0 or any(np.isnan(value) for value in row.values()):
            row[-1] = np.nan
            continue
        rest = 1.0 - sum(row.values())
        if later[i] and rest > 1e-6:
            expected[i] = 0.0 if token[i] in row else min(1.0, p[i] / rest)
            near[i] = 1e-6 / rest
        row.setdefault(token[i], p[i])
    return view.judge(
        ~(np.abs(expected - prob) > near),
        lambda i: f"accept_prob is {prob[i]!r}, and what its refused siblings leave of the row gives {expected[i]!r}",
    )


def _ratio(p: np.ndarray, q: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """min(1, p/q), in float32 where all three were recorded by a device that has nothing wider."""
    if all(np.array_equal(values, values.astype(np.float32), equal_nan=True) for values in (p, q, prob)):
        p, q = p.astype(np.float32), q.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.minimum(1.0, p / q).astype(np.float64)


def uniforms_are_used_once(view: View) -> Finding:
    """Repeats beyond what chance gives on the uniforms' own grid (24 bits of a float32 generator, 53 of a float64)."""
    values = np.concatenate([view.positions["u"], view.positions["u_draw"]])
    where = np.tile(np.arange(len(view.of)), 2)[~np.isnan(values)]
    values = values[~np.isnan(values)]
    if not values.size:
        return not_recorded("the trace has no uniforms: nothing in it was random")
    outside = np.zeros(len(view.of), dtype=bool)
    outside[where[~((values >= 0) & (values < 1))]] = True
    if fault := view.judge(~outside, lambda i: "a uniform of it is outside [0, 1)"):
        return fault
    bits = next((bits for bits in (24, 32) if (values * 2.0**bits % 1 == 0).all()), 53)
    size = view.count(np.ones(len(view.of), dtype=bool)) * 2.0
    for scope, pairs in (("its round", (size * (size - 1) / 2).sum()), ("the trace", values.size**2 / 2)):
        keys = [values, view.of[where]] if scope == "its round" else [values]
        order = np.lexsort([where, *keys])
        same = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
        if same.sum() > stats.poisson.isf(1e-6, pairs / 2.0**bits):
            again = np.zeros(len(view.of), dtype=bool)
            again[where[order][1:][same]] = True
            return view.judge(~again, lambda i, s=scope: f"a uniform of it is used a second time in {s}")
    return passed(f"{values.size} uniforms of {bits} bits")


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
        if fault := view.judge(inside, lambda i, n=name: f"{n} = {at[n][i]!r} is no probability"):
            return fault
    identities = {
        "overlap + tv = 1": at["overlap"] + at["tv"] - 1,
        "residual_mass = tv": at["residual_mass"] - at["tv"],
        "overweight_q - overweight_p = tv": at["overweight_q"] - at["overweight_p"] - at["tv"],
    }
    for name, error in identities.items():
        if fault := view.judge(~(np.abs(error) > near), lambda i, n=name, e=error: f"{n} is off by {e[i]:.3g}"):
            return fault
    heavier = np.isnan(at["in_overweight"]) | ((at["q"] > at["p"]) == (at["in_overweight"] == 1))
    positive = (view.outcome != "corrected") | (at["p"] > at["q"]) | ~(at["tv"] > near)
    positive &= ~_refused_for_certain(view)
    if view.manifest["rule"]["name"] not in ("token", "tree"):
        positive[:] = True
    fault = (
        view.judge(heavier, lambda i: f"in_overweight does not say whether q = {at['q'][i]!r} > p = {at['p'][i]!r}")
        or view.judge(positive, lambda i: f"p = {at['p'][i]!r}, q = {at['q'][i]!r}: the residual has no mass there")
        or view.judge(~(at["entropy_p"] < -near) & ~(at["entropy_q"] < -near), lambda i: "an entropy is negative")
        or view.judge((at["rank_p"] >= 1) & ~(at["rank_q"] < 1), lambda i: "ranks begin at 1")
    )
    return fault or passed(f"{len(view.of)} positions, within {near:g}")


def _refused_for_certain(view: View) -> np.ndarray:
    """(positions,) corrected tokens that a guess refused there had, which was certain: nothing is left of their p."""
    place = view.positions
    same = (view.of.astype(np.int64) << 38) + ((place["parent"].astype(np.int64) + 1) << 22) + place["token"]
    refused = view.having(("rejected",)) & (place["q"] == 1.0) & (place["tv"] > tolerance(view))
    return view.having(("corrected",)) & np.isin(same, same[refused])


def times_add_up(view: View) -> Finding:
    """CUDA events resolve half a microsecond, hence the wider allowance there."""
    clock = view.manifest["clock"]
    near = 1e-6 if clock == "perf_counter" else 5e-3
    times = np.stack([view.rounds[name] for name in (*PHASES, "ms_total")])
    total, phases = times[-1], times[:-1].sum(axis=0)
    fault = (
        view.judge_rounds((times >= 0).all(axis=0), lambda i: "a time is negative or missing")
        or view.judge_rounds(phases <= total + near, lambda i: f"its phases take {phases[i]} of {total[i]} ms in all")
    )  # fmt: skip
    if fault:
        return fault
    spent = np.bincount(view.rounds["sequence"], total, minlength=len(view.trace.sequences))
    for index, sequence in enumerate(view.trace.sequences):
        whole, prefill = sequence["ms_total"], sequence["ms_prefill"] or 0.0
        if whole is not None and prefill + spent[index] > whole + near * (1 + len(total)):
            return Finding("fail", f"prefill and rounds take {prefill + spent[index]} ms of {whole} ms in all", index)
    return passed(f"{len(total)} rounds")


def distributions_agree(view: View) -> Finding:
    if view.trace.distributions is None:
        return not_recorded("the trace was recorded without distributions")
    table = view.trace.distributions
    keys = _row_key(*(table[name].to_numpy() for name in ("sequence", "round", "node")))
    if not len(keys):
        return not_recorded("no distribution was recorded")
    order = np.argsort(keys, kind="stable")
    own = _row_key(view.positions["sequence"], view.positions["round"], _node_of_row(view))
    found = np.minimum(np.searchsorted(keys[order], own), len(keys) - 1)
    record = np.where(keys[order][found] == own, order[found], -1)
    full = view.trace.rows is not None
    fault = _full_rows(view, record) if full else _listed_rows(view, record)
    return fault or passed(f"{int((record >= 0).sum())} positions")


def _node_of_row(view: View) -> np.ndarray:
    """(positions,) the node whose rows a token was judged by or drawn from: of a corrected one, the first refused's."""
    node = view.positions["node"].astype(np.int64)
    rejected = np.flatnonzero(view.having(("rejected",)))[::-1]
    after = np.full(len(view.rounds["round"]), -1)
    last = view.positions["parent"][view.drawn][np.searchsorted(view.of[view.drawn], view.of[rejected])]
    there = rejected[view.positions["parent"][rejected] == last]
    after[view.of[there]] = node[there]  # the first one is written last
    return np.where(view.having(("corrected",)), after[view.of], node)


def _row_key(sequence: np.ndarray, round: np.ndarray, node: np.ndarray) -> np.ndarray:
    return (sequence.astype(np.int64) << 40) | (round.astype(np.int64) << 16) | node.astype(np.int64) + 1


def _listed_rows(view: View, record: np.ndarray) -> Finding | None:
    """Rows as lists (capture 'top-k'): p and q of every token of the positions are among them, and sums stay <= 1."""
    table, near = view.trace.distributions, tolerance(view)
    tokens = table["tokens"].tolist()
    lengths = np.array([len(row) for row in tokens])
    owner = np.repeat(np.arange(len(tokens)), lengths)
    wide = np.int64(1) << 32
    keys = owner * wide + np.concatenate(tokens)
    order = np.argsort(keys, kind="stable")
    wanted = np.maximum(record, 0) * wide + view.positions["token"]
    found = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    listed = (record < 0) | (keys[found] == wanted)
    if fault := view.judge(listed, lambda i: f"token {view.positions['token'][i]} is not in its distribution"):
        return fault
    for name in ("p", "q"):
        rows = [
            np.full(length, np.nan) if row is None else row for row, length in zip(table[name], lengths, strict=True)
        ]
        values = np.concatenate(rows)
        sums = np.bincount(owner, np.nan_to_num(values), minlength=len(tokens))
        if fault := _of_record(view, sums <= 1 + near, lambda i, n=name, s=sums: f"its {n} sum to {s[i]!r}"):
            return fault
        wrong = (record >= 0) & _differ(values[found], view.positions[name], near)
        fault = view.judge(
            ~wrong, lambda i, n=name, v=values: f"{n} is {view.positions[n][i]!r}, in its distribution {v[found[i]]!r}"
        )
        if fault:
            return fault
    return None


def _full_rows(view: View, record: np.ndarray) -> Finding | None:
    """Whole float32 rows (capture 'full'): they sum to 1, and p, q and the overlap of the positions come from them."""
    rows, near = view.trace.rows, FLOAT32_ROWS
    number = view.trace.distributions["row"].to_numpy(dtype=np.int64)
    row = number[record]
    for name, column in (("target", "p"), ("draft", "q")):
        sums = rows[name].sum(axis=1, dtype=np.float64)[number]
        whole = ~(np.abs(sums - 1) > 10 * near)
        if fault := _of_record(view, whole, lambda i, c=column, s=sums: f"its row of {c} sums to {s[i]!r}"):
            return fault
        value = rows[name][row, view.positions["token"]]
        wrong = (record >= 0) & _differ(value, view.positions[column], near)
        fault = view.judge(~wrong, lambda i, c=column, v=value: f"{c} is {view.positions[c][i]!r}, in its row {v[i]!r}")
        if fault:
            return fault
    overlap = np.minimum(rows["target"], rows["draft"]).sum(axis=1, dtype=np.float64)[row]
    apart = (record >= 0) & _differ(overlap, view.positions["overlap"], 10 * near)
    return view.judge(~apart, lambda i: f"overlap is {view.positions['overlap'][i]!r}, of its rows {overlap[i]!r}")


def _differ(one: np.ndarray, other: np.ndarray, near: float) -> np.ndarray:
    """Whether two columns differ by more than the allowance, or only one of them is null."""
    return (np.isnan(one) != np.isnan(other)) | (np.abs(one - other) > near)


def _of_record(view: View, good: np.ndarray, detail: Callable[[int], str]) -> Finding | None:
    """A finding on the first row of the table `distributions` that is not good."""
    bad = np.flatnonzero(~good)
    if not bad.size:
        return None
    at = view.trace.distributions.iloc[bad[0]]
    said = f"position {at['position']}: {detail(bad[0])}"
    return Finding("fail", said, int(at["sequence"]), int(at["round"]))
