"""What a round computes between the forwards, compiled: rows from logits, draws, the rule's verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from specworkbench.engine.compiled.functions import CompiledFunction
from specworkbench.engine.compiled.programs import Programs
from specworkbench.engine.contracts import Proposal, Verdict, Verifier, summarised
from specworkbench.engine.measuring import measure_chain
from specworkbench.engine.rng import Chooser, UniformChooser, inverse_cdf
from specworkbench.engine.sampling import SamplingSettings, probabilities
from specworkbench.engine.verifiers.chain import ChainVerifier


class CompiledRound:
    """The tensor functions of rounds of one rule. A round of another number of guesses runs them uncompiled.

    gammas: numbers of guesses, 0 always among them; capture, top_k: what is recorded of rounds, None for nothing; see
    `TraceRecorder`.
    """

    def __init__(
        self, verifier: Verifier, gammas: Iterable[int], dtype: torch.dtype, capture: str | None = None, top_k: int = 32
    ):
        self.programs = Programs()
        self._verifier, self._gammas, self._dtype = verifier, frozenset({0, *gammas}), dtype
        self._rows = {gamma + 1 for gamma in self._gammas}
        self.draw_row = self._compiled(inverse_cdf, "the draw", {1})
        self._capture, top = capture, top_k if capture == "top-k" else 0
        self._measure = self._compiled(partial(measure_chain, top=top), "the measuring", self._rows, top)
        rule = verifier.describe()
        self._judged = {
            certain: self._compiled(partial(_verify, verifier, certain), "the rule", self._gammas, [rule, certain])
            for certain in (False, True)
        }

    def law(self, sampling: SamplingSettings) -> Callable[[torch.Tensor], torch.Tensor]:
        """`probabilities` under these settings, for one row and for those of a verification."""
        return self._compiled(
            partial(probabilities, settings=sampling, dtype=self._dtype), "the sampler", self._rows,
            sampling.as_dict(),
        )  # fmt: skip

    def drawn(self, sampling: SamplingSettings) -> Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]:
        """A row under these settings and the token drawn from it, from logits (1, vocab) and a uniform (1,)."""
        return self._compiled(
            partial(_drawn, settings=sampling, dtype=self._dtype), "the sampler and the draw", {1}, sampling.as_dict()
        )

    def prepare(self, rows: torch.Tensor, certain: bool) -> None:
        """Compile the draw, the rule for n guesses, certain or drawn, and the measuring; rows: (n + 1, vocab)."""
        n = rows.shape[0] - 1
        self.draw_row(rows[:1].clone(), rows.new_zeros(1))
        proposal = Proposal(
            torch.zeros(n, dtype=torch.int64, device=rows.device), None if certain else rows[:n].clone()
        )
        verdict = self.verify(proposal, rows, UniformChooser(rows.new_zeros(n), rows.new_zeros(n + 1)))
        self.measured(proposal, rows, verdict)

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """As `Verifier.verify`."""
        if proposal.is_tree or type(choose) is not UniformChooser or not isinstance(self._verifier, ChainVerifier):
            return self._verifier.verify(proposal, target_probs, choose)
        certain = proposal.probs is None
        rows = [target_probs] if certain else [target_probs, proposal.probs]
        outputs = self._judged[certain](proposal.tokens, choose.accept_uniforms, choose.draw_uniforms, *rows)
        return Verdict(*outputs[:-1], summary=outputs[-1])

    def measured(
        self, proposal: Proposal, target_probs: torch.Tensor, verdict: Verdict
    ) -> tuple[torch.Tensor, ...] | None:
        """What is recorded of a round's rows, see `measure_chain`; None where it has no compiled form."""
        if self._capture is None or proposal.is_tree or proposal.size not in self._gammas:
            return None
        certain = proposal.probs is None and self._capture == "none"
        rows = () if certain else (proposal.draft_probs(target_probs),)
        found = self._measure(target_probs, proposal.tokens, verdict.accepted, verdict.next_token, *rows)
        return found if isinstance(found, tuple) else (found,)

    def _compiled(self, function: Any, name: str, sizes: Iterable[int], describe: Any = None) -> CompiledFunction:
        return CompiledFunction(function, name, sizes, self.programs, describe)


def _drawn(
    logits: torch.Tensor, u: torch.Tensor, settings: SamplingSettings, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    row = probabilities(logits, settings, dtype)
    return row, inverse_cdf(row, u)


def _verify(
    verifier: Verifier, certain: bool, tokens: torch.Tensor, accept: torch.Tensor, drawn: torch.Tensor,
    target_probs: torch.Tensor, *draft_probs: torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """A chain's verdict as tensors: tokens (n,), accept (n,) and drawn (n + 1,) uniforms, rows of p and, unless the
    guesses were certain, of q."""
    proposal = Proposal(tokens, None if certain else draft_probs[0])
    verdict = verifier.verify(proposal, target_probs, UniformChooser(accept, drawn))
    summary = summarised(proposal, target_probs, verdict)
    return verdict.accepted, verdict.next_token, verdict.next_probs, verdict.accept_probs, verdict.flags, summary
