"""At temperature 0 two engines say the same, or part at one token: by rounding, or by a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specworkbench.engine.loop import decode_rounds
from specworkbench.equivalence.numerics import Divergence, first_divergence
from specworkbench.experiments.implementation import Implementation, begun, opened
from specworkbench.experiments.workers import Workers
from specworkbench.workloads import Prompt

__all__ = ["output_of", "divergences", "biased"]

Divergences = dict[str, Divergence | None]
"""By prompt, where the outputs part; None where they are equal."""


def output_of(wanted: Implementation, prompt: str) -> list[int]:
    """What an implementation says, as tokens.

    >>> from specworkbench.engine import DecodeSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=DecodeSettings(max_new_tokens=4))
    >>> len(output_of(wanted, "a b a b"))
    4
    """
    sequence = begun(wanted, prompt, 0)
    for _ in decode_rounds(sequence):
        pass
    return sequence.output


def divergences(
    wanted: Implementation,
    prompts: Sequence[Prompt],
    workers: Workers,
    others: Callable[[Prompt], Sequence[int]] | None = None,
    watch: Callable[[int, int], Any] | None = None,
) -> Divergences | None:
    """Where its outputs part from those of plain decoding, or of `others`, and why.

    watch: told how many prompts have been compared, of how many; where it returns False, the rest is left, and there is
    no answer.

    >>> from specworkbench.engine import DecodeSettings, SamplingSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> greedy = DecodeSettings(max_new_tokens=16, sampling=SamplingSettings(temperature=0))
    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=greedy)
    >>> with Workers() as workers:
    ...     divergences(wanted, [Prompt("mine", "text", "a b a b")], workers)
    {'mine': None}
    """
    target, settings, found = opened(wanted).target, wanted.settings, {}
    ours = workers.map(output_of, [(wanted, prompt.text) for prompt in prompts])
    plain = workers.map(output_of, [(wanted.plain(), prompt.text) for prompt in prompts])
    for number, prompt in enumerate(prompts, start=1):
        theirs = next(plain) if others is None else others(prompt)
        found[prompt.id] = first_divergence(
            theirs, next(ours), target, target.encode(prompt.text, wanted.chat),
            sampling=settings.sampling, gamma=settings.gamma,
        )  # fmt: skip
        if watch is not None and watch(number, len(prompts)) is False:
            return None
    return found


def biased(found: Divergences | None) -> bool:
    """Whether rounding does not explain all of it.

    >>> biased({"mine": None}), biased(None)
    (False, False)
    """
    return any(each is not None and each.judgement == "bias" for each in (found or {}).values())
