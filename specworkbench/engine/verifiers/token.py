"""The token rule: accept each guess with min(1, p/q), correct the first rejected one from the residual.

Leviathan, Kalman, Matias 2023, Algorithm 1 (p the target, q the draft); Chen et al. 2023, Algorithm 2.
"""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Proposal, Verdict
from specworkbench.engine.rng import Chooser


class TokenVerifier:
    """Speculative sampling, position by position. The output follows the target exactly."""

    name = "token"
    lossless = True
    greedy_only = False
    judges_trees = False

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`. With a one-hot q a guess x is accepted with p(x), and the residual is p without x."""
        draft_probs = proposal.draft_probs(target_probs)
        guess = proposal.tokens.unsqueeze(-1)
        accept_probs = (target_probs[:-1].gather(-1, guess) / draft_probs.gather(-1, guess)).squeeze(-1).clamp(max=1.0)
        flags = choose.accept(accept_probs)
        accepted = accepted_length(flags)
        next_probs = residual_row(target_probs, draft_probs, accepted)
        next_token = choose.draw(next_probs, at=accepted.unsqueeze(0)).squeeze(0)
        return Verdict(accepted, next_token, next_probs.squeeze(0), accept_probs, flags)


def accepted_length(flags: torch.Tensor) -> torch.Tensor:
    """Length of the prefix of accepted positions: flags (n,) bools, returns () int64."""
    return flags.long().cumprod(0).sum()


def residual_row(target_probs: torch.Tensor, draft_probs: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
    """(1, vocab) weights max(p - q, 0) at the first position that was not accepted; there is no q after the last.

    So a fully accepted proposal leaves p itself, the bonus row. Where p and q agree to rounding nothing is left, and p
    is taken (the event has probability zero).
    """
    n = draft_probs.shape[0]
    if n == 0:
        return target_probs
    p = target_probs.index_select(0, accepted.unsqueeze(0))
    q = draft_probs.index_select(0, accepted.clamp(max=n - 1).unsqueeze(0))
    residual = (p - q * (accepted < n)).clamp_(min=0.0)
    return torch.where(residual.sum(-1, keepdim=True) > 0, residual, p)
