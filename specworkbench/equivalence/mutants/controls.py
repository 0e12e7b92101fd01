"""Null controls: right implementations that look odd, which no test of the output may reject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from specworkbench.engine.contracts import Context, Proposal, Verdict, Verifier
from specworkbench.engine.proposers import DraftModelProposer
from specworkbench.engine.proposers.none import NoProposer
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers.block import BlockVerifier
from specworkbench.engine.verifiers.equality import EqualityVerifier
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.mutants.mutant import Bench, Mutant, Part, said
from specworkbench.equivalence.mutants.proposals import DropsUnsure
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup


class LiteralEquality(Verifier):
    """The target draws its own token at every position, and a guess is accepted iff it equals it."""

    name = "equality"
    lossless = True

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        own = choose.draw(target_probs)
        flags = own[:-1] == proposal.tokens
        accepted = flags.long().cumprod(0).sum()
        accept_probs = target_probs[torch.arange(proposal.size), proposal.tokens]
        return Verdict(accepted, own[accepted], target_probs[accepted], accept_probs, flags)


class NoBonus(TokenVerifier):
    """When all guesses are accepted, the last of them is the round's last token.

    It takes its own name: a guess that is counted as drawn is one less accepted than the token rule would have.
    """

    name = "no_bonus"

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        verdict = super().verify(proposal, target_probs, choose)
        if not 0 < verdict.accepted == proposal.size:
            return verdict
        return replace(verdict, accepted=verdict.accepted - 1, next_token=proposal.tokens[-1])


class BrokenContext(DraftModelProposer):
    """The draft reads the context backwards."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return super().propose(replace(context, tokens=context.tokens[::-1]), gamma, choose)


def draft_read_wrongly(setup: Setup) -> Setup:
    """The same draft, its context turned round."""
    return setup.but(proposer=BrokenContext(setup.proposer.draft))


def unsure_dropped_under_equality(setup: Setup) -> Setup:
    """Guesses with a low q are dropped, and equality decides on the others, so that q plays no part."""
    return setup.but(proposer=DropsUnsure(setup.proposer.draft), verifier=EqualityVerifier())


small = partial(table_setup, vocab=4)


def control(name: str, meaning: str, part: Part, apply: Callable[[Setup], Setup], bench: Bench = small) -> Mutant:
    """A `Mutant` that is right."""
    return Mutant(name, meaning, part, "nowhere", apply, first_token_exact=True, null=True, bench=bench)


NULL_CONTROLS = (
    control(
        "equality", "a guess is accepted iff it equals the target's own draw, which is made in two steps", "rule",
        lambda setup: setup.but(verifier=EqualityVerifier()),
    ),
    control(
        "literal_equality", said(LiteralEquality), "rule", lambda setup: setup.but(verifier=LiteralEquality()),
        partial(table_setup, vocab=3),
    ),
    control("no_bonus", said(NoBonus), "rule", lambda setup: setup.but(verifier=NoBonus())),
    control("block", "block verification", "rule", lambda setup: setup.but(verifier=BlockVerifier())),
    control("broken_context", said(BrokenContext), "proposal", draft_read_wrongly),
    control(
        "hot_draft", "the draft samples at temperature 2, and that q is declared", "proposal", lambda setup: setup,
        partial(table_setup, vocab=4, draft_sampling=SamplingSettings(temperature=2.0)),
    ),
    control(
        "unsure_dropped_under_equality", said(unsure_dropped_under_equality), "proposal", unsure_dropped_under_equality,
    ),
    control("plain", "nothing is proposed", "proposal", lambda setup: setup.but(proposer=NoProposer())),
)  # fmt: skip
