"""EAGLE: a small head goes on from the target's hidden states, not from its tokens alone."""

from __future__ import annotations

from specworkbench.engine.proposers.feature_head import FeatureHeadProposer


class EagleProposer(FeatureHeadProposer):
    """EAGLE-1/2 (the last hidden state) and EAGLE-3 (several, fused; often a reduced draft vocabulary).

    What a reduced vocabulary lacks has q = 0, and is never guessed. Reads SafeAILab's and speculators' checkpoints.
    """

    name = "eagle"
    kind = "eagle"
    summary = "a one-block head on the target's hidden states, going on from its own"
    paper = "Li et al. 2024 (EAGLE), 2025 (EAGLE-3)"
    weights = "an EAGLE head of this target"
    default_weights = "embedded/eagle"
