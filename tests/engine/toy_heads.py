"""Random heads of every shape for a toy target of four layers or two, in float64."""

from __future__ import annotations

import torch
from transformers import LlamaConfig

from specworkbench.engine import LanguageModel
from specworkbench.engine.heads.feature import FeatureHead, FeatureShape
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape

BARE = dict(norm_embedding=False, norm_feature=False, norm_input=False, norm_output=False, project_bias=True)
FUSED = dict(fused=True, wide=True)


def randomised(head, seed: int = 3):
    """The head with random weights, ready to draft."""
    torch.manual_seed(seed)
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64) * (0.5 if parameter.ndim > 1 else 1.0)
    return head.double().eval().requires_grad_(False)


def feature_head(target: LanguageModel, layers=(-1,), target_ids=None, **shape) -> FeatureHead:
    """A feature head of the target's width and vocabulary; `shape` as in `FeatureShape`."""
    width = target.model.config.hidden_size
    config = LlamaConfig(
        hidden_size=width, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=target.vocab_size, max_position_embeddings=64,
    )  # fmt: skip
    return randomised(FeatureHead(FeatureShape(config, layers, width, **shape), target, target_ids))


def eagle(target: LanguageModel) -> FeatureHead:
    """EAGLE-3 on two of the target's hidden states."""
    return feature_head(target, (1, -1), vocabulary=target.vocab_size, **FUSED)


def mtp(target: LanguageModel) -> FeatureHead:
    """Three chained modules."""
    return feature_head(target, modules=3)


def medusa(target: LanguageModel, heads: int = 3) -> MedusaHeads:
    """Medusa heads of one residual layer."""
    return randomised(MedusaHeads(MedusaShape(heads, 1, target.model.config.hidden_size, target.vocab_size)))
