"""Wrong implementations that a check of losslessness must reject, and right ones that look odd, which it must not.

Each is a few lines that exchange one part of a correct `Setup`. A faulty rule calls itself by the name of the rule it
is a fault of: nobody announces a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal, Verdict, Verifier
from specworkbench.engine.loop import Sequence
from specworkbench.engine.proposers import DraftModelProposer
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import Sampler, SamplingSettings, filtered
from specworkbench.engine.stopping import Stopping
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.choosers import Wiring
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup


@dataclass(frozen=True)
class Mutant:
    """One implementation. kind: what must reject it: the exact `law`, a `contract` on traces, or nothing (`null`).

    meaning: what it does, in a sentence; shows: where its error first shows; first_token_exact: whether a test of
    single steps, which sees the first token only, must miss it; contracts: the trace contracts that must fail on a
    trace of it; apply: exchanges the part; bench: seed to a correct setup of `TableModel`s on which it shows.
    """

    name: str
    meaning: str
    kind: Literal["law", "contract", "null"]
    shows: str
    apply: Callable[[Setup], Setup]
    first_token_exact: bool = False
    contracts: tuple[str, ...] = ()
    bench: Callable[[int], Setup] = table_setup


# ---------------------------------------------------------------- the rule


class ResampleFromTarget(TokenVerifier):
    def next_row(self, proposal, p, q, accepted):
        return p[accepted].unsqueeze(0)


class BonusFromDraft(TokenVerifier):
    """Needs the draft's row at the bonus position: see `DraftWithBonusRow`."""

    def __init__(self, proposer: DraftWithBonusRow):
        self.proposer = proposer

    def next_row(self, proposal, p, q, accepted):
        if 0 < accepted == len(q):
            return self.proposer.bonus_row.unsqueeze(0)
        return super().next_row(proposal, p, q, accepted)


class BonusFromWrongRow(TokenVerifier):
    def next_row(self, proposal, p, q, accepted):
        if 0 < accepted == len(q):
            return p[accepted - 1].unsqueeze(0)
        return super().next_row(proposal, p, q, accepted)


class CountAsSum(TokenVerifier):
    def length(self, flags):
        return flags.long().sum()


class EqualityRule(Verifier):
    """Accept a guess iff it equals the token the target itself draws there."""

    name = "equality"
    lossless = True

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        own = choose.draw(target_probs)
        flags = own[:-1] == proposal.tokens
        accepted = flags.long().cumprod(0).sum()
        accept_probs = target_probs[torch.arange(proposal.size), proposal.tokens]
        return Verdict(accepted, own[accepted], target_probs[accepted], accept_probs, flags)


class NoBonus(TokenVerifier):
    """When all guesses are accepted, the last of them is the round's last token."""

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        verdict = super().verify(proposal, target_probs, choose)
        if not 0 < verdict.accepted == proposal.size:
            return verdict
        return replace(verdict, accepted=verdict.accepted - 1, next_token=proposal.tokens[-1])


# ---------------------------------------------------------------- the proposer


class DraftWithBonusRow(DraftModelProposer):
    """Keeps the draft's row (vocab,) after all its guesses."""

    bonus_row: torch.Tensor

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        logits = self.draft.forward(proposal.tokens[-1:], self._cache, rows=1).logits
        seen = None if context.seen is None else context.seen.index_fill(0, proposal.tokens, True)
        self.bonus_row = context.sampler(logits, seen).squeeze(0)
        return proposal


class BrokenContext(DraftModelProposer):
    """Reads the context backwards."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return super().propose(replace(context, tokens=context.tokens[::-1]), gamma, choose)


class RawRows(DraftModelProposer):
    """Draws from the top-k rows and declares the rows before top-k."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        settings = context.sampler.settings
        raw = Sampler(replace(settings, top_k=0), context.device)
        return super().propose(replace(context, sampler=raw), gamma, TopKDraws(choose, settings))


@dataclass
class TopKDraws:
    """A chooser that cuts rows to their top k before it draws."""

    choose: Chooser
    settings: SamplingSettings

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        return self.choose.draw(filtered(probs.log(), self.settings).exp(), at)


# ---------------------------------------------------------------- the loop


class RejectedTokenStays(Sequence):
    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        rejected = decision.accepted < proposal.size
        self.cache.rollback(proposal.size - (decision.emitted - 1) - rejected)
        self.proposer.observe(decision)


class LastAcceptedLost(Sequence):
    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        self.cache.rollback(proposal.size - (decision.emitted - 1) + (decision.accepted > 0))
        self.proposer.observe(decision)


class FrozenPenalties(Sequence):
    """Every row of a block is penalised for the tokens before the block only."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.sampler = _BlindToTheBlock(self.settings.sampling, self.target.device)


class _BlindToTheBlock(Sampler):
    def __call__(self, logits, seen=None, block=None):
        return torch.cat([super(_BlindToTheBlock, self).__call__(row, seen) for row in logits.split(1)])


class EosInsideIgnored(Sequence):
    """Only the last token of a round is compared with EOS."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.stopping = _LastTokenOnly(self.target, self.settings.stop, tuple(self.stopping.eos_ids))


class _LastTokenOnly(Stopping):
    def cut(self, block: list[int], output: list[int]) -> tuple[int, str | None]:
        return len(block), "eos" if block[-1] in self.eos_ids else None


# ---------------------------------------------------------------- the uniforms


def one_uniform_for_all(stream: str, position: int) -> tuple[str, int]:
    return (stream, 0) if stream == "accept" else (stream, position)


def uniform_reused_for_residual(stream: str, position: int) -> tuple[str, int]:
    return ("accept" if stream == "residual" else stream), position


# ---------------------------------------------------------------- the registry


def rule(verifier: type) -> Callable[[Setup], Setup]:
    return lambda setup: setup.but(verifier=verifier())


def loop(sequence: type[Sequence]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.but(sequence=sequence)


def draft(proposer: type[DraftModelProposer]) -> Callable[[Setup], Setup]:
    """Exchange the proposer, keeping its model."""
    return lambda setup: setup.but(proposer=proposer(setup.proposer.draft))


def uniform(wiring: Wiring) -> Callable[[Setup], Setup]:
    return lambda setup: setup.but(wiring=wiring)


def bonus_from_draft(setup: Setup) -> Setup:
    proposer = DraftWithBonusRow(setup.proposer.draft)
    return setup.but(proposer=proposer, verifier=BonusFromDraft(proposer))


top_k_draft = partial(table_setup, draft_sampling=SamplingSettings(top_k=4))
penalised = partial(table_setup, sampling=SamplingSettings(repetition_penalty=2.5))
with_eos = partial(table_setup, eos=(1,))
small = partial(table_setup, vocab=4)
hot_draft = partial(small, draft_sampling=SamplingSettings(temperature=2.0))

MUTANTS = (
    Mutant(
        "resample_from_target", "on a rejection the token is drawn from p, not from the residual", "law",
        "at the first rejected position", rule(ResampleFromTarget), contracts=("probabilities",),
    ),
    Mutant(
        "bonus_from_draft", "the bonus token is drawn from q", "law",
        "after a fully accepted proposal", bonus_from_draft, first_token_exact=True,
    ),
    Mutant(
        "bonus_from_wrong_row", "the bonus token is drawn from the row that judged the last guess", "law",
        "after a fully accepted proposal", rule(BonusFromWrongRow), first_token_exact=True,
    ),
    Mutant(
        "count_as_sum", "as many guesses are kept as have been accepted anywhere, not up to the first rejection", "law",
        "where an accepted guess follows a rejected one", rule(CountAsSum), contracts=("decision",),
    ),
    Mutant(
        "rejected_token_stays", "the rejected token is left in the target's KV cache", "law",
        "in the round after a rejection", loop(RejectedTokenStays), first_token_exact=True, contracts=("context",),
    ),
    Mutant(
        "last_accepted_lost", "the last accepted token is dropped from the target's KV cache", "law",
        "in the round after an acceptance", loop(LastAcceptedLost), first_token_exact=True, contracts=("context",),
    ),
    Mutant(
        "raw_q_after_top_k", "guesses are drawn from the draft's top k, q in the ratio is the row before that", "law",
        "at the first examined position", draft(RawRows), bench=top_k_draft,
    ),
    Mutant(
        "penalties_frozen", "the repetition penalty does not see the tokens of the block", "law",
        "at the second position of a round", loop(FrozenPenalties), first_token_exact=True, bench=penalised,
    ),
    Mutant(
        "one_uniform_for_all", "all positions of a round are compared with one u", "contract",
        "at the second position of a round", uniform(one_uniform_for_all), first_token_exact=True,
        contracts=("uniforms",),
    ),
    Mutant(
        "uniform_reused", "the residual is drawn with the u that rejected the guess", "contract",
        "at the first rejected position", uniform(uniform_reused_for_residual), contracts=("uniforms",),
    ),
    Mutant(
        "eos_inside_ignored", "an EOS that is accepted inside a block does not end the sequence", "contract",
        "after the first EOS inside a block", loop(EosInsideIgnored), first_token_exact=True, contracts=("end",),
        bench=with_eos,
    ),
)  # fmt: skip

NULL_CONTROLS = (
    Mutant(
        "equality", "a guess is accepted iff it equals the target's own draw", "null",
        "nowhere", rule(EqualityRule), bench=partial(table_setup, vocab=3),
    ),
    Mutant(
        "no_bonus", "no bonus token after a fully accepted proposal", "null",
        "nowhere", rule(NoBonus), bench=small,
    ),
    Mutant(
        "broken_context", "the draft reads the context backwards", "null",
        "nowhere", draft(BrokenContext), bench=small,
    ),
    Mutant(
        "hot_draft", "the draft samples at temperature 2, and that q is declared", "null",
        "nowhere", lambda setup: setup, bench=hot_draft,
    ),
)  # fmt: skip
