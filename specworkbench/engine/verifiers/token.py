"""The token rule: accept each guess with min(1, p/q), correct the first rejected one from the residual.

Leviathan, Kalman, Matias 2023, Algorithm 1 (p the target, q the draft); Chen et al. 2023, Algorithm 2.
"""

from __future__ import annotations

from specworkbench.engine.verifiers.chain import ChainVerifier, ratios


class TokenVerifier(ChainVerifier):
    """Speculative sampling, position by position. The output follows the target exactly.

    With a one-hot q a guess x is accepted with p(x), and the residual is p without x.
    """

    name = "token"
    summary = "accept a guess with min(1, p/q), else draw from what p has more than q"
    paper = "Leviathan et al. 2023; Chen et al. 2023"
    lossless = True

    def accept_probs(self, proposal, p, q):
        return ratios(proposal, p, q).clamp(max=1.0)
