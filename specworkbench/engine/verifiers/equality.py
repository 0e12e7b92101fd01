"""The equality rule: accept a guess iff it is the token that the target itself draws there."""

from __future__ import annotations

from dataclasses import replace

import torch

from specworkbench.engine.contracts import Proposal, Verdict, Verifier
from specworkbench.engine.rng import Chooser
from specworkbench.engine.verifiers.tree import TreeVerifier


class EqualityVerifier(Verifier):
    """The target draws its own token at every position, and guesses count while they equal it. Lossless.

    Its draw is made in two steps, so that every decision has a uniform of its own: whether it is the guess, which has
    probability p(guess); if not, which other token it is. That is the token rule for guesses taken as certain, whatever
    they were drawn from: q plays no part, so a proposer may do with its guesses what it likes, drop them for having a
    low q too. What it costs is acceptance, sum_x p(x) q(x) in place of sum_x min(p(x), q(x)).
    """

    name = "equality"
    summary = "accept a guess iff the target's own draw equals it"
    paper = "transformers' prompt lookup; vLLM with greedy drafts"
    lossless = True
    judges_trees = True

    def __init__(self):
        self._certain = TreeVerifier()

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`."""
        return self._certain.verify(replace(proposal, probs=None), target_probs, choose)
