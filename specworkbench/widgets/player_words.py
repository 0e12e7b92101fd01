"""The steps of a round in sentences with their numbers, for `RoundPlayer`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from specworkbench.trace import Trace
from specworkbench.trace.schema import FIRST_CHOICE, STOP_REASONS
from specworkbench.widgets.sentences import PROPOSER_NAMES, SHORTENED_REASONS, sentence
from specworkbench.widgets.tables import caption

SHORTENED_TO = {
    "budget": "the limit of new tokens leaves room for no more",
    "context": "the target's context has room for no more",
    "draft_context": "the draft's context has room for no more",
}
"""Why fewer than gamma tokens were proposed, where some were."""


def title(trace: Trace, sequence: int) -> str:
    """A line above the rounds: the sequence, how it ended, and that the rule is lossy where it is."""
    entry = trace.sequences[sequence]
    name = f"{entry['id']} · {entry['bucket']}" if entry.get("bucket") else str(entry["id"])
    rounds = int((trace.rounds["sequence"] == sequence).sum())
    why = STOP_REASONS.get(entry["stop_reason"], "not ended")
    return caption(trace, f"{name}: {counted(len(entry['token_ids']), 'token')} in {counted(rounds, 'round')}, {why}")


def step_text(trace: Trace, kind: str, row: dict[str, Any], tokens: pd.DataFrame, token: pd.Series) -> str:
    """What happens in a step. row: of `trace.rounds`; tokens: the round's; token: the one that the step is about."""
    if kind == "decide":
        return sentence(trace, token)
    start = f"Round {row['round']}, {kind}: "
    if kind == "propose":
        return start + _propose(trace, row, tokens)
    if kind == "verify":
        return start + _verify(row, tokens)
    return start + (_emit(trace, row, token) if kind == "emit" else _roll_back(row))


def origin(trace: Trace, row: pd.Series) -> str:
    """Where a token comes from, in a few words; empty for a guess."""
    outcome, rule = row["outcome"], trace.manifest["rule"]["name"]
    if outcome not in ("corrected", "bonus", "plain"):
        return ""
    if rule in FIRST_CHOICE:
        return "the target's most probable"
    if outcome == "corrected":
        return "from p without the guess" if rule == "equality" else "from the residual"
    return "from the target's last row" if outcome == "bonus" else "from the target's row"


def counted(number: int, thing: str, things: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "token"), counted(3, "token"), counted(2, "guess", "guesses")
    ('1 token', '3 tokens', '2 guesses')
    """
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def ms(value: float) -> str:
    """Milliseconds with sensible digits.

    >>> ms(0.062), ms(2.94), ms(127.3)
    ('0.06 ms', '2.9 ms', '127 ms')
    """
    return f"{value:.{2 if value < 1 else 1 if value < 100 else 0}f} ms"


def _propose(trace: Trace, row: dict[str, Any], tokens: pd.DataFrame) -> str:
    proposer = PROPOSER_NAMES.get(trace.manifest["proposer"]["name"], "the proposer")
    time, proposed, shortened = ms(row["ms_propose"]), int(row["proposed"]), row["shortened"]
    if not proposed and shortened:
        return f"nothing, since {SHORTENED_REASONS.get(shortened, shortened)}; the round is a plain one."
    if not proposed:
        return f"{proposer} looked for a guess and found none, {time}; the round is a plain one."
    forwards = f" in {counted(int(row['draft_forwards']), 'forward')}" if row["draft_forwards"] else ""
    shape = f" in a tree of depth {tokens['depth'].max()}" if _is_tree(tokens) else ""
    why = f" Fewer than gamma = {row['gamma']}: {SHORTENED_TO.get(shortened, shortened)}." if shortened else ""
    if not shortened and not shape and proposed < row["asked"]:
        why = f" It was asked for {row['asked']}."
    return f"{proposer} guessed {counted(proposed, 'token')}{shape}{forwards}, {time}.{why}"


def _verify(row: dict[str, Any], tokens: pd.DataFrame) -> str:
    proposed, time = int(row["proposed"]), ms(row["ms_verify"])
    over = counted(int(row["target_positions"]), "position")
    if not proposed:
        return f"one forward of the target over {over}, {time}; its row gives the next token."
    guesses = "nodes of the tree" if _is_tree(tokens) else "guess" if proposed == 1 else "guesses"
    return (
        f"one forward of the target over {over}, {time}: the last token and {proposed} {guesses}. "
        "A row of p for each guess, and one for the token after."
    )


def _emit(trace: Trace, row: dict[str, Any], drawn: pd.Series) -> str:
    after, emitted = int(row["context_length"]) + int(row["emitted"]), int(row["emitted"])
    prompt = len(trace.sequences[int(row["sequence"])]["prompt_tokens"])
    kept = min(int(row["accepted"]), emitted)
    parts = [counted(kept, "guess", "guesses")] if kept else []
    if emitted > kept:
        parts.append(f"the {drawn['outcome']} token" if drawn["outcome"] != "plain" else "the target's own token")
    told = sentence(trace, drawn).removeprefix(f"Round {row['round']}, ")
    return (
        f"{' and '.join(parts)}; the output grows from {after - emitted - prompt} to {after - prompt} tokens. "
        f"{told[0].upper()}{told[1:]}"
    )


def _roll_back(row: dict[str, Any]) -> str:
    before, positions = int(row["context_length"]) - 1, int(row["target_positions"])
    after = int(row["target_cache_tokens"])
    dropped = before + positions - after
    what = f"{dropped} of these taken back" if dropped else "nothing to take back"
    return (
        f"the target's cache held {before} tokens, its forward added {positions}, and it keeps {after}: {what}. "
        f"Commit and roll back together took {ms(row['ms_rollback'])}. The last token is not in it yet: "
        "the next round begins with it."
    )


def _is_tree(tokens: pd.DataFrame) -> bool:
    return bool(((tokens["node"] >= 0) & (tokens["parent"] != tokens["node"] - 1)).any())
