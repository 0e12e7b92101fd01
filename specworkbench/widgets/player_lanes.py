"""The lanes of `RoundPlayer`: a run's rounds on the clock, and plain decoding of the same prompt where it is known."""

from __future__ import annotations

from typing import Any

from specworkbench.analysis.latency import plain_step_ms
from specworkbench.trace import Trace
from specworkbench.widgets.text import visible

PHASES = ("propose", "verify", "accept", "rollback", "other")
"""Of a round, as `trace.rounds` times them; other is what its total has beside them."""

MUST_AGREE = ("target", "sampling", "device", "clock")
"""Keys of the manifest in which two runs on one clock must be the same; of the target, what `_forwards` tells."""
TARGET = {"name": "", "dtype": "", "quantisation": "none", "engine": "eager", "forward": "fused"}
"""What a target must agree in, and what older traces mean that do not say it."""

HOW = (
    "For a second lane decode the same prompt with the proposer none, in the same session, and give its trace: "
    "RoundPlayer(trace, plain=load_trace('plain.trace'))."
)


def prefill_ms(entry: dict[str, Any]) -> float:
    """ms of both prefills of a sequence, where they were timed."""
    return float(entry.get("ms_prefill") or 0.0) + float(entry.get("ms_draft_prefill") or 0.0)


def decoded_lane(trace: Trace, sequence: int) -> dict[str, Any]:
    """A sequence's rounds as blocks: prefill (ms) and, a round, phases (ms, by `PHASES`) and texts of its output."""
    emitted = trace.output(sequence)
    texts: dict[int, list[str]] = {}
    for round_index, token in zip(emitted["round"], emitted["token"], strict=True):
        texts.setdefault(int(round_index), []).append(visible(trace.token_text(token)))
    rounds = trace.rounds[trace.rounds["sequence"] == sequence].sort_values("round")
    times = rounds[[f"ms_{phase}" for phase in PHASES[:-1]]].to_numpy(dtype=float)
    other = (rounds["ms_total"].to_numpy(dtype=float) - times.sum(axis=1)).clip(min=0.0)
    plain = trace.manifest["proposer"]["name"] == "none"
    return {
        "name": "plain decoding" if plain else "speculative decoding",
        "prefill": prefill_ms(trace.sequences[sequence]),
        "blocks": [
            {"phases": [*map(float, phases), float(rest)], "texts": texts.get(int(number), [])}
            for number, phases, rest in zip(rounds["round"], times, other, strict=True)
        ],
        "measured": True,
    }


def plain_lane(trace: Trace, sequence: int, plain: Trace | None) -> tuple[dict[str, Any] | None, str]:
    """Plain decoding of the sequence's prompt as a lane, and where it comes from; None and how to get it else."""
    if trace.manifest["proposer"]["name"] == "none":
        return None, "This run is plain decoding itself: every round is one forward over one token."
    if plain is None:
        return _from_plain_rounds(trace, sequence)
    if obstacle := _obstacle(trace, plain):
        return None, f"The plain run is left out: {obstacle}. {HOW}"
    prompt = trace.sequences[sequence]["prompt_tokens"]
    for index, entry in enumerate(plain.sequences):
        if entry["prompt_tokens"] == prompt:
            note = "The plain lane is a recorded run of the same prompt."
            if float(trace.manifest["sampling"]["temperature"]) > 0:
                note += " It drew with random numbers of its own: another text, of the same distribution."
            return decoded_lane(plain, index), note
    return None, f"The plain trace has no sequence with this prompt. {HOW}"


def _from_plain_rounds(trace: Trace, sequence: int) -> tuple[dict[str, Any] | None, str]:
    """Equal steps, as long as the rounds of this trace that forwarded one token; None where it has none."""
    step, count = plain_step_ms(trace), int((trace.rounds["target_positions"] == 1).sum())
    if step is None:
        return None, f"No plain run was recorded beside this one. {HOW}"
    entry = trace.sequences[sequence]
    block = {"phases": [0.0, float(step), 0.0, 0.0, 0.0], "texts": [""]}
    lane = {
        "name": "plain decoding, from single steps",
        "prefill": float(entry.get("ms_prefill") or 0.0),
        "blocks": [block] * len(entry["token_ids"]),
        "measured": False,
    }
    rounds = f"the {count} rounds" if count > 1 else "the one round"
    note = (
        f"No plain run was recorded: every step of the plain lane is as long as the median of {rounds} of this trace "
        f"that forwarded one token ({step:.2f} ms for forward and rule). {HOW}"
    )
    return lane, note


def _obstacle(trace: Trace, plain: Trace) -> str:
    """Why two runs cannot stand on one clock; empty where they can."""
    proposer = plain.manifest["proposer"]["name"]
    if proposer != "none":
        return f"the trace given as plain was recorded with the proposer {proposer}"
    for key in MUST_AGREE:
        ours, theirs = trace.manifest.get(key), plain.manifest.get(key)
        if key == "target":
            ours, theirs = _forwards(ours), _forwards(theirs)
        if ours != theirs:
            return _difference(key, ours, theirs)
    return ""


def _difference(key: str, ours: Any, theirs: Any) -> str:
    """In what two values of a key of the manifest differ, in words."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return f"its {key} is {theirs}, this run's {ours}"
    name = next(name for name in ours | theirs if ours.get(name) != theirs.get(name))
    return f"its {key} has {name} {theirs.get(name)}, this run's {ours.get(name)}"


def _forwards(target: dict[str, Any]) -> dict[str, str]:
    """What decides how long a forward of the target takes, beside the machine."""
    told = {name: target.get(name, default) for name, default in TARGET.items()}
    return told | {"products": "the machine's fastest" if target.get("products") else "torch's"}
