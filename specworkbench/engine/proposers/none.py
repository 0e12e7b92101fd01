"""No proposer: every round is plain, so that both sides of a speedup share every line of the loop."""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Context, Proposal, Proposer
from specworkbench.engine.rng import Chooser


class NoProposer(Proposer):
    """Proposes nothing: plain decoding."""

    name = "none"
    summary = "plain decoding"
    deterministic = True
    instrument = True

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return nothing(context)


def nothing(context: Context, shortened: str = "") -> Proposal:
    """An empty proposal, which makes the round a plain one."""
    return Proposal(torch.empty(0, dtype=torch.int64, device=context.device), shortened=shortened)
