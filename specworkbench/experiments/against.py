"""Outputs against those of another engine: plain decoding, or transformers' assisted generation. Draws alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from specworkbench.equivalence.others import (
    SequenceCells,
    SequenceOutcome,
    TwoSamples,
    permutations_for,
    sequence_cells,
    sequence_test,
    two_samples,
)
from specworkbench.equivalence.statistics import holm
from specworkbench.equivalence.statistics.two_sample import LARGEST_GROUP
from specworkbench.errors import InputError
from specworkbench.experiments.engines import ENGINES, Engine, engine_opened, other_engine, outputs_of
from specworkbench.experiments.greedy import Divergences, biased, divergences
from specworkbench.experiments.implementation import Implementation, opened
from specworkbench.experiments.workers import Workers
from specworkbench.workloads import Prompt

__all__ = ["Comparison", "ENGINES", "GreedyComparison", "compare", "few", "refuse_numbers", "short"]

CHUNK = 25
"""Outputs of a prompt that one task draws."""
LENGTH = 6
"""Tokens of an output that is drawn many times."""
MOST_OUTPUTS = LARGEST_GROUP // 2
LEAST_LEVEL = 1e-4

Tokens = tuple[int, ...]
Watch = Callable[[str, int, int], bool | None]


def few(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The first prompt of each bucket: whole outputs need many draws of the same prompt.

    >>> from specworkbench.workloads import load_prompts
    >>> [prompt.bucket for prompt in few(load_prompts("embedded"))]
    ['code', 'prose', 'structured']
    """
    return list({prompt.bucket: prompt for prompt in reversed(prompts)}.values())[::-1]


@dataclass(frozen=True)
class Comparison:
    """Two engines, by their outputs.

    subject: ours against theirs; positive: the same with a fault; null: our plain decoding against itself, with other
    draws. law: outputs against the target's own law, on a partition declared beforehand, by "subject" and "theirs" (but
    where that is our plain decoding) and by prompt; adjusted: Holm's p-values of these.

    >>> from specworkbench.equivalence.others import two_samples
    >>> ours = [(0, 1), (1, 0)] * 20
    >>> same, other = (two_samples(ours, theirs) for theirs in (ours[::-1], [(0, 0), (1, 1)] * 20))
    >>> Comparison({"name": "mine"}, subject=same, positive=other, null=same, law={}, adjusted={}).verdict
    'not rejected'
    """

    engine: dict[str, Any]
    subject: TwoSamples
    positive: TwoSamples
    null: TwoSamples
    law: dict[str, dict[str, SequenceOutcome]]
    adjusted: dict[str, dict[str, float]]

    @property
    def verdict(self) -> str:
        """"rejected", "not rejected", or "undecided" (a control did not come out as it must)."""
        if self.null.differ or not self.positive.differ:
            return "undecided"
        return "rejected" if self.subject.differ or self.off_the_law("subject") else "not rejected"

    def off_the_law(self, whose: str) -> bool:
        """Whether the outputs of "subject" or "theirs" do not follow the target."""
        return any(value <= self.subject.level for value in self.adjusted.get(whose, {}).values())


@dataclass(frozen=True)
class GreedyComparison:
    """Two engines at temperature 0, where an output is no draw: where they part, by prompt.

    >>> from specworkbench.engine import DecodeSettings, SamplingSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> greedy = DecodeSettings(max_new_tokens=16, sampling=SamplingSettings(temperature=0))
    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=greedy)
    >>> with Workers() as workers:
    ...     compare(wanted, "plain", [Prompt("mine", "text", "a b a b")], workers=workers).verdict
    'not rejected'
    """

    engine: dict[str, Any]
    divergences: Divergences

    @property
    def verdict(self) -> str:
        """"rejected" where they part by more than rounding, else "not rejected"."""
        return "rejected" if biased(self.divergences) else "not rejected"


def short(wanted: Implementation, length: int = LENGTH) -> Implementation:
    """The same with outputs of so many tokens; at temperature 0, where each is drawn once, as it is.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> short(Implementation("embedded", ProposerSpec("ngram")), length=4).settings.max_new_tokens
    4
    """
    if wanted.settings.sampling.greedy:
        return wanted
    return replace(wanted, settings=replace(wanted.settings, max_new_tokens=length))


def compare(
    wanted: Implementation,
    engine: str,
    prompts: Sequence[Prompt],
    *,
    outputs: int = 300,
    length: int = LENGTH,
    level: float = 1e-3,
    defaults: bool = False,
    workers: Workers,
    watch: Watch | None = None,
) -> Comparison | GreedyComparison | None:
    """Draw `outputs` outputs of `length` tokens of every prompt from both engines, and test them against each other.

    At temperature 0 each prompt is continued once, as far as the settings say. watch: told whose outputs are drawn, how
    many of them there are, and how many there will be; with False it stops everything, and there is no answer. Raises
    `InputError`, before anything is drawn, for what `other_engine` and `refuse_numbers` refuse, and for fewer outputs
    than the target's law can be tested with.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> wanted, prompts = Implementation("embedded", ProposerSpec("ngram")), [Prompt("mine", "text", "a b a b")]
    >>> with Workers() as workers:
    ...     compare(wanted, "plain", prompts, outputs=40, length=2, workers=workers).null.differ
    False
    """
    wanted = short(wanted, length)
    theirs, cells = prepared(wanted, engine, prompts, outputs, level, defaults)
    if wanted.settings.sampling.greedy:
        return _compare_greedy(wanted, theirs, prompts, workers, watch)
    plain = Engine("ours", wanted.plain())
    who = {
        "theirs": theirs,
        "positive": Engine("ours", wanted.faulty()),
        "null": Engine("ours", replace(wanted.plain(), seed=wanted.seed + 3)),
        "subject": Engine("ours", wanted),
    }
    if engine != "plain":
        who["plain"] = plain
    drawn: dict[str, list[Tokens]] = {}
    for name, each in who.items():
        found = _drawn(each, name, prompts, outputs, workers, watch)
        if found is None:
            return None
        drawn[name] = found
    names = [prompt.id for prompt in prompts for _ in range(outputs)]

    def versus(ours: str, other: str) -> TwoSamples:
        return two_samples(
            drawn[ours], drawn[other], groups_a=names, groups_b=names, level=level,
            permutations=permutations_for(level), seed=wanted.seed,
        )  # fmt: skip

    law = {
        whose: {
            prompt.id: sequence_test(
                drawn[whose][number * outputs : (number + 1) * outputs], cells[prompt.id], level=level / len(prompts)
            )
            for number, prompt in enumerate(prompts)
        }
        for whose in (("subject",) if engine == "plain" else ("subject", "theirs"))
    }
    return Comparison(
        _description(theirs),
        versus("subject", "theirs"),
        versus("positive", "theirs"),
        versus("null", "theirs" if engine == "plain" else "plain"),
        law,
        {whose: holm({name: each.p_value for name, each in found.items()}, level) for whose, found in law.items()},
    )


def prepared(
    wanted: Implementation, engine: str, prompts: Sequence[Prompt], outputs: int, level: float, defaults: bool
) -> tuple[Engine, dict[str, SequenceCells]]:
    """The other engine, and by prompt the partition on which its outputs are judged; raises what `compare` does."""
    theirs = other_engine(wanted, engine, defaults)
    if wanted.settings.sampling.greedy:
        return theirs, {}
    refuse_numbers(outputs, level)
    return theirs, cells_of(wanted, tuple(prompts), outputs)


def refuse_numbers(outputs: int, level: float) -> None:
    """Raises `InputError` for numbers of outputs, or levels, that the comparison cannot do with.

    >>> refuse_numbers(outputs=300, level=0.001)
    """
    if not 1 <= outputs <= MOST_OUTPUTS:
        raise InputError(f"outputs is {outputs}; from each prompt 1 to {MOST_OUTPUTS} can be drawn")
    if not LEAST_LEVEL <= level < 1.0:
        raise InputError(
            f"level is {level:g}; outputs are compared by permutations, which reach levels from {LEAST_LEVEL:g} to 1"
        )


@lru_cache(maxsize=4)
def cells_of(wanted: Implementation, prompts: tuple[Prompt, ...], outputs: int) -> dict[str, SequenceCells]:
    """The partition of each prompt's outputs, by the target's rows alone."""
    target = opened(wanted).target
    return {
        prompt.id: sequence_cells(target, target.encode(prompt.text, wanted.chat), wanted.settings, outputs)
        for prompt in prompts
    }


def _drawn(
    engine: Engine, name: str, prompts: Sequence[Prompt], outputs: int, workers: Workers, watch: Watch | None
) -> list[Tokens] | None:
    """All outputs of one engine, prompt after prompt; None where it was stopped."""
    tasks = [
        (engine, prompt.text, min(CHUNK, outputs - first), first)
        for prompt in prompts
        for first in range(0, outputs, CHUNK)
    ]
    found: list[Tokens] = []
    for part in workers.map(outputs_of, tasks):
        found += part
        if watch is not None and watch(name, len(found), outputs * len(prompts)) is False:
            return None
    return found


def _compare_greedy(
    wanted: Implementation, theirs: Engine, prompts: Sequence[Prompt], workers: Workers, watch: Watch | None
) -> GreedyComparison | None:
    others = workers.map(outputs_of, [(theirs, prompt.text, 1, 0) for prompt in prompts])
    told = None if watch is None else lambda done, total: watch("theirs", done, total)
    found = divergences(wanted, prompts, workers, lambda prompt: next(others)[0], told)
    return None if found is None else GreedyComparison(_description(theirs), found)


def _description(engine: Engine) -> dict[str, Any]:
    return {"engine": "plain decoding"} if engine.name == "ours" else engine_opened(engine).describe()
