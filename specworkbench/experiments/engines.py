"""Whose outputs are drawn: an implementation as it is, or transformers doing the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from specworkbench.engine.proposers import DraftModelProposer, NgramProposer, NoProposer
from specworkbench.equivalence.others import AssistedGeneration, OurDecoding
from specworkbench.errors import InputError
from specworkbench.experiments.implementation import Implementation, opened

__all__ = ["Engine", "engine_opened", "other_engine", "outputs_of"]

ENGINES = ("plain", "transformers")
"""What an implementation may be compared with."""


@dataclass(frozen=True)
class Engine:
    """Whose outputs are drawn. name: "ours" (the implementation as it is) or "transformers"; defaults: whether what
    transformers does when it is left to itself is left to it.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> Engine("transformers", Implementation("embedded", ProposerSpec("ngram"))).name
    'transformers'
    """

    name: str
    wanted: Implementation
    defaults: bool = False


@lru_cache(maxsize=8)
def engine_opened(engine: Engine) -> OurDecoding | AssistedGeneration:
    """The engine, ready to draw. Raises `InputError` for a proposer that transformers has no counterpart of.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> type(engine_opened(Engine("ours", Implementation("embedded", ProposerSpec("ngram"))))).__name__
    'OurDecoding'
    """
    parts, settings = opened(engine.wanted), engine.wanted.settings
    if engine.name == "ours":
        return OurDecoding(parts.target, settings, parts.proposer, parts.verifier)
    kind = type(parts.proposer)
    if kind not in (DraftModelProposer, NgramProposer, NoProposer):
        raise InputError(
            "transformers has a counterpart of the proposers draft_model, ngram and none, and not of "
            f"{parts.proposer.name}; compare it with plain decoding"
        )
    draft = parts.proposer.draft if kind is DraftModelProposer else None
    lookup = kind is NgramProposer
    return AssistedGeneration(parts.target, draft, settings, prompt_lookup=lookup, defaults=engine.defaults)


def outputs_of(engine: Engine, prompt: str, count: int, first: int) -> list[tuple[int, ...]]:
    """Outputs first .. first + count - 1 of a prompt.

    >>> from specworkbench.engine import DecodeSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=DecodeSettings(max_new_tokens=4))
    >>> [len(output) <= 4 for output in outputs_of(Engine("ours", wanted), "a b a b", count=2, first=0)]
    [True, True]
    """
    ids = opened(engine.wanted).target.encode(prompt, engine.wanted.chat)
    return engine_opened(engine).draw(ids, count, seed=engine.wanted.seed, first=first)


def other_engine(wanted: Implementation, engine: str, defaults: bool = False) -> Engine:
    """Whom an implementation is compared with: "plain" or "transformers", which is left its defaults where asked.

    Raises `InputError` for another name, or where the engine cannot do what the implementation does.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> other_engine(Implementation("embedded", ProposerSpec("ngram")), "plain").wanted.proposer.name
    'none'
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r} to compare with; choose one of {', '.join(ENGINES)}")
    if defaults and engine == "plain":
        raise InputError("plain decoding has no defaults of its own; leave them to transformers, or to nobody")
    theirs = Engine("ours", wanted.plain()) if engine == "plain" else Engine("transformers", wanted, defaults)
    engine_opened(theirs)
    return theirs
