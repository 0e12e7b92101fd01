"""The contracts the decode loop holds together: what a proposer gives and a verifier decides.

A proposer guesses and knows nothing of verification; a verifier gets tensors and gives tensors, without a branch on a
device value. Both make every random decision through a `Chooser` (see `engine.rng`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from specworkbench.engine.kvcache import KVCache
from specworkbench.engine.loading import EMBEDDED, load_model
from specworkbench.engine.proposal import Decision, Proposal, Verdict, summarised
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import Sampler
from specworkbench.engine.settings import Described


@dataclass(frozen=True)
class Needs:
    """What a proposer wants to find in the context of the next round. The engine computes only what is asked for.

    hidden_layers: indices into transformers' hidden states (0 the embeddings, -1 the last, after the norm);
    rows: the target's processed rows of the last round; cache: the target's own KV cache.

    >>> Needs(hidden_layers=(-1,), cache=True)
    Needs(hidden_layers=(-1,), rows=False, cache=True)
    """

    hidden_layers: tuple[int, ...] = ()
    rows: bool = False
    cache: bool = False


@dataclass
class Context:
    """What is known when a round begins.

    tokens: prompt and output so far (host); prompt_length; seen: (vocab,) bools of the tokens that occur, or None when
    no repetition penalty is set; sampler: how the draft's logits become q; target_sampler: how the target's become p;
    hidden: {layer: (m, width)} for the m tokens that entered the target's cache since the last proposal (of a tree,
    those of the path that was kept); rows: (n + 1, vocab) the target's rows of the last round, the first after the
    context, the others after each node; cache: the target's cache, holding every token but the last; these three
    only when needed. longest: tokens the sequence may reach, guesses of its last round included (0: not known).
    stop_below: a guess that the draft is less sure of than that is the last of its round (0: none), see `draw_chain`.

    >>> import torch
    >>> from specworkbench.engine import Sampler, SamplingSettings
    >>> context = Context([5, 7, 9], 3, Sampler(SamplingSettings()), torch.device("cpu"), vocab_size=16)
    >>> context.tokens[-1], context.round
    (9, 0)
    """

    tokens: list[int]
    prompt_length: int
    sampler: Sampler
    device: torch.device
    vocab_size: int
    sequence: int = 0
    round: int = 0
    seen: torch.Tensor | None = None
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)
    rows: torch.Tensor | None = None
    cache: KVCache | None = None
    target_sampler: Sampler | None = None
    longest: int = 0
    stop_below: float = 0.0

    def ids(self, start: int = 0, stop: int | None = None) -> torch.Tensor:
        """(m,) int64 tokens on the device."""
        return torch.tensor(self.tokens[start:stop], dtype=torch.int64, device=self.device)


class Proposer(Described):
    """Base of all proposers. `propose` may return fewer tokens than asked for, or none, never more.

    What a proposer is, for whoever chooses one: weights, what `draft` names, in words (empty: it takes none);
    weights_optional, whether it does without as well; default_weights, what it uses with the embedded target when none
    are named; drafts_trees, whether its proposals may be trees (one that drafts either, by its settings, sets it on the
    instance); instrument, that it is for checking formulas, not for speed: a report leaves it out unless it is named.

    >>> from specworkbench.engine import PROPOSERS
    >>> issubclass(PROPOSERS["ngram"], Proposer), PROPOSERS["ngram"].weights
    (True, '')
    """

    role = "proposer"
    weights: ClassVar[str] = ""
    weights_optional: ClassVar[bool] = False
    default_weights: ClassVar[str | None] = None
    needs_target: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    drafts_trees: bool = False
    instrument: ClassVar[bool] = False
    tells_doubt: bool = False
    needs: Needs = Needs()

    @classmethod
    def load(cls, weights: str, target: Any, revision: str | None = None) -> Any:
        """The weights of that name, of the target's dtype, device and options: a language model, unless overridden.

        It is compiled if the target is, where that knows it. Raises `InputError` where there is none.
        """
        options = target.options
        draft = load_model(weights, revision=revision, dtype=target.dtype, device=target.device, **options)
        if target.engine == "compiled" and draft.can_compile:
            draft.compile()
        return draft

    @classmethod
    def build(cls, target: Any, draft: Any, **settings: Any) -> Proposer:
        """The proposer for this target (may be None unless `needs_target`) from loaded weights, if it takes any."""
        return cls(draft, **settings) if cls.weights else cls(**settings)

    @classmethod
    def default_for(cls, target: str) -> str | None:
        """The name of the weights it uses for the target of that name when none are named; None: it has to be told."""
        return cls.default_weights if target == EMBEDDED else None

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        """Guess tokens that continue the context: a chain of up to gamma, or a tree of up to that depth."""
        raise NotImplementedError

    def most_nodes(self, gamma: int) -> int:
        """How many tokens `propose` may give when asked for depth gamma; a chain's are gamma."""
        return gamma

    def observe(self, decision: Decision) -> None:
        """Learn what became of the last proposal, and take back what was rejected. The context has grown by then.

        `decision.nodes` are the nodes that were kept; `decision.emitted - 1` of them (or fewer, at the end of a
        sequence) are in the target's cache now, and their features in the context.
        """

    def reset(self) -> None:
        """Forget everything of the last sequence."""

    def prepare(self, context: Context) -> None:
        """After `reset`: make ready what takes long but once, such as compiling; timed with nothing. Optional."""

    def prefill(self, context: Context) -> None:
        """Read a new prompt outside any round, timed apart. Optional: `propose` must cope without."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the proposer's own cache."""
        return 0

    def describe(self) -> dict[str, Any]:
        """The proposer's entry in a trace's manifest."""
        settings = {name: getattr(self, name) for name in self.settings()}
        return {"name": self.name, "deterministic": self.deterministic, "settings": settings, "draft": None}


class Verifier(Described):
    """Base of all rules.

    lossless: whether it keeps the target's distribution, of the class with the settings it has by default, of a rule
    with its own; greedy_only: whether only at temperature 0; judges_trees: whether proposals may be trees; summary and
    paper, in words, for whoever chooses one.

    >>> from specworkbench.engine import VERIFIERS
    >>> [name for name, rule in VERIFIERS.items() if not rule.lossless]
    ['lenient', 'ensemble', 'typical']
    """

    role = "rule"
    lossless: bool
    greedy_only: ClassVar[bool] = False
    judges_trees: ClassVar[bool] = False

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """target_probs: (n + 1, vocab), row 0 the target's distribution after the context, row i + 1 after node i."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """The rule's entry in a trace's manifest."""
        settings = {name: getattr(self, name) for name in self.settings()}
        return {"name": self.name, "lossless": self.lossless, "settings": settings}


__all__ = ["Context", "Decision", "Needs", "Proposal", "Proposer", "Verdict", "Verifier", "summarised"]
