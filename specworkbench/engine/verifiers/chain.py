"""What the rules of chains share: judge every guess, keep some of the first ones, draw the token after them."""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Proposal, Verdict, Verifier
from specworkbench.engine.rng import Chooser


class ChainVerifier(Verifier):
    """A rule of chains in three steps, of which a rule states those that are its own.

    In all of them p: (n + 1, vocab) are the target's rows, q: (n, vocab) the draft's, one-hot where guesses were
    certain.
    """

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`."""
        p, q = target_probs, proposal.draft_probs(target_probs)
        accept_probs = self.accept_probs(proposal, p, q)
        flags = choose.accept(accept_probs)
        accepted = self.length(flags)
        next_probs = self.next_row(proposal, p, q, accepted)
        next_token = choose.draw(next_probs, at=accepted.unsqueeze(0)).squeeze(0)
        return Verdict(accepted, next_token, next_probs.squeeze(0), accept_probs, flags)

    def accept_probs(self, proposal: Proposal, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """(n,) what each position's uniform is compared with."""
        raise NotImplementedError

    def length(self, flags: torch.Tensor) -> torch.Tensor:
        """() int64, the accepted length from flags (n,): the first refused guess ends it."""
        return flags.long().cumprod(0).sum()

    def next_row(self, proposal: Proposal, p: torch.Tensor, q: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
        """(1, vocab) weights of the token after the accepted ones: the residual, or p after the last guess."""
        return residual_row(p, q, accepted)


def ratios(proposal: Proposal, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """(n,) p/q of every guess, not clamped."""
    guess = proposal.tokens.unsqueeze(-1)
    return (p[:-1].gather(-1, guess) / q.gather(-1, guess)).squeeze(-1)


def residual_row(p: torch.Tensor, q: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
    """(1, vocab) weights max(p - q, 0) at the first position that was not accepted; there is no q after the last.

    So a fully accepted proposal leaves p itself, the bonus row. Where p and q agree to rounding nothing is left, and p
    is taken (the event has probability zero).
    """
    n = q.shape[0]
    if n == 0:
        return p
    row = p.index_select(0, accepted.unsqueeze(0))
    q = q.index_select(0, accepted.clamp(max=n - 1).unsqueeze(0))
    residual = (row - q * (accepted < n)).clamp_(min=0.0)
    return torch.where(residual.sum(-1, keepdim=True) > 0, residual, row)


def one_hot_best(p: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
    """(1, vocab) all weight on the most probable token after the accepted ones, the lowest id among equals."""
    row = p.index_select(0, accepted.unsqueeze(0))
    return torch.zeros_like(row).scatter_(-1, row.argmax(-1, keepdim=True), 1.0)
