"""A token's fate in a sentence with the numbers, for every outcome, rule and kind of proposer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from specworkbench.trace import Trace
from specworkbench.trace.rule import lossy_sentence
from specworkbench.trace.schema import FIRST_CHOICE, RULES_OF_BLOCKS
from specworkbench.widgets.tables import is_cut
from specworkbench.widgets.text import distinct, number, quoted

PROPOSER_NAMES = {"draft_model": "the draft", "draft_tree": "the draft", "ngram": "the n-gram lookup"}
CUT_REASONS = {
    "eos": "an end-of-sequence token came before it",
    "stop_string": "a stop string was complete before it",
    "length": "the limit of new tokens was reached before it",
    "context": "the end of the target's context was reached before it",
    "stopped": "decoding was stopped before it",
}
SHORTENED_REASONS = {
    "budget": "the limit of new tokens left room for one only",
    "context": "the target's context had room for one only",
    "draft_context": "the draft's context was full",
}


FORMULAS = {
    "token": "min(1, p/q)",
    "tree": "min(1, p/q)",
    "equality": "p",
    "block": "h",
    "lenient": "min(1, p/(leniency·q))",
    "ensemble": "min(1, 1 − weight + weight·p/q)",
}
"""accept_prob of a rule, short; h = r/(r + 1 − b) is explained where the rules are."""


@dataclass(frozen=True)
class Decision:
    """The rule's decision at a position: accepted iff u < accept_prob. `u` is null where the rule draws nothing.

    block: whether a whole block was decided, so that a guess may be accepted whose own u fell short.
    """

    accept_prob: float
    u: float
    accepted: bool
    greedy: bool
    block: bool = False


def decision_of(trace: Trace, row: pd.Series) -> Decision | None:
    """The decision at the token's position (of a corrected one, on the last rejected one); None where none was made."""
    if row["outcome"] == "corrected":
        row = _partner(trace, row, "rejected", last=True)
    if row is None or row["outcome"] not in ("accepted", "rejected"):
        return None
    accepted = row["outcome"] == "accepted"
    return Decision(float(row["accept_prob"]), float(row["u"]), accepted, _greedy(trace), _block(trace))


def sentence(trace: Trace, row: pd.Series) -> str:
    """What became of the token of this row of `trace.positions`, and why, with the numbers; whether that is lossy."""
    body = _WRITERS[row["outcome"]](trace, row)
    start = f"Round {row['round']}, position {row['position']}: "
    cut = _cut(trace, row) if is_cut(row["outcome"], bool(row["emitted"])) else ""
    lossy = lossy_sentence(trace.manifest["rule"])
    return start + body + cut + (f" {lossy}" if lossy else "")


def scalars(row: pd.Series) -> list[tuple[str, str]]:
    """(name, value) of the position's recorded numbers, those that are not null, for a line below the sentence."""
    shown = [
        ("p", row["p"]),
        ("q", row["q"]),
        ("overlap", row["overlap"]),
        ("TV", row["tv"]),
        ("residual mass", row["residual_mass"]),
    ]
    pairs = [(name, number(value)) for name, value in shown if not pd.isna(value)]
    pairs.append(("entropy of p", f"{row['entropy_p']:z.2f} nats"))
    if not pd.isna(row["entropy_q"]):
        pairs.append(("entropy of q", f"{row['entropy_q']:z.2f} nats"))
    pairs.append(("rank in p", str(row["rank_p"])))
    if not pd.isna(row["rank_q"]):
        pairs.append(("rank in q", str(row["rank_q"])))
    if not pd.isna(row["u_draw"]):
        pairs.append(("drawn with u", number(row["u_draw"])))
    return pairs


def _accepted(trace: Trace, row: pd.Series) -> str:
    if _greedy(trace):
        return f"{_guess(trace, row)}. It is the target's most probable token too, so it was accepted."
    if _typical(trace):
        return f"{_guess(trace, row)}, above {_threshold(trace, row)}, so it was accepted."
    probability, u = distinct(row["accept_prob"], row["u"])
    rule = _rule(trace, row)
    if _block(trace) and row["u"] >= row["accept_prob"]:
        return (
            f"{_guess(trace, row)}; its own u = {u} is not below {rule} = {probability}, but that of a later position "
            "passed, and the block rule keeps all before the last that passes, so it was accepted."
        )
    if row["accept_prob"] >= 1:
        return f"{_guess(trace, row)}; {rule} = 1, so it was accepted whatever u (u = {u})."
    return (
        f"{_guess(trace, row)}; accepted with probability {rule} = {probability}; u = {u} < {probability}, "
        "so it was accepted."
    )


def _rejected(trace: Trace, row: pd.Series) -> str:
    partner = _partner(trace, row, "corrected")
    instead = "another token" if partner is None else _text(trace, partner)
    if _greedy(trace):
        return f"{_guess(trace, row)}. The target's most probable token is {instead}, which took its place: rejected."
    if _typical(trace):
        return f"{_guess(trace, row)}, not above {_threshold(trace, row)}: rejected, and {instead} took its place."
    probability, u = distinct(row["accept_prob"], row["u"])
    if _block(trace):
        return (
            f"{_guess(trace, row)}; u = {u} ≥ {_rule(trace, row)} = {probability}, and no later position passed, so "
            f"the block ended before it: it was rejected and {instead} was drawn from the residual."
        )
    start = (
        f"{_guess(trace, row)}; accepted with probability {_rule(trace, row)} = {probability}; "
        f"u = {u} ≥ {probability}, so it was rejected"
    )
    if _in_tree(trace, row):
        return f"{start}; {_instead(trace, row)}."
    if _rule_name(trace) == "equality":
        return f"{start} and {instead} was drawn from the target's row without it."
    return f"{start} and {instead} was drawn from the residual (mass {number(row['residual_mass'])})."


def _instead(trace: Trace, row: pd.Series) -> str:
    """What came in the place of a rejected guess of a tree."""
    if (taken := _partner(trace, row, "accepted")) is not None:
        return f"its sibling {_text(trace, taken)} was accepted in its place"
    drawn = _partner(trace, row, "corrected")
    text = "another token" if drawn is None else _text(trace, drawn)
    return f"none of its siblings was accepted either, and {text} was drawn from what all of them leave of p"


def _discarded(trace: Trace, row: pd.Series) -> str:
    if _in_tree(trace, row):
        taken = _partner(trace, row, "accepted")
        why = "it continues a token that was not kept" if taken is None else f"{_text(trace, taken)} was accepted there"
        return f"{_guess(trace, row)}, but {why}, so it was discarded without being examined."
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    rejected = together[together["outcome"] == "rejected"]
    where = f" at position {rejected['position'].iloc[0]}" if len(rejected) else ""
    return (
        f"{_guess(trace, row)}, but it continues a token that was rejected{where}, so it was discarded without being "
        "examined."
    )


def _corrected(trace: Trace, row: pd.Series) -> str:
    partner = _partner(trace, row, "rejected")
    instead = "the rejected token" if partner is None else f"the rejected {_text(trace, partner)}"
    if _first_choice(trace):
        return f"{_text(trace, row)} is the target's most probable token and took the place of {instead}."
    if _in_tree(trace, row):
        refused = len(_beside(trace, row, "rejected"))
        guesses = f"the rejected {_text(trace, partner)}" if refused == 1 else f"{refused} rejected guesses"
        return (
            f"in place of {guesses}, {_text(trace, row)} was drawn from what they leave of the target's row, in which "
            f"it had p = {number(row['p'])}."
        )
    if _rule_name(trace) == "equality":
        return (
            f"in place of {instead}, {_text(trace, row)} was drawn from the target's row without it: the target's own "
            f"draw there, with p = {number(row['p'])}."
        )
    if _block(trace):
        return (
            f"in place of {instead}, {_text(trace, row)} was drawn from the residual max(b·p − q, 0), b the "
            f"probability that the guesses before it are kept: p = {number(row['p'])}, q = {number(row['q'])}."
        )
    mass = row["residual_mass"]
    share = max(row["p"] - row["q"], 0.0) / mass if mass > 0 else math.nan
    return (
        f"in place of {instead}, {_text(trace, row)} was drawn from the residual max(p − q, 0), whose mass is "
        f"{number(mass)}: p = {number(row['p'])}, q = {number(row['q'])}, so it had the chance "
        f"(p − q)/{number(mass)} = {number(share)} there."
    )


def _bonus(trace: Trace, row: pd.Series) -> str:
    proposed = int(_round(trace, row)["proposed"])
    if _in_tree(trace, row):
        accepted = int(_round(trace, row)["accepted"])
        return (
            f"{accepted} {'token' if accepted == 1 else 'tokens'} of the tree were accepted, down to its end, so the "
            f"target's row after them gave one token more, {_text(trace, row)}, with p = {number(row['p'])}."
        )
    all_of_them = "the one proposed token was" if proposed == 1 else f"all {proposed} proposed tokens were"
    how = "as its most probable token" if _first_choice(trace) else f"with p = {number(row['p'])}"
    return f"{all_of_them} accepted, so the target's row after them gave one token more, {_text(trace, row)}, {how}."


def _plain(trace: Trace, row: pd.Series) -> str:
    how = "as its most probable token" if _first_choice(trace) else f"with p = {number(row['p'])}"
    step = _round(trace, row)
    if trace.manifest["proposer"]["name"] == "none":
        why = "plain decoding"
    elif step["shortened"]:
        why = f"nothing was proposed, since {SHORTENED_REASONS.get(step['shortened'], step['shortened'])}"
    else:
        why = f"{_proposer(trace)} found no guess, so the round is a plain one"
    return f"{why}; the target gave {_text(trace, row)} itself, {how}."


_WRITERS = {
    "accepted": _accepted,
    "rejected": _rejected,
    "discarded": _discarded,
    "corrected": _corrected,
    "bonus": _bonus,
    "plain": _plain,
}


def _guess(trace: Trace, row: pd.Series) -> str:
    """The clause that every proposed token's sentence begins with."""
    token = _text(trace, row)
    if trace.manifest["proposer"]["deterministic"]:
        return f"{_proposer(trace)} guessed {token} outright (q = 1), the target p = {number(row['p'])}"
    return f"{_proposer(trace)} gave {token} q = {number(row['q'])}, the target p = {number(row['p'])}"


def _rule(trace: Trace, row: pd.Series) -> str:
    """The rule's formula for accept_prob, as far as it is known here."""
    name = _rule_name(trace)
    if name in ("tree", "equality"):
        before = (_beside(trace, row, "rejected")["node"] < row["node"]).sum()
        if before:
            return f"{'min(1, r/q)' if name == 'tree' else 'r'}, r what the siblings rejected before it leave of p,"
    return FORMULAS.get(name, f"accept_prob (rule {name})")


def _cut(trace: Trace, row: pd.Series) -> str:
    reason = trace.sequences[int(row["sequence"])]["stop_reason"]
    return f" It was not emitted: {CUT_REASONS.get(reason, 'the sequence had ended before it')}."


def _proposer(trace: Trace) -> str:
    return PROPOSER_NAMES.get(trace.manifest["proposer"]["name"], "the proposer")


def _rule_name(trace: Trace) -> str:
    return trace.manifest["rule"]["name"]


def _greedy(trace: Trace) -> bool:
    return _rule_name(trace) == "greedy"


def _typical(trace: Trace) -> bool:
    return _rule_name(trace) == "typical"


def _block(trace: Trace) -> bool:
    return _rule_name(trace) in RULES_OF_BLOCKS


def _first_choice(trace: Trace) -> bool:
    """Whether the rule emits the target's most probable token where it draws nothing."""
    return _rule_name(trace) in FIRST_CHOICE


def _threshold(trace: Trace, row: pd.Series) -> str:
    """Above which p the typical rule accepts, in words with the entropy."""
    return f"min(ε, δ·exp(−H)) for a row of entropy H = {row['entropy_p']:z.2f} nats"


def _text(trace: Trace, row: pd.Series) -> str:
    return quoted(trace.token_text(row["token"]))


def _round(trace: Trace, row: pd.Series) -> pd.Series:
    rounds = trace.rounds
    return rounds[(rounds["sequence"] == row["sequence"]) & (rounds["round"] == row["round"])].iloc[0]


def _in_tree(trace: Trace, row: pd.Series) -> bool:
    """Whether the token's round proposed a tree: a guess that does not continue the one before."""
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    return bool(((together["node"] >= 0) & (together["parent"] != together["node"] - 1)).any())


def _beside(trace: Trace, row: pd.Series, outcome: str) -> pd.DataFrame:
    """The tokens of this outcome that continue the same token."""
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    return together[(together["parent"] == row["parent"]) & (together["outcome"] == outcome)]


def _partner(trace: Trace, row: pd.Series, outcome: str, last: bool = False) -> pd.Series | None:
    """The other token of the same position: the corrected one of a rejected one, and the reverse."""
    found = _beside(trace, row, outcome)
    return found.iloc[-1 if last else 0] if len(found) else None
