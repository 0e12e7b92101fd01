"""Every proposer once, with how to build it on a toy target: what `test_proposer_contract.py` runs through its checks.

A new proposer is one `Case` in `CASES`. The same proposer may come again with other settings or other weights, under a
label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from specworkbench.engine import LanguageModel, Proposer
from specworkbench.engine.proposers import PROPOSERS
from tests.engine import toy_heads
from tests.engine.toys import toy_model

EOS = 2
"""The letter c ends a sequence, except where a check leaves EOS out."""


@cache
def toy_target(vocab: int = 4, eos: int | None = EOS, context: int = 64) -> LanguageModel:
    """A target whose rows are flat enough that any guess may be accepted, with real hidden states of two layers."""
    return toy_model(vocab, eos=eos, context=context, layers=2, width=8, sharpness=2.0)


@cache
def toy_draft(target: LanguageModel) -> LanguageModel:
    """A smaller model of the target's vocabulary."""
    eos = target.eos_ids[0] if target.eos_ids else None
    return toy_model(target.vocab_size, seed=1, eos=eos, context=target.max_context, layers=1, width=8, sharpness=2.0)


@dataclass(frozen=True)
class Case:
    """A proposer and how to build it.

    weights: what it is built from, loaded, as a function of the target; None where it takes none. settings: those that
    are not left at their defaults. target: the toy it works on, as `toy_target` (vocab, eos, context). kind: the class,
    for one that is not (yet) in `PROPOSERS`.
    proposes: whether it ever does. runs_model: whether it does forwards of its own or of the target's. caches: whether
    it holds keys and values of its own. memoryless: whether its guesses are a function of the context alone.
    """

    name: str
    weights: Callable[[LanguageModel], Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    target: Callable[..., LanguageModel] = toy_target
    kind: type[Proposer] | None = None
    proposes: bool = True
    runs_model: bool = False
    caches: bool = False
    memoryless: bool = True

    def __str__(self) -> str:
        return self.label or self.name

    @property
    def proposer(self) -> type[Proposer]:
        """The class."""
        return self.kind or PROPOSERS[self.name]

    def build(self, target: LanguageModel) -> Proposer:
        """A fresh proposer for a target."""
        draft = None if self.weights is None else self.weights(target)
        return self.proposer.build(target, draft, **self.settings)


TREE = {"nodes": 4, "width": 2, "branching": "top-k"}
CASES = (
    Case("none", proposes=False),
    Case("draft_model", weights=toy_draft, runs_model=True, caches=True),
    Case("draft_tree", weights=toy_draft, settings=TREE, runs_model=True, caches=True),
    Case(
        "draft_tree", weights=toy_draft, settings=TREE | {"branching": "sampled"}, label="draft_tree, sampled",
        runs_model=True, caches=True,
    ),
    Case("eagle", weights=toy_heads.eagle, runs_model=True, caches=True),
    Case("eagle", weights=toy_heads.eagle, settings=TREE, label="eagle tree", runs_model=True, caches=True),
    Case("mtp", weights=toy_heads.mtp, runs_model=True, caches=True),
    Case("medusa", weights=toy_heads.medusa, runs_model=True),
    Case("medusa", weights=toy_heads.medusa, settings={"nodes": 5}, label="medusa tree", runs_model=True),
    Case("ngram", settings={"max_n": 3}),
    Case("suffix"),
    Case("dial", settings={"alpha": 0.6}, runs_model=True, caches=True),
    Case("dial", weights=toy_draft, settings={"c": 0.1}, label="dial to a draft", runs_model=True, caches=True),
    Case("oracle", runs_model=True, caches=True),
    Case("random"),
)
