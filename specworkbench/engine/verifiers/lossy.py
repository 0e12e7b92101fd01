"""Rules that trade the target's distribution for acceptance. Each says `lossless = False`, and is shown as lossy, but
with settings that give nothing up, where it is the token rule.
"""

from __future__ import annotations

import torch

from specworkbench.engine.verifiers.chain import ChainVerifier, one_hot_best, ratios
from specworkbench.errors import InputError


class LenientVerifier(ChainVerifier):
    """The token rule with q made smaller by `leniency`: accepts with min(1, p / (leniency q)).

    No token becomes more probable than p / leniency by being guessed; acceptance is sum_x min(p(x) / leniency, q(x)).
    The residual is the token rule's. leniency 1 is the token rule. Raises `InputError` outside (0, 1].
    """

    name = "lenient"
    summary = "the token rule with q times leniency in the ratio"
    paper = "Leviathan et al. 2023, appendix A.5"
    lossless = False

    def __init__(self, leniency: float = 0.8):
        if not 0.0 < leniency <= 1.0:
            raise InputError(f"leniency is {leniency!r}; it must be above 0 and at most 1 (1 is the token rule)")
        self.leniency, self.lossless = leniency, leniency == 1.0

    def accept_probs(self, proposal, p, q):
        return (ratios(proposal, p, q) / self.leniency).clamp(max=1.0)


class EnsembleVerifier(ChainVerifier):
    """The token rule for v = weight p + (1 - weight) q in place of p, and p itself for the bonus.

    A guess is accepted with min(1, v/q); the residual max(v - q, 0) is, normalised, that of p. It is what transformers
    does with `assistant_ensemble_weight`. Raises `InputError` for a weight outside (0, 1].
    """

    name = "ensemble"
    summary = "the token rule for a mixture of p and q in place of p"
    paper = "arXiv 2604.07622; transformers' assistant_ensemble_weight"
    lossless = False

    def __init__(self, weight: float = 0.8):
        if not 0.0 < weight <= 1.0:
            raise InputError(f"weight is {weight!r}; it must be above 0 and at most 1 (1 is the token rule)")
        self.weight, self.lossless = weight, weight == 1.0

    def accept_probs(self, proposal, p, q):
        return (1.0 - self.weight + self.weight * ratios(proposal, p, q)).clamp(max=1.0)


class TypicalVerifier(ChainVerifier):
    """Keep guesses that are probable enough for how uncertain the target is, then emit its most probable token.

    A guess x is kept iff p(x) > min(epsilon, delta exp(-H(p))), H the entropy of p in nats; nothing is drawn. The token
    after them is the target's first choice, as Medusa's first token of a step is. Raises `InputError` for epsilon or
    delta outside [0, 1].
    """

    name = "typical"
    summary = "accept a guess with p above min(epsilon, delta exp(-entropy)), then emit the most probable token"
    paper = "Cai et al. 2024 (Medusa), section 3.3.1"
    lossless = False

    def __init__(self, epsilon: float = 0.09, delta: float = 0.3):
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0.0 <= value <= 1.0:
                raise InputError(f"{name} is {value!r}; it must be between 0 and 1")
        self.epsilon, self.delta = epsilon, delta

    def accept_probs(self, proposal, p, q):
        p = p[:-1]
        threshold = (self.delta * torch.exp(torch.xlogy(p, p).sum(-1))).clamp(max=self.epsilon)
        return (p.gather(-1, proposal.tokens.unsqueeze(-1)).squeeze(-1) > threshold).to(p.dtype)

    def next_row(self, proposal, p, q, accepted):
        return one_hot_best(p, accepted)
