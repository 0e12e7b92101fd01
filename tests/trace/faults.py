"""Faults of a trace, each with the contract that must reject it: (contract, what is wrong, how to make it so)."""

from __future__ import annotations

import copy

import numpy as np

from specworkbench.trace import Trace


def mutable(trace: Trace) -> Trace:
    rows = copy.deepcopy(trace.rows)
    distributions = None if trace.distributions is None else trace.distributions.copy()
    return Trace(copy.deepcopy(trace.manifest), trace.rounds.copy(), trace.positions.copy(), distributions, rows)


def pick(trace: Trace, outcome: str, nth: int = 3) -> int:
    """Row of the nth position of that outcome, not in a sequence's last round."""
    last = trace.rounds.groupby("sequence")["round"].max()
    rows = trace.positions[trace.positions["outcome"] == outcome]
    return rows.index[(rows["round"] < rows["sequence"].map(last)).to_numpy()][nth]


def positions(outcome: str, column: str, change):
    """A fault in one position: its value in a column changed."""

    def mutate(trace: Trace) -> tuple[int, int]:
        row = pick(trace, outcome)
        trace.positions.loc[row, column] = change(trace.positions.loc[row])
        return tuple(trace.positions.loc[row, ["sequence", "round"]])

    return mutate


def rounds(column: str, change):
    """A fault in one round: its value in a column changed."""

    def mutate(trace: Trace) -> tuple[int, int]:
        row = trace.rounds.index[(trace.rounds["accepted"] > 0) & (trace.rounds["round"] == 1)][0]
        trace.rounds.loc[row, column] = change(trace.rounds.loc[row])
        return tuple(trace.rounds.loc[row, ["sequence", "round"]])

    return mutate


def _drop(trace, table, row):
    frame = getattr(trace, table)
    setattr(trace, table, frame.drop(index=row))
    return tuple(frame.loc[row, ["sequence", "round"]])


def _renumber_round(trace):
    for table in (trace.rounds, trace.positions):
        table.loc[(table["sequence"] == 1) & (table["round"] == 2), "round"] = 90
    return (1, 3)


def _reuse_for_residual(trace):
    row = pick(trace, "corrected")
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.positions[["sequence", "round"]] == keys).all(axis=1) & (trace.positions["outcome"] == "rejected")
    trace.positions.loc[row, "u_draw"] = trace.positions.loc[same, "u"].item()
    return tuple(keys)


def _one_u_for_all(trace):
    row = pick(trace, "bonus")
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.positions[["sequence", "round"]] == keys).all(axis=1) & (trace.positions["node"] >= 0)
    trace.positions.loc[same, "u"] = trace.positions.loc[same, "u"].min()
    return tuple(keys)


def _reuse_across_sequences(trace):
    first, last = trace.positions.index[0], trace.positions.index[-1]
    trace.positions.loc[last, "u_draw"] = trace.positions.loc[first, "u_draw"]


def _emit_rejected(trace):
    row = pick(trace, "rejected")
    trace.positions.loc[row, ["emitted", "output_index"]] = [True, 0]
    return tuple(trace.positions.loc[row, ["sequence", "round"]])


def _cut_in_the_middle(trace):
    row = pick(trace, "bonus")
    trace.positions.loc[row, "emitted"] = False
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.rounds[["sequence", "round"]] == keys).all(axis=1)
    trace.rounds.loc[same, "emitted"] -= 1
    return tuple(keys)


def _correct_without_residual(trace):
    row = pick(trace, "corrected")
    trace.positions.loc[row, "p"] = trace.positions.loc[row, "q"] / 2
    trace.positions.loc[row, "in_overweight"] = True
    return tuple(trace.positions.loc[row, ["sequence", "round"]])


def _shift_distribution(trace, column):
    row = trace.distributions.index[2]
    trace.distributions.at[row, column] = trace.distributions.at[row, column] * 0.9
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])


def _unlist(trace):
    row = trace.distributions.index[2]
    keys = ["sequence", "round", "position"]
    same = (trace.positions[keys] == trace.distributions.loc[row, keys]).all(axis=1)
    token = trace.positions.loc[same, "token"].iloc[0]
    kept = trace.distributions.at[row, "tokens"] != token
    for column in ("tokens", "p", "q"):
        trace.distributions.at[row, column] = trace.distributions.at[row, column][kept]
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])


def _overfill(trace):
    row = trace.distributions.index[2]
    trace.distributions.at[row, "tokens"] = np.append(trace.distributions.at[row, "tokens"], 99).astype(np.int32)
    for column in ("p", "q"):
        trace.distributions.at[row, column] = np.append(trace.distributions.at[row, column], 0.99)
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])


FAULTS = [
    ("rounds", "a round is missing", lambda t: _drop(t, "rounds", 1)),
    ("rounds", "rounds misnumbered", _renumber_round),
    ("rounds", "no token drawn", lambda t: _drop(t, "positions", pick(t, "bonus"))),
    ("positions", "position off by one", positions("rejected", "position", lambda r: r["position"] + 1)),
    ("positions", "corrected one beyond the rejected", positions("corrected", "position", lambda r: r["position"] + 1)),
    ("positions", "depth off", positions("accepted", "depth", lambda r: r["depth"] + 1)),
    ("prefix", "accepted beyond the rejected", positions("discarded", "outcome", lambda r: "accepted")),
    ("prefix", "discarded without rejection", positions("rejected", "outcome", lambda r: "discarded")),
    ("prefix", "a bonus after a rejection", positions("corrected", "outcome", lambda r: "bonus")),
    ("prefix", "an unknown outcome", positions("accepted", "outcome", lambda r: "kept")),
    ("counts", "accepted as a sum of flags", rounds("accepted", lambda r: r["accepted"] - 1)),
    ("counts", "verdict length without the drawn token", rounds("verdict_length", lambda r: r["accepted"])),
    ("counts", "emitted miscounted", rounds("emitted", lambda r: r["emitted"] + 1)),
    ("counts", "one target row too few", rounds("target_positions", lambda r: r["proposed"])),
    ("order", "more proposed than asked", rounds("asked", lambda r: r["proposed"] - 1)),
    ("order", "more asked than gamma", rounds("gamma", lambda r: r["asked"] - 1)),
    ("order", "an unknown reason", rounds("shortened", lambda r: "tired")),
    ("order", "shortened without a reason", rounds("gamma", lambda r: r["asked"] + 1)),
    ("decision", "accepted with u above", positions("accepted", "u", lambda r: np.nextafter(r["accept_prob"], 2))),
    ("decision", "accepted with u equal", positions("accepted", "u", lambda r: r["accept_prob"])),
    ("decision", "rejected with u below", positions("rejected", "u", lambda r: r["accept_prob"] / 2)),
    ("decision", "no u", positions("rejected", "u", lambda r: np.nan)),
    ("decision", "a drawn token that was judged", positions("bonus", "u", lambda r: 0.123)),
    (
        "accept_prob",
        "ratio off by one bit",
        positions("rejected", "accept_prob", lambda r: np.nextafter(r.accept_prob, 2)),
    ),
    ("accept_prob", "ratio q/p", positions("rejected", "accept_prob", lambda r: min(1.0, r["q"] / r["p"]))),
    ("accept_prob", "ratio with lenience", positions("rejected", "accept_prob", lambda r: r["accept_prob"] * 1.25)),
    ("uniforms", "a uniform of 1", positions("rejected", "u", lambda r: 1.0)),
    ("uniforms", "u used again for the residual", _reuse_for_residual),
    ("uniforms", "one u for all positions of a round", _one_u_for_all),
    ("uniforms", "a draw of another sequence", _reuse_across_sequences),
    ("output", "another token in the output", positions("accepted", "token", lambda r: (r["token"] + 1) % 4)),
    (
        "output",
        "a place in the output taken twice",
        positions("bonus", "output_index", lambda r: r["output_index"] - 1),
    ),
    ("output", "a rejected token emitted", _emit_rejected),
    ("output", "token_ids lacks its last", lambda t: t.sequences[0]["token_ids"].pop() and None),
    ("end", "output beyond an EOS", lambda t: t.manifest.update(eos_ids=[t.sequences[0]["token_ids"][4]])),
    ("end", "output beyond the limit", lambda t: t.manifest.update(max_new_tokens=20)),
    ("end", "stopped at EOS without one", lambda t: t.sequences[0].update(stop_reason="eos")),
    ("end", "stopped at a length not reached", lambda t: t.manifest.update(max_new_tokens=40)),
    ("end", "cut in the middle", _cut_in_the_middle),
    ("context", "a token lost from the context", rounds("context_length", lambda r: r["context_length"] - 1)),
    (
        "context",
        "last accepted lost from the cache",
        rounds("target_cache_tokens", lambda r: r.target_cache_tokens - 1),
    ),
    ("context", "rejected token left in the cache", rounds("target_cache_tokens", lambda r: r.target_cache_tokens + 1)),
    ("nulls", "q at the bonus", positions("bonus", "q", lambda r: 0.5)),
    ("nulls", "no overlap where examined", positions("rejected", "overlap", lambda r: np.nan)),
    ("nulls", "no p", positions("accepted", "p", lambda r: np.nan)),
    ("probabilities", "p above 1", positions("bonus", "p", lambda r: 1.0001)),
    ("probabilities", "overlap and tv apart", positions("accepted", "overlap", lambda r: r["overlap"] + 1e-6)),
    ("probabilities", "residual of |p - q|", positions("rejected", "residual_mass", lambda r: 2 * r["tv"])),
    (
        "probabilities",
        "overweight set of other rows",
        positions("accepted", "overweight_q", lambda r: r["overweight_p"]),
    ),
    ("probabilities", "in_overweight wrong", positions("accepted", "in_overweight", lambda r: not r["in_overweight"])),
    ("probabilities", "corrected where q >= p", _correct_without_residual),
    ("probabilities", "negative entropy", positions("bonus", "entropy_p", lambda r: -0.1)),
    ("probabilities", "rank 0", positions("bonus", "rank_p", lambda r: 0)),
    ("times", "a negative time", rounds("ms_verify", lambda r: -1.0)),
    ("times", "phases longer than the round", rounds("ms_total", lambda r: r["ms_verify"])),
    ("times", "rounds longer than the sequence", lambda t: t.sequences[1].update(ms_total=50.0)),
    ("distributions", "p of another row", lambda t: _shift_distribution(t, "p")),
    ("distributions", "q of another row", lambda t: _shift_distribution(t, "q")),
    ("distributions", "the drawn token is not listed", _unlist),
    ("distributions", "more than all the mass", _overfill),
]
"""Each changes the trace and returns (sequence, round) of the fault, or None where it has no such place."""
