"""Medusa: several heads on the target's last hidden state guess the next tokens at once."""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Context, Needs, Proposal, Proposer
from specworkbench.engine.heads.files import describe_head, load_head
from specworkbench.engine.heads.medusa import MedusaHeads
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser


class MedusaProposer(Proposer):
    """Each head draws its guess from its own row, blind to what the others guess.

    All rows are given by the context alone, so they are what the guesses were really drawn from and the token rule
    keeps the target's distribution. No more guesses than heads.
    """

    name = "medusa"
    summary = "independent heads on the target's last hidden state, one a guess"
    paper = "Cai et al. 2024"
    weights = "Medusa heads of this target"
    default_weights = "embedded/medusa"
    needs_target = True

    def __init__(self, heads: MedusaHeads):
        self.heads = heads
        self.needs = Needs(hidden_layers=MedusaHeads.layers)

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> MedusaHeads:
        return load_head(weights, target, "medusa", revision)

    @classmethod
    def build(cls, target: LanguageModel, draft: MedusaHeads, **settings: Any) -> MedusaProposer:
        return cls(draft, **settings)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        hidden = context.hidden.get(-1)
        if hidden is None or not hidden.shape[0]:
            return nothing(context)
        last, seen, tokens, rows = hidden[-1:].to(self.heads.heads[0].weight.dtype), context.seen, [], []
        for head in range(min(gamma, self.heads.shape.heads)):
            probs = context.sampler(self.heads.logits(last, head, context.vocab_size), seen)
            rows.append(probs)
            tokens.append(choose.draw(probs))
        return Proposal(torch.cat(tokens), torch.cat(rows), forwards=1, positions=1)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": describe_head(self.heads)}
