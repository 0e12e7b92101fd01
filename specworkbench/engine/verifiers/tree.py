"""The tree rule: at each kept node try its children in order, and correct from what they leave of the target's row.

Recursive rejection. With children c_1, c_2, .. of a node, drawn from rows q_1, q_2, ..: r = p; child c_i is accepted
with probability min(1, r(c_i) / q_i(c_i)); if it is not, r becomes max(r - q_i, 0), normalised, and the next child is
tried. An accepted child is the next node; when none is left the next token is drawn from r, at a leaf p itself.

Children drawn independently from one q: SpecInfer, Miao et al. 2023, Algorithm 2. Without replacement, where q_i is q
without the earlier siblings, normalised: Jeon et al. 2024 (recursive speculative decoding) and Chen et al. 2024
(Sequoia). The most probable children, as EAGLE-2's: one-hot rows, so that c_i is accepted with r(c_i).

Whether earlier siblings were accepted decides only whether a child is examined, not its probability: all probabilities
are known before any uniform is read, and one call compares all of them, as for a chain.
"""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Proposal, Verdict, Verifier
from specworkbench.engine.rng import Chooser
from specworkbench.engine.trees import earlier_siblings
from specworkbench.engine.verifiers.token import TokenVerifier


class TreeVerifier(Verifier):
    """Speculative sampling on a tree. The output follows the target exactly; on a chain it is the token rule."""

    name = "tree"
    summary = "at each kept node try the children in turn, each against what the refused ones left of p"
    paper = "Miao et al. 2023 (SpecInfer); Jeon et al. 2024; Chen et al. 2024 (Sequoia)"
    lossless = True
    judges_trees = True

    def __init__(self):
        self._chain = TokenVerifier()

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`. A bonus is drawn with the uniform of the row after the last node, as a chain's is."""
        if not proposal.is_tree:
            return self._chain.verify(proposal, target_probs, choose)
        accept_probs, left = self.judge(proposal, target_probs)
        flags = choose.accept(accept_probs)
        kept = on_path(proposal, flags)
        n = proposal.size
        order = torch.arange(n, device=kept.device)
        path = torch.where(kept, order, n).sort().values
        row = torch.where(kept, order + 1, 0).max()
        childless = (proposal.parents != row - 1).all()
        next_probs = self.next_row(proposal, target_probs, left, row)
        next_token = choose.draw(next_probs, at=torch.where(childless, n, row).unsqueeze(0)).squeeze(0)
        path = torch.where(path < n, path, -1)
        return Verdict(kept.sum(), next_token, next_probs.squeeze(0), accept_probs, flags, path)

    def judge(self, proposal: Proposal, target_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(n,) probability of accepting each node once its parent is kept and its earlier siblings are refused; and
        (n + 1, vocab) what all children of each row leave of it, None where `next_row` finds that by itself.
        """
        if proposal.probs is None:
            return certain_probs(proposal, target_probs), None
        return recursive_rejection(proposal, target_probs)

    def next_row(
        self, proposal: Proposal, target_probs: torch.Tensor, left: torch.Tensor | None, row: torch.Tensor
    ) -> torch.Tensor:
        """(1, vocab) weights of the token after the last kept node; row: () its row in target_probs."""
        p = target_probs.index_select(0, row.unsqueeze(0))
        if left is not None:
            rest = left.index_select(0, row.unsqueeze(0))
        else:
            refused = (proposal.parents == row - 1).unsqueeze(0)
            rest = p.scatter_reduce(-1, proposal.tokens.unsqueeze(0), (~refused).to(p.dtype), "prod")
        return torch.where(rest.sum(-1, keepdim=True) > 0, rest, p)


def on_path(proposal: Proposal, flags: torch.Tensor) -> torch.Tensor:
    """(n,) bools, whether a node is kept: it and all its ancestors are the first accepted among their siblings."""
    first = flags & ~(earlier_siblings(proposal.parents) & flags).any(-1)
    return ~(proposal.ancestors & ~first).any(-1)


def certain_probs(proposal: Proposal, target_probs: torch.Tensor) -> torch.Tensor:
    """(n,) acceptance probabilities where every guess was certain: p over what earlier siblings leave of the row.

    Scalars only: rows of the vocabulary are read at the guesses. A token that an earlier sibling had is never accepted.
    """
    p = target_probs[proposal.parents + 1, proposal.tokens]
    earlier = earlier_siblings(proposal.parents)
    repeated = (earlier & (proposal.tokens.unsqueeze(-1) == proposal.tokens)).any(-1)
    p = torch.where(repeated, 0.0, p)
    rest = 1.0 - (earlier.to(p.dtype) * p).sum(-1)
    return torch.where(p > 0, p / rest.clamp(min=torch.finfo(p.dtype).tiny), p).clamp(max=1.0)


def recursive_rejection(proposal: Proposal, target_probs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(n,) acceptance probabilities and (n + 1, vocab) weights left of each row after all its children.

    One pass over the nodes, a row of the vocabulary each. The rows stay as they come, their sums beside them, so that
    an only child is judged and corrected in the very numbers of the token rule. Where the children's rows leave nothing
    of a row, later children are not accepted (the event that they are tried has probability zero).
    """
    left = torch.cat([target_probs, torch.ones_like(target_probs[:, :1])], dim=-1)  # the last column holds the sums
    guesses = proposal.tokens.unsqueeze(-1)
    chances = proposal.probs.gather(-1, guesses)
    shares = []
    for node in range(proposal.size):
        at = proposal.parents[node : node + 1] + 1
        row = left.index_select(0, at)
        whole = row[:, -1:]
        shares.append(row.gather(-1, guesses[node : node + 1]) / (whole * chances[node : node + 1]))
        rest = (row[:, :-1] - whole * proposal.probs[node : node + 1]).clamp_(min=0.0)
        left.index_copy_(0, at, torch.cat([rest, rest.sum(-1, keepdim=True)], dim=-1))
    return torch.cat(shares).squeeze(-1).nan_to_num(0.0).clamp(max=1.0), left[:, :-1]
