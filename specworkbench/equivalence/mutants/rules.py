"""Faults of the rules of chains: what is accepted, how much of it counts, from which row the next token is drawn."""

from __future__ import annotations

from functools import partial

import torch

from specworkbench.engine.verifiers.block import BlockVerifier, kept_probs
from specworkbench.engine.verifiers.chain import ChainVerifier, one_hot_best, ratios, residual_row
from specworkbench.engine.verifiers.lossy import LenientVerifier, TypicalVerifier
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.mutants.mutant import ACCEPTED_RIGHTLY, AT_BONUS, NO_EDGE, TOO_SMALL, of_rule, only
from specworkbench.equivalence.toys import table_setup

# ---------------------------------------------------------------- what is accepted


class AcceptAlways(TokenVerifier):
    """Every guess is accepted."""

    def accept_probs(self, proposal, p, q):
        return torch.ones_like(super().accept_probs(proposal, p, q))


class FirstUnverified(TokenVerifier):
    """The first guess of a round is accepted unseen."""

    def accept_probs(self, proposal, p, q):
        return super().accept_probs(proposal, p, q).index_fill(0, torch.arange(min(1, len(q))), 1.0)


class InvertedRatio(TokenVerifier):
    """A guess is accepted with min(1, q/p)."""

    def accept_probs(self, proposal, p, q):
        return (1.0 / ratios(proposal, p, q)).clamp(max=1.0)


class AcceptWithTarget(TokenVerifier):
    """A guess x is accepted with p(x), as if it had been certain, and corrected from max(p - q, 0)."""

    def accept_probs(self, proposal, p, q):
        return p[:-1].gather(-1, proposal.tokens.unsqueeze(-1)).squeeze(-1)


class FlooredDraft(TokenVerifier):
    """A q below 0.05 enters the ratio as 0.05."""

    def accept_probs(self, proposal, p, q):
        return super().accept_probs(proposal, p, q.clamp(min=0.05))


class RoundedDraft(TokenVerifier):
    """q enters the ratio rounded to bfloat16."""

    def accept_probs(self, proposal, p, q):
        return super().accept_probs(proposal, p, q.bfloat16().to(q.dtype))


class LenientClaimed(LenientVerifier):
    """The lenient rule, with a ratio of 1.25 p/q, taken for the token rule."""

    name, settings = "token", TokenVerifier.settings

    def __init__(self):
        super().__init__()
        self.lossless = True


class TypicalClaimed(TypicalVerifier):
    """Typical acceptance taken for the token rule."""

    name, lossless, settings = "token", True, TokenVerifier.settings


class ArgmaxVerified(TokenVerifier):
    """Guesses are verified as at temperature 0, and only the bonus token is drawn."""

    def accept_probs(self, proposal, p, q):
        return (proposal.tokens == p[:-1].argmax(-1)).to(p.dtype)

    def next_row(self, proposal, p, q, accepted):
        return p[-1:] if accepted == len(q) else one_hot_best(p, accepted)


class CountAsSum(TokenVerifier):
    """As many guesses are kept as were accepted anywhere, not up to the first rejection."""

    def length(self, flags):
        return flags.long().sum()


# ---------------------------------------------------------------- the corrected token


class ResampleFromTarget(TokenVerifier):
    """A rejected guess is replaced by a token drawn from p, not from the residual."""

    def next_row(self, proposal, p, q, accepted):
        return p[accepted : accepted + 1] if accepted == len(q) else self.corrected(p, q, accepted)

    def corrected(self, p, q, at):
        """(1, vocab) weights of the token that replaces the guess rejected at row `at`."""
        return p[at : at + 1]


class RedrawnFromDraft(ResampleFromTarget):
    """A rejected guess is replaced by another token drawn from q."""

    def corrected(self, p, q, at):
        return q[at : at + 1]


class SoftmaxResidual(ResampleFromTarget):
    """The residual max(p - q, 0) goes through a softmax instead of being divided by its sum."""

    def corrected(self, p, q, at):
        return (p[at] - q[at]).clamp(min=0.0).softmax(-1).unsqueeze(0)


class AbsoluteResidual(ResampleFromTarget):
    """The residual is |p - q|."""

    def corrected(self, p, q, at):
        return (p[at] - q[at]).abs().unsqueeze(0)


class ReversedResidual(ResampleFromTarget):
    """The residual is max(q - p, 0)."""

    def corrected(self, p, q, at):
        return (q[at] - p[at]).clamp(min=0.0).unsqueeze(0)


class UnnormalisedResidual(ResampleFromTarget):
    """The residual is drawn from as if it summed to 1: its last token gets what is missing."""

    def corrected(self, p, q, at):
        residual = (p[at] - q[at]).clamp(min=0.0)
        residual[-1] += 1.0 - residual.sum()
        return residual.unsqueeze(0)


class ResidualFromNextRow(ResampleFromTarget):
    """The residual takes q from the target's row one position later."""

    def corrected(self, p, q, at):
        return (p[at + 1] - q[at]).clamp(min=0.0).unsqueeze(0)


# ---------------------------------------------------------------- the bonus token


class BonusFromWrongRow(TokenVerifier):
    """The bonus token is drawn from the row that judged the last guess."""

    def next_row(self, proposal, p, q, accepted):
        if 0 < accepted == len(q):
            return p[accepted - 1].unsqueeze(0)
        return super().next_row(proposal, p, q, accepted)


# ---------------------------------------------------------------- block verification


class BlockNotClamped(BlockVerifier):
    """In block verification b_i is the product of the ratios, not clamped to 1 on the way."""

    def accept_probs(self, proposal, p, q):
        kept = ratios(proposal, p, q).cumprod(0)
        left = (kept[:-1, None] * p[1:-1] - q[1:]).clamp(min=0.0).sum(-1)
        return torch.cat([left / (left + 1.0 - kept[:-1]), kept[-1:]]).nan_to_num(0.0).clamp(0.0, 1.0)

    def next_row(self, proposal, p, q, accepted):
        kept = torch.cat([p.new_ones(1), ratios(proposal, p, q).cumprod(0)])
        return residual_row(p * kept.unsqueeze(-1), q, accepted)


class BlockResidualUnscaled(BlockVerifier):
    """In block verification the residual is max(p - q, 0), without b."""

    def next_row(self, proposal, p, q, accepted):
        return ChainVerifier.next_row(self, proposal, p, q, accepted)


class BlockWithoutResidualMass(BlockVerifier):
    """In block verification every position is compared with b_i, not with r_i / (r_i + 1 - b_i)."""

    def accept_probs(self, proposal, p, q):
        return kept_probs(proposal, p, q)


EXAMINED, REJECTED = "at the first examined position", "at the first rejected position"
accepting = partial(of_rule, shows=EXAMINED, contracts=("accept_prob",), blind=NO_EDGE)
correcting = partial(
    of_rule, shows=REJECTED, contracts=("probabilities",), full_contracts=("draws",), blind=NO_EDGE | ACCEPTED_RIGHTLY,
)  # fmt: skip
WHOLE_BLOCK = {"acceptance": "a position is not judged by itself, so that nothing says how often it is accepted"}
of_blocks = partial(of_rule, bench=partial(table_setup, rule="block", noise=2.0), blind=NO_EDGE | WHOLE_BLOCK)

RULES = (
    accepting("accept_always", AcceptAlways),
    accepting("first_unverified", FirstUnverified),
    accepting("inverted_ratio", InvertedRatio),
    accepting("accept_with_target", AcceptWithTarget),
    accepting(
        "floored_draft", FlooredDraft, bench=partial(table_setup, vocab=6, sharpness=2.0, noise=0.6),
        blind=NO_EDGE | only(TOO_SMALL, "e-process", "fresh e-process", "overweight"), named="e-process",
    ),
    accepting("rounded_draft", RoundedDraft, blind=NO_EDGE | TOO_SMALL),
    accepting("lenient_claimed", LenientClaimed),
    accepting("typical_claimed", TypicalClaimed, full_contracts=("draws",)),
    accepting(
        "argmax_verified", ArgmaxVerified, contracts=("accept_prob", "probabilities"), full_contracts=("draws",),
    ),
    of_rule(
        "count_as_sum", CountAsSum, "where an accepted guess follows a rejected one", contracts=("decision",),
        blind=NO_EDGE,
    ),
    correcting("resample_from_target", ResampleFromTarget),
    correcting("redrawn_from_draft", RedrawnFromDraft),
    correcting("softmax_residual", SoftmaxResidual),
    correcting("absolute_residual", AbsoluteResidual),
    correcting("reversed_residual", ReversedResidual),
    correcting("unnormalised_residual", UnnormalisedResidual),
    correcting("residual_from_next_row", ResidualFromNextRow),
    of_rule(
        "bonus_from_wrong_row", BonusFromWrongRow, "after a fully accepted proposal", first_token_exact=True,
        full_contracts=("draws",), blind=NO_EDGE | AT_BONUS,
    ),
    of_blocks(
        "block_not_clamped", BlockNotClamped, "at the second guess of a round", first_token_exact=True,
        contracts=("accept_prob",),
    ),
    of_blocks(
        "block_residual_unscaled", BlockResidualUnscaled, "where a guess after the first is rejected",
        first_token_exact=True, full_contracts=("draws",), blind=NO_EDGE | TOO_SMALL | WHOLE_BLOCK,
    ),
    of_blocks("block_without_residual_mass", BlockWithoutResidualMass, EXAMINED, full_contracts=("accept_prob",)),
)  # fmt: skip
