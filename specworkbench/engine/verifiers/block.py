"""Block verification: the accepted length is decided for the block as a whole.

Sun, Mendlovic, Leviathan, Aharoni, Ro, Beirami, Suresh 2024 (arXiv 2403.10444), Algorithm 2.
"""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Proposal
from specworkbench.engine.verifiers.chain import ChainVerifier, ratios


class BlockVerifier(ChainVerifier):
    """Lossless, and no lossless rule of chains accepts more: a position may be kept although its own uniform fell
    short, when a later one passes.

    b_0 = 1, b_i = min(1, b_(i-1) p(x_i)/q(x_i)) is the probability of keeping at least i guesses. The uniform of
    position i is compared with h_i = r_i / (r_i + 1 - b_i), where r_i = sum_v max(b_i p_(i+1)(v) - q_(i+1)(v), 0), that
    of the last position with h_n = b_n. The last position that passes is the accepted length tau; the next token is
    drawn from max(b_tau p - q, 0), after the last guess from p. `accept_probs` holds h. With a one-hot q it
    has the token rule's law (with the same uniforms it may still keep other guesses).
    """

    name = "block"
    summary = "decide the accepted length for the whole block at once; accepts at least as much as token"
    paper = "Sun et al. 2024"
    lossless = True

    def accept_probs(self, proposal, p, q):
        kept = kept_probs(proposal, p, q)
        left = (kept[:-1, None] * p[1:-1] - q[1:]).clamp(min=0.0).sum(-1)
        return torch.cat([left / (left + (1.0 - kept[:-1])), kept[-1:]]).nan_to_num(0.0)

    def length(self, flags):
        places = torch.arange(flags.shape[0] + 1, device=flags.device)
        return (places * torch.nn.functional.pad(flags, (1, 0))).max()

    def next_row(self, proposal, p, q, accepted):
        kept = kept_probs(proposal, p, q)
        scale = torch.nn.functional.pad(kept[:-1], (1, 1), value=1.0) if len(kept) else kept.new_ones(1)
        return super().next_row(proposal, p * scale.unsqueeze(-1), q, accepted)


def kept_probs(proposal: Proposal, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """(n,) b_i: the probability, given the guesses, that at least i of them are kept."""
    kept, so_far = [], p.new_ones(1)
    for ratio in ratios(proposal, p, q).split(1):
        so_far = (so_far * ratio).clamp(max=1.0)
        kept.append(so_far)
    return torch.cat(kept) if kept else p.new_empty(0)
