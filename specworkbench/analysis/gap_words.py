"""The steps of a gap in words: what each replaces, the figures behind it, and the sentence that sums it up."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

from specworkbench.analysis.gap_totals import KINDS, TARGET, Totals

if TYPE_CHECKING:
    from specworkbench.analysis.gap import Gap, Step

MENTIONED = 3
"""So many losses, and so many gains, a sentence names at most."""
WORTH_SAYING = 0.03
"""A sentence names a step without which the speedup would differ by this share at least."""
PAUSES_WORTH_SAYING = 0.02
"""The share of a side's time in pauses from which on the sentence warns of them."""


class Said(NamedTuple):
    """A step's name, and what the speedup after it is."""

    name: str
    meaning: str


STEPS = {
    "acceptance": Said(
        "uneven acceptance",
        "each position is accepted as often as measured there, given those before, instead of independently with alpha",
    ),
    "guesses": Said(
        "fewer guesses", "rounds without a guess, or with fewer than gamma, bring the tokens that they brought"
    ),
    "ends": Said(
        "ends of outputs",
        "rounds that the remaining budget or the context shortened, and what EOS cut off, bring what they brought",
    ),
    "proposing": Said(
        "proposing", "opening a round takes its time on both sides, the proposer included; a target forward one step"
    ),
    "verification": Said("verification", "the target's forwards, sampling and rule take the time they took"),
    "rollback": Said("commit and rollback", "so do committing tokens and rolling back caches, on both sides"),
    "loop": Said("rest of a round", "so does what no phase accounts for, on both sides"),
    "pauses": Said(
        "pauses", "so does what interrupted rounds (over ten times the median) took beyond the median, on both sides"
    ),
    "between": Said("between rounds", "so do the loop between rounds, recording and text, on both sides"),
    "prefill": Said("prefill", "so does the target's prefill, on both sides"),
    "draft_prefill": Said("proposer's prefill", "so does the proposer's prefill: all that was measured"),
}
"""By key, in their order: what the speedup would be if all up to here were as measured, and the rest ideal. After
`pauses` it is that of rounds alone, after the last that of whole sequences. The first two need the formula: trees, and
traces in which nothing was examined, begin after them, at the tokens per round as measured."""


def figures(whole: Totals) -> dict[str, str]:
    """The figures behind each step, by its key; whole: the sum over all prompts."""
    lengths = whole.lengths()[:, 0]
    told = {
        key: f"{before:.2f} → {after:.2f} tokens a round"
        for key, before, after in zip(STEPS, lengths[:-1], lengths[1:], strict=False)
    }
    own = {name: float(values[0]) for name, values in whole.speculative.items()}
    times = whole.times()[..., 0]
    steps, shares = (
        dict(zip(KINDS, parts.T, strict=True)) for parts in (times / times[0, TARGET], times / times.sum(1)[:, None])
    )
    how = "" if whole.cost_set is None else ", as set"
    guesses, positions = own["proposed"] / own["rounds"], own["target_positions"] / own["rounds"]
    told["proposing"] = f"{steps['propose'][1]:.2f} plain steps a round{how}, {guesses:.2f} guesses"
    told["verification"] = f"{steps['target'][1]:.2f} plain steps a round instead of 1, {positions:.2f} positions"
    for key in ("rollback", "loop"):
        before, after = (round(cost, 3) + 0.0 for cost in steps[key])
        told[key] = f"{after:.3f} plain steps a round, {before:.3f} in plain decoding"
    for key in ("pauses", "between", "prefill", "draft_prefill"):
        before, after = map(_percent, shares[key])
        told[key] = f"{after} of the time, {before} in plain decoding"
    return told


def sentence(gap: Gap) -> str:
    """What the formula says, what was measured, and where most of the difference goes."""
    value, low, high = gap.speedup
    between = "" if low is None else f" ({low:.2f} to {high:.2f})"
    reached = "measured" if gap.cost_set is None else f"at the cost set, c = {gap.cost_set:g}, it is"
    said = [f"{_beginning(gap)}; {reached} {value:.2f}x{between}."]
    steps = [step for step in gap.steps if step.name != STEPS["pauses"].name]
    lost = _named([step for step in steps if step.without > (1 + WORTH_SAYING) * value], value)
    gained = _named([step for step in steps if step.without < (1 - WORTH_SAYING) * value], value)
    said += [f"Most is lost to {lost}."] if lost else []
    said += [f"Some is gained by {gained}."] if gained else []
    if max(gap.pauses) >= PAUSES_WORTH_SAYING:
        said.append(
            f"Interrupted rounds (over ten times the median) took {_percent(gap.pauses[0])} of the plain and "
            f"{_percent(gap.pauses[1])} of the speculative time: measure again on a quiet machine."
        )
    return " ".join(said)


def _beginning(gap: Gap) -> str:
    ideal = f"{gap.ideal.value:.2f}"
    if gap.alpha is None:
        return f"A round brings {ideal} tokens, {ideal}x if it cost no more than a plain step"
    return f"The formula says {ideal}x (alpha {gap.alpha:.2f}, gamma {gap.gamma:g}, guesses at no cost)"


def _named(steps: list[Step], value: float) -> str:
    """Those of the steps that matter most for the speedup reached, joined as in a text; empty where there is none."""
    largest = sorted(steps, key=lambda step: -abs(log(step.without / value)))[:MENTIONED]
    told = [f"{step.name} ({step.figures}; {step.without:.2f}x without it)" for step in largest]
    return " and ".join(filter(None, [", ".join(told[:-1]), *told[-1:]]))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
