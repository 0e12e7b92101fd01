"""Faults between a proposer and its q: guesses that were drawn from another row than the one that is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from specworkbench.engine.contracts import Context, Proposal
from specworkbench.engine.proposers import DraftModelProposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import Sampler, SamplingSettings, filtered
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.mutants.mutant import AT_BONUS, CONSISTENT, NO_EDGE, Mutant, of_proposal, said
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup


class DrawsFrom:
    """A chooser that changes a row before it draws from it. change: (rows, vocab) to (rows, vocab) weights."""

    def __init__(self, choose: Chooser, change: Callable[[torch.Tensor], torch.Tensor]):
        self.choose, self.change = choose, change

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        return self.choose.draw(self.change(probs), at)


class GreedySoft(DraftModelProposer):
    """Each guess is the draft's most probable token, and q is declared as if it had been drawn."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        best = lambda row: torch.zeros_like(row).scatter(-1, row.argmax(-1, keepdim=True), 1.0)  # noqa: E731
        return super().propose(context, gamma, DrawsFrom(choose, best))


class RawRows(DraftModelProposer):
    """Guesses are drawn from the draft's top k, and q in the ratio is the row before that."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        settings = context.sampler.settings
        raw = Sampler(replace(settings, top_k=0), context.device)
        top_k = lambda row: filtered(row.log(), settings).exp()  # noqa: E731
        return super().propose(replace(context, sampler=raw), gamma, DrawsFrom(choose, top_k))


class DropsUnsure(DraftModelProposer):
    """A drawn guess with q below 0.2 is dropped, with all that follow it."""

    least = 0.2

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        sure = proposal.probs.gather(-1, proposal.tokens.unsqueeze(-1)).squeeze(-1) >= self.least
        n = int(sure.long().cumprod(0).sum())
        if n:
            return replace(proposal, tokens=proposal.tokens[:n], probs=proposal.probs[:n])
        self._cache.rollback(proposal.size - 1)  # of a round without guesses nobody tells it what became of them
        return nothing(context)


class DraftWithBonusRow(DraftModelProposer):
    """Keeps the draft's row (vocab,) after all its guesses."""

    bonus_row: torch.Tensor

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        logits = self.draft.forward(proposal.tokens[-1:], self._cache, rows=1).logits
        seen = None if context.seen is None else context.seen.index_fill(0, proposal.tokens, True)
        self.bonus_row = context.sampler(logits, seen).squeeze(0)
        return proposal


class BonusFromDraft(TokenVerifier):
    """The bonus token is drawn from q."""

    def __init__(self, proposer: DraftWithBonusRow):
        self.proposer = proposer

    def next_row(self, proposal, p, q, accepted):
        if 0 < accepted == len(q):
            return self.proposer.bonus_row.unsqueeze(0)
        return super().next_row(proposal, p, q, accepted)


def bonus_from_draft(setup: Setup) -> Setup:
    """Exchange the rule, and the proposer for one that keeps the row which the rule needs."""
    proposer = DraftWithBonusRow(setup.proposer.draft)
    return setup.but(proposer=proposer, verifier=BonusFromDraft(proposer))


top_k_draft = partial(table_setup, draft_sampling=SamplingSettings(top_k=4))

PROPOSALS = (
    of_proposal(
        "greedy_draft_soft_q", GreedySoft, "at the first examined position", full_contracts=("draws",), blind=NO_EDGE,
    ),
    of_proposal(
        "raw_q_after_top_k", RawRows, "at the first examined position", full_contracts=("draws",), bench=top_k_draft,
        blind=NO_EDGE,
    ),
    of_proposal(
        "unsure_guess_dropped", DropsUnsure, "at the first examined position",
        blind=NO_EDGE | CONSISTENT,
    ),
    Mutant(
        "bonus_from_draft", said(BonusFromDraft), "rule", "after a fully accepted proposal", bonus_from_draft,
        first_token_exact=True, full_contracts=("draws",),
        blind=NO_EDGE | AT_BONUS | {"cells": "by rank, and nothing else is known there, q has almost the masses of p"},
    ),
)  # fmt: skip
