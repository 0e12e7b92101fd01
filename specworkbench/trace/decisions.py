"""Checks of how a round was decided: what its uniforms let pass, and the uniforms themselves. See `contracts`."""

from __future__ import annotations

import numpy as np
from scipy import stats

from specworkbench.trace import schema
from specworkbench.trace.view import Finding, View, not_recorded, passed, worded


def uniforms_decide(view: View) -> Finding:
    """An examined token is accepted iff u < accept_prob; under the block rule the last such guess decides them all."""
    u, prob = view.positions["u"], view.positions["accept_prob"]
    compared = np.isnan(prob) & np.isnan(u) | view.proposed
    if fault := view.judge(compared, lambda i: "a drawn token has no u and no accept_prob"):
        return fault
    if view.manifest["rule"]["name"] in schema.RULES_OF_BLOCKS:
        return _last_below_decides(view) or passed(f"{len(view.rounds['round'])} rounds")
    examined, accepted = view.having(schema.EXAMINED), view.having(("accepted",))
    certain = np.isnan(u) & np.isin(prob, (0.0, 1.0)) & (view.manifest["rule"]["name"] == "greedy")
    known = ~examined | certain | ~(np.isnan(u) | np.isnan(prob))
    below = np.where(certain, prob == 1.0, u < prob)
    decided = ~examined | (below == accepted)
    fault = (
        view.judge(known, lambda i: worded("u is {} and accept_prob is {}, so that nothing decided", u[i], prob[i]))
        or view.judge(decided, lambda i: worded("u = {} against accept_prob = {}", u[i], prob[i]))
    )  # fmt: skip
    return fault or passed(f"{int(examined.sum())} examined positions")


def _last_below_decides(view: View) -> Finding | None:
    """As many guesses are accepted as there are up to the last with u < accept_prob; the next one is rejected."""
    u, prob, node = (view.positions[name] for name in ("u", "accept_prob", "node"))
    known = view.drawn | ~(np.isnan(u) | np.isnan(prob))
    if fault := view.judge(
        known, lambda i: worded("u is {} and accept_prob is {}, and all guesses decide", u[i], prob[i])
    ):
        return fault
    length = np.zeros(len(view.rounds["round"]), dtype=np.int64)
    below = view.proposed & (u < prob)
    np.maximum.at(length, view.of[below], node[below] + 1)
    length = length[view.of]
    expected = np.where(node < length, "accepted", np.where(node == length, "rejected", "discarded"))
    return view.judge(
        view.drawn | (view.outcome == expected),
        lambda i: f"it should be {expected[i]}: {length[i]} guesses stand up to the last with u < accept_prob",
    )


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
