"""The greedy rule: keep guesses while they are the target's own first choice."""

from __future__ import annotations

from specworkbench.engine.verifiers.chain import ChainVerifier, one_hot_best


class GreedyVerifier(ChainVerifier):
    """Keep guesses that are the target's most probable token, then emit its own. Lossless at temperature 0.

    Among equally probable tokens the lowest id is the choice.
    """

    name = "greedy"
    summary = "accept a guess that is the target's most probable token, else emit that one"
    paper = "Stern et al. 2018"
    lossless = True
    greedy_only = True

    def accept_probs(self, proposal, p, q):
        return (proposal.tokens == p[:-1].argmax(-1)).to(p.dtype)

    def next_row(self, proposal, p, q, accepted):
        return one_hot_best(p, accepted)
