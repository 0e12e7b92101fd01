"""Faults of the decode loop: which rows the rule is given, what stays in the cache, where the output ends."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from specworkbench.engine.contracts import Decision, Proposal
from specworkbench.engine.loop import Sequence
from specworkbench.engine.sampling import MinimumLength, Sampler, SamplingSettings, filtered
from specworkbench.engine.stopping import Stopping
from specworkbench.equivalence.mutants.mutant import CONSISTENT, NO_EDGE, OF_GIVEN_ROWS, WRONG_ROWS, of_loop
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup

# ---------------------------------------------------------------- the rows


class RowsShifted(Sequence):
    """Every guess is judged by the target's row after it, not by the row before.

    Such a row depends on the guess, so that tests which go by the given rows see it.
    """

    def _target_rows(self, last: torch.Tensor, proposal: Proposal) -> torch.Tensor:
        rows = super()._target_rows(last, proposal)
        return torch.cat([rows[1:], rows[-1:]])


class OnBonusOnly(Sequence):
    """Some sampling settings are honoured at the bonus position only. ignored: what they are elsewhere."""

    ignored: dict[str, Any] = {}

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        of_last, settings = self.sampler, self.settings.sampling
        of_others = Sampler(replace(settings, **self.ignored), self.target.device, self.minimum)
        self.sampler = _Apart(settings, self.target.device)
        self.sampler.of_last, self.sampler.of_others = of_last, of_others


class _Apart(Sampler):
    def __call__(self, *given):
        return torch.cat([self.of_others(*given)[:-1], self.of_last(*given)[-1:]])


class TopKOnBonusOnly(OnBonusOnly):
    """The target's top-k is honoured at the bonus position only."""

    ignored = {"top_k": 0}


class MinPOnBonusOnly(OnBonusOnly):
    """The target's min-p is honoured at the bonus position only."""

    ignored = {"min_p": 0.0}


class TemperatureOnBonusOnly(OnBonusOnly):
    """The target's temperature is honoured at the bonus position only."""

    ignored = {"temperature": 1.0}


class NucleusFirst(Sequence):
    """In verification top-p is applied before the temperature, in the draft after it."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.sampler = _NucleusFirst(self.settings.sampling, self.target.device, self.minimum)


class _NucleusFirst(Sampler):
    def __call__(self, logits, *given):
        nucleus = SamplingSettings(top_p=self.settings.top_p)
        rest = Sampler(replace(self.settings, top_p=1.0), logits.device, self.minimum)
        return rest(filtered(logits.to(self.dtype), nucleus), *given)


class FrozenPenalties(Sequence):
    """The repetition penalty does not see the tokens of the block."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.sampler = _BlindToTheBlock(self.settings.sampling, self.target.device, self.minimum)


class _BlindToTheBlock(Sampler):
    def __call__(self, logits, seen=None, block=None):
        one = super().__call__
        return torch.cat([one(row, seen, ahead=i) for i, row in enumerate(logits.split(1))])


# ---------------------------------------------------------------- the cache


class RejectedTokenStays(Sequence):
    """The rejected token is left in the target's KV cache."""

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        rejected = decision.accepted < proposal.size
        self.cache.rollback(proposal.size - (decision.emitted - 1) - rejected)
        self.proposer.observe(decision)


class LastAcceptedLost(Sequence):
    """The last accepted token is dropped from the target's KV cache."""

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        self.cache.rollback(proposal.size - (decision.emitted - 1) + (decision.accepted > 0))
        self.proposer.observe(decision)


# ---------------------------------------------------------------- the end


class EosInsideIgnored(Sequence):
    """An EOS that is accepted inside a block does not end the sequence."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.stopping = _LastTokenOnly(self.target, self.settings.stop, tuple(self.stopping.eos_ids))


class _LastTokenOnly(Stopping):
    def cut(self, block: list[int], output: list[int]) -> tuple[int, str | None]:
        return len(block), "eos" if block[-1] in self.eos_ids else None


class WithMinimum(Sequence):
    """A loop whose minimum length is another class."""

    minimum_length: type[MinimumLength] = MinimumLength

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        ends = torch.nonzero(self.minimum.ends).flatten().tolist()
        self.minimum = self.minimum_length(ends, self.target.vocab_size, device=self.target.device)
        self.sampler.minimum = self.context.sampler.minimum = self.minimum


class _OneMore(MinimumLength):
    def __call__(self, scores, ahead):
        return super().__call__(scores, ahead + 1)


class _OfTheContext(MinimumLength):
    def __call__(self, scores, ahead):
        return super().__call__(scores, 0)


class MinimumOffByOne(WithMinimum):
    """EOS may come one token before the minimum length is reached."""

    minimum_length = _OneMore


class MinimumFrozen(WithMinimum):
    """The minimum length does not see the tokens of the block."""

    minimum_length = _OfTheContext


def at_least_two(seed: int = 0, **options: Any) -> Setup:
    """A bench with an EOS that may not come before the third token."""
    setup = table_setup(seed, eos=(1,), **options)
    return setup.but(settings=replace(setup.settings, min_new_tokens=2))


def sampled_with(**settings: Any) -> partial:
    """A bench with these sampling settings."""
    return partial(table_setup, sampling=SamplingSettings(**settings))


AT_FIRST = "at the first token of a round with guesses"
of_rows = partial(of_loop, blind=WRONG_ROWS | CONSISTENT | NO_EDGE)
of_wide_rows = partial(of_loop, blind=WRONG_ROWS | CONSISTENT)
"""Of rows with tokens that the target can never give, which forced uniforms bring out."""
of_cache = partial(of_loop, blind=WRONG_ROWS | NO_EDGE, first_token_exact=True, contracts=("context",))
EOS_OVERLOOKED = dict.fromkeys(
    (*OF_GIVEN_ROWS, "fresh e-process"), "every token follows its row, and only where the output ends is wrong"
)

LOOPS = (
    of_loop("rows_shifted", RowsShifted, AT_FIRST, blind=CONSISTENT | NO_EDGE, named="fresh e-process"),
    of_wide_rows("top_k_on_bonus_only", TopKOnBonusOnly, AT_FIRST, bench=sampled_with(top_k=3)),
    of_wide_rows("min_p_on_bonus_only", MinPOnBonusOnly, AT_FIRST, bench=sampled_with(min_p=0.4)),
    of_rows("temperature_on_bonus_only", TemperatureOnBonusOnly, AT_FIRST, bench=sampled_with(temperature=0.6)),
    of_wide_rows(
        "nucleus_before_temperature", NucleusFirst, "at the first token",
        bench=sampled_with(temperature=0.5, top_p=0.9),
    ),
    of_rows(
        "penalties_frozen", FrozenPenalties, "at the second position of a round", first_token_exact=True,
        bench=sampled_with(repetition_penalty=2.5),
    ),
    of_cache("rejected_token_stays", RejectedTokenStays, "in the round after a rejection"),
    of_cache("last_accepted_lost", LastAcceptedLost, "in the round after an acceptance"),
    of_loop(
        "eos_inside_ignored", EosInsideIgnored, "after the first EOS inside a block", first_token_exact=True,
        contracts=("end",), bench=partial(table_setup, eos=(1,)), blind=NO_EDGE | EOS_OVERLOOKED,
    ),
    of_loop(
        "minimum_off_by_one", MinimumOffByOne, "at the last token before the minimum", first_token_exact=True,
        contracts=("end",), bench=at_least_two, blind=WRONG_ROWS,
    ),
    of_rows(
        "minimum_frozen", MinimumFrozen, "in the block that reaches the minimum", first_token_exact=True,
        bench=at_least_two,
    ),
)  # fmt: skip
