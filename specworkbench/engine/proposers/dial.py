"""Instruments to check formulas with: proposers whose acceptance is set (dial), certain (oracle), or chance (random).

They are no way to decode faster. `dial` and `oracle` run the target itself to know p before they guess, so the time
they take says nothing: their cost is a setting too, and the manifest tells (`reads_target_ahead`, `cost_set`).
"""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal, Proposer
from specworkbench.engine.loading import check_same_vocabulary
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError

REFERENCES = ("uniform", "draft")


def dialled(target_probs: torch.Tensor, reference: torch.Tensor, alpha: float) -> torch.Tensor:
    """q = (1 - w) p + w r, with w such that sum_x min(p(x), q(x)) = alpha in every row.

    target_probs: (rows, vocab) p; reference: (rows, vocab) r. As p - q = w (p - r), the overlap is 1 - w TV(p, r)
    (Leviathan et al. 2023, Theorem 3.5: 1 - TV(p, q)), so w = (1 - alpha) / TV(p, r). Where r is too near to p for
    that, r is all on p's least probable token (the lowest id among equals), whose TV is the greatest there is,
    1 - min(p). Where that is too near as well (alpha < min(p)), q is that token alone: no q overlaps less than min(p).
    """
    least = target_probs.argmin(-1, keepdim=True)
    farthest = torch.zeros_like(target_probs).scatter_(-1, least, 1.0)
    distance = (target_probs - reference).abs().sum(-1, keepdim=True) / 2
    near = distance < 1 - alpha
    distance = torch.where(near, 1 - target_probs.gather(-1, least), distance)
    weight = ((1 - alpha) / distance.clamp(min=torch.finfo(distance.dtype).tiny)).clamp(max=1.0)
    return (1 - weight) * target_probs + weight * torch.where(near, farthest, reference)


class _Reader:
    """A model read token by token, ahead of the round, over a cache of its own. The last guess is never forwarded."""

    def __init__(self, model: LanguageModel):
        self.model = model
        self.cache = model.new_cache()

    def prefill(self, context: Context) -> None:
        if 1 < len(context.tokens) <= self.model.max_context:
            self.model.forward(context.ids(0, -1), self.cache, rows=1)

    def logits(self, context: Context, guesses: list[torch.Tensor]) -> torch.Tensor:
        """(1, vocab) after the context and the guesses, all but the last of which have been read."""
        inputs = guesses[-1] if guesses else context.ids(self.cache.length)
        return self.model.forward(inputs, self.cache, rows=1).logits

    def keep(self, tokens: int) -> None:
        """Take back whatever was read beyond so many tokens."""
        self.cache.rollback(max(0, self.cache.length - tokens))


class DialProposer(Proposer):
    """Guesses that the target accepts with probability alpha, at every position: q is p turned towards another row.

    p is the target's own processed row (its sampling settings, its penalty along the guesses), read ahead token by
    token; q is made of it by `dialled`. alpha: the overlap of p and q, that is the acceptance probability under the
    token rule, and at temperature 0 under the greedy rule (there the overlap is q of the target's choice). It holds up
    to the rounding between two forwards of the target, over one token and over a block.

    reference: the row r that q is turned towards: "uniform" over the whole vocabulary, be it in reach of the target's
    top-k or not (the more r has where p has nothing, the smaller an alpha it reaches), or "draft", the row of a draft
    model under the draft's sampling. A draft that is given is the reference. Past the end of the draft's context it
    proposes nothing and says so.

    c: what a proposed token is to cost, in plain target steps. Its measured time is that of the target, so that
    `analysis` takes c from here and gives no measured speedup.
    Raises `InputError` for settings out of range.
    """

    name = "dial"
    summary = "an instrument: reads the target ahead and is accepted with the probability that is set"
    paper = "Leviathan et al. 2023, Theorem 3.5"
    weights = "a language model of the target's vocabulary, towards whose rows to turn"
    weights_optional = True
    needs_target = True
    instrument = True

    def __init__(
        self, target: LanguageModel, draft: LanguageModel | None, alpha: float = 0.8, reference: str = "uniform",
        c: float = 0.0,
    ):  # fmt: skip
        if not 0.0 <= alpha <= 1.0:
            raise InputError(f"alpha of the proposer {self.name} is {alpha!r}; a probability is between 0 and 1")
        if not 0.0 <= c < float("inf"):
            raise InputError(f"c of the proposer {self.name} is {c!r}; a cost is a finite number of at least 0")
        if reference not in REFERENCES:
            raise InputError(
                f"there is no reference {reference!r} for the proposer {self.name}; choose one of "
                f"{', '.join(REFERENCES)} (a draft that is named or given is the reference)"
            )
        if reference == "draft" and draft is None:
            raise InputError(f"the reference of the proposer {self.name} is a draft, and none is given; name one")
        self.target, self.draft, self.alpha, self.c = target, draft, alpha, c
        self.reference = "uniform" if draft is None else "draft"
        self.reset()

    @classmethod
    def build(cls, target: LanguageModel, draft: LanguageModel | None, **settings: Any) -> DialProposer:
        if draft is not None:
            check_same_vocabulary(target, draft)
        return cls(target, draft, **settings)

    def reset(self) -> None:
        self._readers = [_Reader(model) for model in (self.target, self.draft) if model is not None]
        self._context_length = 0

    def prefill(self, context: Context) -> None:
        """Forward the prompt but its last token, as the target does in the loop."""
        for reader in self._readers:
            reader.prefill(context)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        readers, length = self._readers, len(context.tokens)
        n = min(gamma, *(reader.model.max_context - length + 1 for reader in readers))
        shortened = "draft_context" if n < gamma else ""
        if n <= 0:
            return nothing(context, shortened)
        self._context_length = length
        positions = sum(length - reader.cache.length + n - 1 for reader in readers)

        seen, guesses, rows = context.seen, [], []
        for before in range(n):
            p, *others = (reader.logits(context, guesses) for reader in readers)
            p = context.target_sampler(p, seen, ahead=before)
            r = context.sampler(others[0], seen, ahead=before) if others else torch.full_like(p, 1 / p.shape[-1])
            rows.append(dialled(p, r, self.alpha))
            guesses.append(choose.draw(rows[-1]))
            if seen is not None:
                seen = seen.index_fill(0, guesses[-1], True)
        tokens, probs = torch.cat(guesses), torch.cat(rows)
        return Proposal(tokens, probs, forwards=n * len(readers), positions=positions, shortened=shortened)

    def observe(self, decision: Decision) -> None:
        """Keep what reached the context, but its last token."""
        if decision.proposed:
            for reader in self._readers:
                reader.keep(self._context_length + decision.emitted - 1)

    @property
    def cache_bytes(self) -> int:
        return sum(reader.cache.nbytes for reader in self._readers)

    def describe(self) -> dict[str, Any]:
        draft = None if self.draft is None else self.draft.describe()
        return super().describe() | {"draft": draft, "reads_target_ahead": True, "cost_set": self.c}


class OracleProposer(DialProposer):
    """Draws its guesses from the target's own rows, q = p, so that every one of them is accepted: `dial` at alpha 1."""

    name = "oracle"
    summary = "an instrument: reads the target ahead and guesses as it does, so that every guess is accepted"
    weights = ""
    weights_optional = False

    def __init__(self, target: LanguageModel, c: float = 0.0):
        super().__init__(target, None, alpha=1.0, c=c)

    @classmethod
    def build(cls, target: LanguageModel, draft: None, **settings: Any) -> OracleProposer:
        return cls(target, **settings)


class RandomProposer(Proposer):
    """Guesses uniformly from the whole vocabulary: acceptance by chance, the other end of the scale.

    q is the uniform row itself; no sampling setting of the draft is applied to it, as there are no logits to apply it
    to. A token has the overlap sum_x min(p(x), 1 / vocab). It runs no model, and its measured time is its real cost.
    """

    name = "random"
    summary = "an instrument: guesses uniformly from the vocabulary"

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        vocab, dtype = context.vocab_size, context.sampler.dtype
        rows = torch.full((gamma, vocab), 1 / vocab, dtype=dtype, device=context.device)
        return Proposal(choose.draw(rows), rows)
