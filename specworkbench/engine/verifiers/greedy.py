"""The greedy rule: keep guesses while they are the target's own first choice."""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Proposal, Verdict
from specworkbench.engine.rng import Chooser
from specworkbench.engine.verifiers.token import accepted_length


class GreedyVerifier:
    """Keep guesses that are the target's most probable token, then emit its own. Lossless at temperature 0."""

    name = "greedy"
    lossless = True
    greedy_only = True
    judges_trees = False

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`. Among equally probable tokens the lowest id is the choice."""
        best = target_probs.argmax(-1)
        accept_probs = (proposal.tokens == best[:-1]).to(target_probs.dtype)
        flags = choose.accept(accept_probs)
        accepted = accepted_length(flags)
        choice = best.index_select(0, accepted.unsqueeze(0))
        next_probs = torch.zeros_like(target_probs[:1]).scatter_(-1, choice.unsqueeze(-1), 1.0)
        next_token = choose.draw(next_probs, at=accepted.unsqueeze(0)).squeeze(0)
        return Verdict(accepted, next_token, next_probs.squeeze(0), accept_probs, flags)
