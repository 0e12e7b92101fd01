"""What `RoundPlayer` plays: the rounds of a sequence, their steps and their times, as plain JSON.

Times lie on one clock, in ms from the beginning of the prefill; what passes between rounds (recording, a display) is
left out of it. A round's phases are as they were measured. Steps that share a phase (the decisions of one rule's call;
emitting and rolling back) share its time evenly: only so that a playhead has somewhere to stand.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import pandas as pd

from specworkbench.trace import Trace
from specworkbench.trace.schema import EXAMINED
from specworkbench.widgets import player_words as words
from specworkbench.widgets.player_lanes import PHASES, decoded_lane, plain_lane, prefill_ms
from specworkbench.widgets.tables import is_cut, strip_rows
from specworkbench.widgets.text import distinct, number, visible

PHASE_OF = {"propose": "propose", "verify": "verify", "decide": "accept", "emit": "rollback", "roll back": "rollback"}
"""In which phase of a round's times each kind of step lies; without a decision, emitting has the rule's phase too."""


CONTEXT = 12
"""Tokens before a round that are shown with it."""


def player_rounds(trace: Trace, sequence: int = 0, plain: Trace | None = None) -> dict[str, Any]:
    """The rounds of a sequence, ready to be played; lists, dicts, text, numbers and None only.

    rounds: one dict a round, with `tokens` (the guesses by node, then the token that was drawn), `context` (texts of
    the last tokens before it), `phases` (ms, by `PHASES`) and `cache` (tokens in the target's cache before the round,
    after its forward, and at its end). steps: all steps of all rounds in order, each with its round (index into
    `rounds`), kind (a key of `PHASE_OF`), token (index into that round's tokens, -1 for none), index (place in the
    strip, -1 for none), start and end (ms) and text.
    lanes: this run, and plain decoding of the same prompt or None; `plain_note` says where that comes from, or how to
    get it. plain: a trace of plain decoding. Raises `InputError` for a sequence that is not there.

    >>> from specworkbench import load_trace
    >>> from specworkbench.paths import traces_dir
    >>> played = player_rounds(load_trace(traces_dir() / "quickstart.trace"))
    >>> [step["kind"] for step in played["steps"][:3]]
    ['propose', 'verify', 'decide']
    """
    strip = strip_rows(trace, sequence)
    places = {key: place for place, key in enumerate(zip(strip["round"], strip["node"], strict=True))}
    own = Trace(
        trace.manifest,
        trace.rounds[trace.rounds["sequence"] == sequence].sort_values("round"),
        trace.positions[trace.positions["sequence"] == sequence],
    )
    entry = trace.sequences[sequence]
    lane, (plain_run, note) = decoded_lane(own, sequence), plain_lane(trace, sequence, plain)
    output = [*entry["prompt_tokens"], *entry["token_ids"]]
    rounds, steps, clock = [], [], prefill_ms(entry)
    for row in own.rounds.to_dict("records"):
        tokens = own.round_positions(sequence, row["round"])
        tokens = tokens.iloc[(tokens["node"] < 0).argsort(kind="stable")]
        played = _round(own, row, tokens, places, clock)
        length = int(row["context_length"])
        context = output[max(0, length - CONTEXT) : length]
        played["context"] = [visible(trace.token_text(token)) for token in context]
        steps += _steps(own, row, tokens, played, len(rounds))
        rounds.append(played)
        clock += sum(played["phases"])
    return {
        "title": words.title(trace, sequence),
        "rounds": rounds,
        "steps": steps,
        "lanes": {"this": lane, "plain": plain_run},
        "plain_note": note,
    }


def step_of(played: dict[str, Any], index: int) -> int:
    """The step that shows the token at this place in the strip: where it is decided or drawn; of a discarded one, its
    round's last decision. -1 where there is none.
    """
    own = [n for n, step in enumerate(played["steps"]) if step["index"] == index and step["kind"] in ("decide", "emit")]
    if own or index < 0:
        return own[0] if own else -1
    found = (i for i, row in enumerate(played["rounds"]) if any(token["index"] == index for token in row["tokens"]))
    round_index = next(found, -1)
    decided = [n for n, s in enumerate(played["steps"]) if s["round"] == round_index and s["kind"] == "decide"]
    return decided[-1] if decided else -1


def _round(trace: Trace, row: dict[str, Any], tokens: pd.DataFrame, places: dict, clock: float) -> dict[str, Any]:
    times = [float(row[f"ms_{phase}"]) for phase in PHASES[:-1]]
    before = int(row["context_length"]) - 1  # a context's last token is never cached
    decided = _examined(tokens)
    return {
        "round": int(row["round"]),
        "start": clock,
        "phases": [*times, max(0.0, float(row["ms_total"]) - sum(times))],
        "proposed": int(row["proposed"]),
        "accepted": int(row["accepted"]),
        "emitted": int(row["emitted"]),
        "tree": bool(((tokens["node"] >= 0) & (tokens["parent"] != tokens["node"] - 1)).any()),
        "cache": [before, before + int(row["target_positions"]), int(row["target_cache_tokens"])],
        "tokens": [
            _token(trace, token, places, decided.index(number) if number in decided else -1)
            for number, (_, token) in enumerate(tokens.iterrows())
        ],
    }


def _examined(tokens: pd.DataFrame) -> list[int]:
    """Which of the round's tokens were judged, in the order of the judging: by depth, siblings by node."""
    judged = tokens["outcome"].isin(EXAMINED).to_numpy().nonzero()[0]
    return sorted(map(int, judged), key=lambda place: (tokens["position"].iloc[place], tokens["node"].iloc[place]))


def _token(trace: Trace, row: pd.Series, places: dict, decided: int) -> dict[str, Any]:
    accept, u = (None if pd.isna(row[name]) else float(row[name]) for name in ("accept_prob", "u"))
    judged = decided >= 0
    accept_text, u_text = distinct(accept, u) if judged and None not in (accept, u) else ("", "")
    return {
        "index": places.get((row["round"], row["node"]), -1),
        "text": visible(trace.token_text(row["token"])),
        "outcome": str(row["outcome"]),
        "emitted": bool(row["emitted"]),
        "cut": bool(is_cut(row["outcome"], row["emitted"])),
        "position": int(row["position"]),
        "node": int(row["node"]),
        "parent": int(row["parent"]),
        "p": float(row["p"]),
        "q": None if pd.isna(row["q"]) else float(row["q"]),
        "p_text": number(row["p"]),
        "q_text": "" if pd.isna(row["q"]) else number(row["q"]),
        "accept_prob": accept if judged else None,
        "u": u if judged else None,
        "accept_text": accept_text,
        "u_text": u_text,
        "decided": decided,
        "origin": words.origin(trace, row),
    }


def _steps(
    trace: Trace, row: dict[str, Any], tokens: pd.DataFrame, played: dict[str, Any], number: int
) -> list[dict[str, Any]]:
    """The steps of one round, in order."""
    order, drawn = _examined(tokens), len(tokens) - 1
    kinds = [("verify", 0), *(("decide", place) for place in order), ("emit", drawn), ("roll back", drawn)]
    if trace.manifest["proposer"]["name"] != "none":
        kinds.insert(0, ("propose", 0))
    ends = [played["start"], *accumulate(_shares(kinds, played["phases"]), initial=played["start"])][1:]
    steps = []
    for (kind, place), (start, end) in zip(kinds, pairwise(ends), strict=True):
        about = played["tokens"][place]
        steps.append(
            {
                "round": number,
                "kind": kind,
                "token": place if kind in ("decide", "emit") else -1,
                "index": about["index"],
                "start": start,
                "end": end,
                "text": words.step_text(trace, kind, row, tokens, tokens.iloc[place]),
            }
        )
    return steps


def _shares(kinds: list[tuple[str, int]], phases: list[float]) -> list[float]:
    """ms of each step: its phase's, shared by the steps of that phase; what belongs to no phase ends the round."""
    times = dict(zip(PHASES, phases, strict=True))
    names = [PHASE_OF[kind] for kind, _ in kinds]
    if "accept" not in names:
        names[-2] = "accept"
    if "propose" not in names:
        times["verify"] += times["propose"]
    shares = [times[name] / names.count(name) for name in names]
    shares[-1] += times["other"]
    return shares
