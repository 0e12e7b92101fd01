"""Checks of what a trace says happened: rounds, outcomes, counts, output, lengths. See `contracts` for the registry."""

from __future__ import annotations

import numpy as np

from specworkbench.trace import schema
from specworkbench.trace.view import Broken, Finding, View, passed, worded

MANIFEST_KEYS = (
    "schema_version created library device clock target proposer rule gamma seed capture sampling draft_sampling "
    "eos_ids stop max_new_tokens vocabulary sequences"
).split()
SEQUENCE_KEYS = "id bucket prompt prompt_tokens token_ids text stop_reason ms_prefill ms_total".split()
COUNTS = ("proposed", "examined", "accepted", "verdict_length", "emitted", "target_positions")


def manifest_is_whole(view: View) -> Finding:
    missing = [key for key in MANIFEST_KEYS if key not in view.manifest]
    if missing:
        return Finding("fail", f"the manifest lacks {', '.join(missing)}")
    for index, sequence in enumerate(view.trace.sequences):
        if missing := [key for key in SEQUENCE_KEYS if key not in sequence]:
            return Finding("fail", f"the sequence lacks {', '.join(missing)}", index)
        if sequence["stop_reason"] not in (*schema.STOP_REASONS, None):
            known = ", ".join(schema.STOP_REASONS)
            return Finding("fail", f"stop_reason is {sequence['stop_reason']!r}, none of {known}", index)
    if view.manifest["capture"] not in schema.CAPTURES:
        return Finding("fail", f"capture is {view.manifest['capture']!r}, none of {schema.CAPTURES}")
    return passed(f"{len(view.trace.sequences)} sequences")


def rounds_are_numbered(view: View) -> Finding:
    sequence, number = view.rounds["sequence"], view.rounds["round"]
    known = (sequence >= 0) & (sequence < len(view.trace.sequences))
    starts = np.flatnonzero(np.diff(sequence, prepend=-1))
    expected = np.arange(len(number)) - np.repeat(starts, np.diff(np.append(starts, len(number))))
    drawn = view.count(view.drawn)
    fault = (
        view.judge_rounds(known, lambda i: f"sequence {sequence[i]} is not in the manifest")
        or view.judge_rounds(number == expected, lambda i: f"round {number[i]} stands where {expected[i]} should")
        or view.judge_rounds(drawn == 1, lambda i: f"the rule drew {drawn[i]} tokens, and it draws one a round")
    )
    return fault or passed(f"{len(number)} rounds, {len(view.of)} positions")


def positions_are_numbered(view: View) -> Finding:
    if fault := chains_where_the_rule_knows_no_other(view):
        return fault
    view.accepted_parent()
    place = view.positions
    first = np.searchsorted(view.of, view.of)
    accepted = view.having(("accepted",))
    parent = place["parent"].astype(np.int64)
    above = np.where(parent < 0, 0, place["depth"][first + np.maximum(parent, 0)])
    last = np.full(len(view.rounds["round"]), -1)
    np.maximum.at(last, view.of[accepted], place["node"][accepted])
    expected = {
        "node": np.where(view.drawn, -1, np.arange(len(view.of)) - first),
        "parent": np.where(view.drawn, last[view.of], parent),
        "depth": np.where(view.drawn, view.count(accepted)[view.of], above) + 1,
        "position": place["depth"],
    }
    for name, value in expected.items():
        fault = view.judge(place[name] == value, lambda i, n=name, v=value: f"{n} is {place[n][i]}, not {v[i]}")
        if fault:
            return fault
    return passed(f"{len(view.of)} positions")


def chains_where_the_rule_knows_no_other(view: View) -> Finding | None:
    """A fault where a rule of chains is said to have judged a tree."""
    rule = view.manifest["rule"]["name"]
    follows = view.drawn | (view.positions["parent"] == view.positions["node"] - 1)
    if rule not in schema.RULES_OF_CHAINS:
        return None
    return view.judge(
        follows, lambda i: f"its parent is node {view.positions['parent'][i]}, and the rule {rule} judges chains"
    )


def outcomes_follow_the_path(view: View) -> Finding:
    """Examined is every child of a kept node (or the context) up to the first accepted one, and nothing else."""
    known = np.isin(view.outcome, schema.OUTCOMES) & (view.drawn == np.isin(view.outcome, schema.DRAWN))
    taken = view.siblings_before(view.having(("accepted",)))
    reached = view.accepted_parent()
    due = view.drawn | reached & (taken == 0)
    examined = view.drawn | view.having(schema.EXAMINED)
    refused = view.siblings_before(view.having(("rejected",)))
    none = (view.count(view.proposed) == 0)[view.of]
    right = np.where(none, "plain", np.where(refused > 0, "corrected", "bonus"))
    fault = (
        view.judge(known, lambda i: "a proposed token is accepted, rejected or discarded; a drawn one is not")
        or view.judge(
            due | ~examined,
            lambda i: (
                "it was examined although an earlier sibling was accepted" if reached[i]
                else "it was examined although the token it continues was not accepted"
            ),
        )
        or view.judge(examined | ~due, lambda i: "it is discarded although nothing before it decided the round")
        or view.judge((view.outcome == right) | view.proposed, lambda i: f"the drawn token should be {right[i]}")
    )  # fmt: skip
    return fault or passed(f"{len(view.rounds['round'])} rounds")


def counts_add_up(view: View) -> Finding:
    accepted = view.count(view.having(("accepted",)))
    proposed = view.count(view.proposed)
    counted = {
        "proposed": proposed,
        "examined": view.count(view.having(schema.EXAMINED)),
        "accepted": accepted,
        "verdict_length": accepted + 1,
        "emitted": view.count(view.positions["emitted"]),
        "target_positions": proposed + 1,
    }
    for name in COUNTS:
        said, found = view.rounds[name], counted[name]
        if fault := view.judge_rounds(said == found, lambda i, n=name, s=said, f=found: f"{n} is {s[i]}, not {f[i]}"):
            return fault
    return passed(f"{len(proposed)} rounds")


def counts_keep_their_order(view: View) -> Finding:
    rounds = view.rounds
    deepest = np.zeros(len(rounds["round"]), dtype=np.int64)
    np.maximum.at(deepest, view.of[view.proposed], view.positions["depth"][view.proposed])
    counts = {name: rounds[name] for name in ("accepted", "examined", "proposed", "asked", "gamma")}
    counts["depth proposed"] = deepest
    order = [("accepted", "examined"), ("examined", "proposed"), ("accepted", "depth proposed")]
    order += [("depth proposed", "asked"), ("asked", "gamma")]
    for less, more in order:
        fault = view.judge_rounds(
            counts[less] <= counts[more],
            lambda i, a=less, b=more: f"{a} is {counts[a][i]} and {b} only {counts[b][i]}",
        )
        if fault:
            return fault
    named = np.isin(rounds["shortened"], schema.SHORTENED)
    said = (rounds["asked"] == rounds["gamma"]) | (rounds["shortened"] != "")
    if view.manifest["proposer"]["name"] == "none":
        said[:] = True
    several = rounds["examined"] - rounds["accepted"] > 1
    if view.manifest["rule"]["name"] not in schema.RULES_OF_CHAINS:
        several[:] = False
    fault = (
        view.judge_rounds(~several, lambda i: "more than one token was rejected")
        or view.judge_rounds(named, lambda i: f"shortened is '{rounds['shortened'][i]}', none of {schema.SHORTENED}")
        or view.judge_rounds(
            said,
            lambda i: f"{rounds['asked'][i]} of {rounds['gamma'][i]} tokens were asked for, and no reason is given",
        )
    )
    return fault or passed(f"{len(said)} rounds")


def output_is_what_was_emitted(view: View) -> Finding:
    emitted, index = view.positions["emitted"], view.positions["output_index"]
    committed = view.having(("accepted", *schema.DRAWN))
    fault = (
        view.judge(committed | ~emitted, lambda i: "it was emitted without having been accepted")
        or view.judge(emitted != np.isnan(index), lambda i: "output_index is null exactly where it was not emitted")
    )  # fmt: skip
    if fault:
        return fault
    rows = np.flatnonzero(emitted)
    outputs = [np.asarray(sequence["token_ids"], dtype=np.int64) for sequence in view.trace.sequences]
    lengths = np.array([len(output) for output in outputs], dtype=np.int64)
    owner = view.positions["sequence"][rows]
    if owner.size and owner.max() >= len(outputs):
        raise Broken(Finding("fail", "the manifest does not have the sequence", int(owner.max())))
    counted = np.bincount(owner, minlength=len(outputs))
    expected = np.arange(len(rows)) - (np.cumsum(counted) - counted)[owner]
    good = np.ones(len(emitted), dtype=bool)
    good[rows] = index[rows] == expected
    fault = view.judge(good, lambda i: worded("output_index is {}, which is not its place among the emitted", index[i]))
    if fault:
        return fault
    if (counted != lengths).any():
        first = int(np.flatnonzero(counted != lengths)[0])
        return Finding("fail", f"{counted[first]} tokens were emitted and token_ids has {lengths[first]}", first)
    output = np.concatenate([*outputs, np.zeros(0, dtype=np.int64)])
    same = np.ones(len(emitted), dtype=bool)
    same[rows] = view.positions["token"][rows] == output
    fault = view.judge(same, lambda i: f"token {view.positions['token'][i]} is not the one in token_ids")
    return fault or passed(f"{len(rows)} tokens of {len(outputs)} sequences")


def nothing_follows_the_end(view: View) -> Finding:
    eos, limit = set(view.manifest["eos_ids"]), view.manifest["max_new_tokens"]
    least = view.manifest.get("min_new_tokens", 0)
    for index, sequence in enumerate(view.trace.sequences):
        tokens, reason = sequence["token_ids"], sequence["stop_reason"]
        if limit is not None and len(tokens) > limit:
            return Finding("fail", f"{len(tokens)} tokens were emitted and max_new_tokens is {limit}", index)
        if (early := np.flatnonzero(np.isin(tokens[:least], list(eos)))).size:
            return Finding("fail", f"token {early[0]} is an EOS, and min_new_tokens is {least}", index)
        if eos and (ends := np.flatnonzero(np.isin(tokens[:-1], list(eos)))).size:
            return Finding(
                "fail", f"token {ends[0]} ends the sequence, and {len(tokens) - 1 - ends[0]} follow it", index
            )
        if reason == "eos" and (not tokens or tokens[-1] not in eos):
            return Finding("fail", "it stopped at EOS, and its last token is none of eos_ids", index)
        if reason == "length" and limit is not None and len(tokens) != limit:
            return Finding("fail", f"it stopped at its length with {len(tokens)} of {limit} tokens", index)
    emitted, decided = view.rounds["emitted"], view.rounds["verdict_length"]
    whole = (emitted == decided) | view.last_of_sequence()
    fault = view.judge_rounds(
        whole, lambda i: f"{emitted[i]} of {decided[i]} tokens were emitted, and yet another round follows"
    ) or view.judge(_emitted_prefix(view), lambda i: "it was emitted after one that was not")
    return fault or passed(f"{len(view.trace.sequences)} sequences")


def _emitted_prefix(view: View) -> np.ndarray:
    """(positions,) whether all committed tokens of the round before this one were emitted, if this one was."""
    committed = view.having(("accepted", *schema.DRAWN))
    held_back = np.cumsum(committed & ~view.positions["emitted"])
    start = np.searchsorted(view.of, view.of)
    before = np.append(0, held_back)[start]
    return ~view.positions["emitted"] | (held_back == before)


def contexts_add_up(view: View) -> Finding:
    rounds, last = view.rounds, view.last_of_sequence()
    length, after = rounds["context_length"], rounds["context_length"] + rounds["emitted"]
    prompts = np.array([len(sequence["prompt_tokens"]) for sequence in view.trace.sequences] or [0])
    start = prompts[np.clip(rounds["sequence"], 0, len(prompts) - 1)]
    follows, before = np.append(False, ~last)[:-1], np.append(0, after)[:-1]
    expected = np.where(follows, before, start)
    held = rounds["target_cache_tokens"]
    fault = (
        view.judge_rounds(length == expected, lambda i: f"context_length is {length[i]}, not {expected[i]}")
        or view.judge_rounds(
            (held == after - 1) | last,
            lambda i: f"the target's cache holds {held[i]} tokens, not all but the last of the {after[i]} there are",
        )
    )  # fmt: skip
    return fault or passed(f"{len(length)} rounds")
