"""Outputs against those of another engine: plain decoding, or transformers' assisted generation. Draws alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specworkbench.engine.proposers import DraftModelProposer, NgramProposer, NoProposer
from specworkbench.equivalence.others import (
    AssistedGeneration,
    OurDecoding,
    SequenceOutcome,
    TwoSamples,
    sequence_cells,
    sequence_test,
    two_samples,
)
from specworkbench.equivalence.statistics import holm
from specworkbench.errors import InputError
from specworkbench.experiments.equivalence import Implementation, Workers, opened
from specworkbench.workloads import Prompt

ENGINES = ("plain", "transformers")
CHUNK = 25
"""Outputs of a prompt that one task draws."""


def few(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The first prompt of each bucket: whole outputs need many draws of the same prompt."""
    return list({prompt.bucket: prompt for prompt in reversed(prompts)}.values())[::-1]


@dataclass(frozen=True)
class Engine:
    """Whose outputs are drawn. name: "ours" (the implementation as it is) or "transformers"; defaults: whether what
    transformers does when it is left to itself is left to it.
    """

    name: str
    wanted: Implementation
    defaults: bool = False

    def open(self) -> OurDecoding | AssistedGeneration:
        """Raises `InputError` for a proposer that transformers has no counterpart of."""
        parts, settings = opened(self.wanted), self.wanted.settings
        if self.name == "ours":
            return OurDecoding(parts.target, settings, parts.proposer, parts.verifier)
        kind = type(parts.proposer)
        if kind not in (DraftModelProposer, NgramProposer, NoProposer):
            raise InputError(
                f"transformers is compared with the proposers draft_model, ngram and none, and not with "
                f"{parts.proposer.name}; compare it with plain decoding"
            )
        draft = parts.proposer.draft if kind is DraftModelProposer else None
        return AssistedGeneration(
            parts.target, draft, settings, prompt_lookup=kind is NgramProposer, defaults=self.defaults
        )


def outputs_of(engine: Engine, prompt: str, count: int, first: int) -> list[tuple[int, ...]]:
    """Outputs first .. first + count - 1 of a prompt."""
    ids = opened(engine.wanted).target.encode(prompt, engine.wanted.chat)
    return engine.open().draw(ids, count, seed=engine.wanted.seed, first=first)


@dataclass(frozen=True)
class Comparison:
    """Two engines, by their outputs.

    subject: ours against theirs; positive: the same with a fault; null: our plain decoding against itself, with other
    draws. law: theirs against the target's own law, on a partition declared beforehand, prompt by prompt, and adjusted:
    Holm's p-values of these; empty where the other engine is plain decoding.
    """

    engine: dict[str, Any]
    subject: TwoSamples
    positive: TwoSamples
    null: TwoSamples
    law: dict[str, SequenceOutcome]
    adjusted: dict[str, float]

    @property
    def verdict(self) -> str:
        """"rejected", "not rejected", or "undecided" (a control did not come out as it must)."""
        if self.null.differ or not self.positive.differ:
            return "undecided"
        return "rejected" if self.subject.differ else "not rejected"

    @property
    def theirs_rejected(self) -> bool:
        """Whether the other engine does not follow the target."""
        return any(value <= self.subject.level for value in self.adjusted.values())


def compare(
    wanted: Implementation,
    engine: str,
    prompts: Sequence[Prompt],
    *,
    outputs: int = 300,
    length: int = 6,
    level: float = 1e-3,
    defaults: bool = False,
    workers: Workers,
    watch: Callable[[str, int, int], Any] | None = None,
) -> Comparison:
    """Draw `outputs` outputs of `length` tokens of every prompt from both engines, and test them against each other.

    watch: told whose outputs are drawn, how many of them there are, and how many there will be.
    """
    wanted = replace(wanted, settings=replace(wanted.settings, max_new_tokens=length))
    plain = Engine("ours", wanted.plain())
    theirs = plain if engine == "plain" else Engine("transformers", wanted, defaults)
    theirs.open()  # refuses before anything is drawn
    who = {
        "theirs": theirs,
        "positive": Engine("ours", wanted.faulty()),
        "null": Engine("ours", replace(wanted.plain(), seed=wanted.seed + 3)),
        "subject": Engine("ours", wanted),
    }
    if engine != "plain":
        who["plain"] = plain
    drawn = {name: _drawn(each, name, prompts, outputs, workers, watch) for name, each in who.items()}
    names = [prompt.id for prompt in prompts for _ in range(outputs)]

    def versus(ours: str, other: str) -> TwoSamples:
        return two_samples(drawn[ours], drawn[other], groups_a=names, groups_b=names, level=level, seed=wanted.seed)

    law = {} if engine == "plain" else _against_law(wanted, prompts, drawn["theirs"], outputs, level)
    described = {"engine": "plain decoding"} if engine == "plain" else theirs.open().describe()
    return Comparison(
        described,
        versus("subject", "theirs"),
        versus("positive", "theirs"),
        versus("null", "theirs" if engine == "plain" else "plain"),
        law,
        holm({name: outcome.p_value for name, outcome in law.items()}, level),
    )


def _drawn(
    engine: Engine, name: str, prompts: Sequence[Prompt], outputs: int, workers: Workers,
    watch: Callable[[str, int, int], Any] | None,
) -> list[tuple[int, ...]]:  # fmt: skip
    """All outputs of one engine, prompt after prompt."""
    tasks = [
        (engine, prompt.text, min(CHUNK, outputs - first), first)
        for prompt in prompts
        for first in range(0, outputs, CHUNK)
    ]
    found: list[tuple[int, ...]] = []
    for part in workers.map(outputs_of, tasks):
        found += part
        if watch is not None:
            watch(name, len(found), outputs * len(prompts))
    return found


def _against_law(
    wanted: Implementation, prompts: Sequence[Prompt], drawn: list[tuple[int, ...]], outputs: int, level: float
) -> dict[str, SequenceOutcome]:
    """Outputs of every prompt against the target's masses of cells that know nothing of them."""
    target, found = opened(wanted).target, {}
    for number, prompt in enumerate(prompts):
        ids = target.encode(prompt.text, wanted.chat)
        cells = sequence_cells(target, ids, wanted.settings, outputs)
        mine = drawn[number * outputs : (number + 1) * outputs]
        found[prompt.id] = sequence_test(mine, cells, level=level / len(prompts))
    return found
