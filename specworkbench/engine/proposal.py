"""What a round hands on: the proposal, the rule's verdict on it, and the decision that the host comes to know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from specworkbench.engine.trees import ancestors


@dataclass(frozen=True)
class Proposal:
    """The guesses of one round.

    tokens: (n,) int64, on the device; probs: (n, vocab), the rows they were REALLY drawn from, or None when each guess
    was certain (one-hot rows). forwards and positions count the draft model's work; shortened: why it stopped short
    (see `trace.schema.SHORTENED`).

    parents: None for a chain. For a tree (n,) int64 on the device, the node each node continues, -1 the context; a
    parent precedes its children, and siblings stand in the order in which they are to be tried. A sampled node i is
    drawn with uniform i of the draft stream (`choose.draw(..., at=)`), from a row that may depend on its ancestors and
    earlier siblings and on nothing else.

    >>> import torch
    >>> Proposal(torch.tensor([4, 8]), probs=torch.full((2, 16), 1 / 16)).tokens.tolist()
    [4, 8]
    """

    tokens: torch.Tensor
    probs: torch.Tensor | None = None
    parents: torch.Tensor | None = None
    forwards: int = 0
    positions: int = 0
    shortened: str = ""

    @property
    def size(self) -> int:
        return self.tokens.shape[0]

    @property
    def is_tree(self) -> bool:
        return self.parents is not None and self.size > 0

    @cached_property
    def ancestors(self) -> torch.Tensor:
        """(n, n) bools of a tree: row i marks node i and the nodes between it and the context."""
        return ancestors(self.parents)

    def draft_probs(self, like: torch.Tensor) -> torch.Tensor:
        """(n, vocab) rows q, one-hot where the guesses were certain; dtype, device and vocabulary of `like`."""
        if self.probs is not None:
            return self.probs
        rows = torch.zeros(self.size, like.shape[-1], dtype=like.dtype, device=like.device)
        return rows.scatter_(-1, self.tokens.unsqueeze(-1), 1.0)


@dataclass(frozen=True)
class Verdict:
    """What the rule decided, on the device.

    accepted: () int64, accepted length; next_token: () int64, drawn from next_probs (vocab,) weights (the normalised
    residual's, or p itself); accept_probs: (n,) probability with which the rule accepts each position given those
    before (in a tree: given that its parent is kept and its earlier siblings are refused); flags: (n,) bools, whether
    its uniform fell below that; path: (n,) int64, the nodes of a tree that are kept, from the context on, then -1; None
    for a chain, whose first nodes are kept; summary: what `summarised` gives for it, where it was computed along.

    >>> from specworkbench.engine import decode, load_model, make_proposer
    >>> target, proposer, rounds = load_model("embedded"), make_proposer("ngram"), []
    >>> result = decode("a b a b", target=target, proposer=proposer, max_new_tokens=8, on_round=rounds.append)
    >>> verdict = rounds[0].verdict
    >>> verdict.accepted.item() == rounds[0].decision.accepted, verdict.accept_probs.shape == verdict.flags.shape
    (True, True)
    """

    accepted: torch.Tensor
    next_token: torch.Tensor
    next_probs: torch.Tensor
    accept_probs: torch.Tensor
    flags: torch.Tensor
    path: torch.Tensor | None = None
    summary: torch.Tensor | None = None


def summarised(proposal: Proposal, target_probs: torch.Tensor, verdict: Verdict) -> torch.Tensor:
    """All that the host must know of a round, (m,) int64: the guesses, of a tree its parents and its path, the accepted
    length, the drawn token, and whether a row of p, and one of q, held NaN."""
    target_sick = target_probs.sum().isnan().long()
    draft_sick = torch.zeros_like(target_sick) if proposal.probs is None else proposal.probs.sum().isnan().long()
    tail = torch.stack([verdict.accepted, verdict.next_token, target_sick, draft_sick])
    tree = [proposal.parents, verdict.path] if proposal.is_tree else []
    return torch.cat([proposal.tokens, *tree, tail])


@dataclass(frozen=True)
class Decision:
    """A verdict after the round's synchronisation, on the host: what a proposer may observe.

    proposed: the guesses; accepted: how many were kept; next_token: the corrected, bonus or plain token; emitted: how
    many of accepted + 1 tokens reached the output (EOS, a stop string or a limit may cut). Of a tree also parents, as
    in `Proposal`, and path: the nodes that were kept, from the context on; both None for a chain.

    >>> decision = Decision(proposed=[4, 8, 2], accepted=1, next_token=6, emitted=2)
    >>> decision.proposed[: decision.accepted] + [decision.next_token]
    [4, 6]
    """

    proposed: list[int]
    accepted: int
    next_token: int
    emitted: int
    parents: list[int] | None = None
    path: list[int] | None = None

    @property
    def nodes(self) -> list[int]:
        """The nodes that were kept, in the order of the output: the first ones of a chain, the path of a tree."""
        return list(range(self.accepted)) if self.path is None else self.path

    @property
    def kept(self) -> list[int]:
        """The tokens of these nodes."""
        return self.proposed[: self.accepted] if self.path is None else [self.proposed[node] for node in self.path]

    @property
    def last(self) -> int:
        """The node that the drawn token follows, -1 for the context."""
        return self.accepted - 1 if self.path is None else self.path[-1] if self.path else -1

    @property
    def refused(self) -> list[int]:
        """The nodes that were examined and not kept, in order: at most one in a chain, any number in a tree."""
        if self.parents is None:
            return [self.accepted] if self.accepted < len(self.proposed) else []
        taken = dict(zip([-1, *self.path], [*self.path, len(self.parents)], strict=True))
        return [node for node, parent in enumerate(self.parents) if node < taken.get(parent, -1)]

    @property
    def displaced(self) -> int | None:
        """The guess whose place the drawn token took, of several the first; None where none was refused there."""
        if self.parents is None:
            return self.accepted if self.accepted < len(self.proposed) else None
        return self.parents.index(self.last) if self.last in self.parents else None

    @property
    def outcome(self) -> str:
        """What the drawn token is: plain, corrected (it took the place of refused guesses) or bonus."""
        if not self.proposed:
            return "plain"
        return "bonus" if self.displaced is None else "corrected"
