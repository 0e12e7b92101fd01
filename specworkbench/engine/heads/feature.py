"""Heads that guess from the target's own features: EAGLE-1/2, EAGLE-3 and multi-token prediction (MTP) in one shape.

Every module takes, at position t, the embedding of token t + 1 and a feature of position t, mixes the two, runs one
decoder block over its own cache, and gives a feature of the next step and logits of token t + 2. They differ in what
`FeatureShape` says. EAGLE: Li et al. 2024 (2401.15077), 2025 (2503.01840); MTP: DeepSeek-V3 (2412.19437), section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from transformers import LlamaConfig

from specworkbench.engine.heads.blocks import Angles, Attend, Block, Norm, Rotary, linear
from specworkbench.engine.models import LanguageModel


@dataclass(frozen=True)
class FeatureShape:
    """What tells one feature head from another.

    config: of the decoder block; layers: the target's hidden states that are read, as transformers numbers them (-1 the
    last, after the norm); target_width: their width; vocabulary: rows of the head's own output matrix, 0: the target's
    is used. modules: one is used again for every guess (EAGLE, Qwen3-Next, MiMo), several are chained, one for each
    guess (DeepSeek-V3). fused: several hidden states go through one matrix (EAGLE-3). wide: the attention reads
    cat[embedding, feature] (EAGLE-3) instead of a projection of it. feature_first: the order in that pair.
    norm_embedding, norm_feature, norm_fused, norm_input, norm_output: where there are norms; residual_normed: whether
    the wide block's residual is the normed feature; feeds_normed: whether the next step gets the normed output.
    """

    config: LlamaConfig
    layers: tuple[int, ...]
    target_width: int
    vocabulary: int = 0
    modules: int = 1
    fused: bool = False
    wide: bool = False
    feature_first: bool = False
    norm_embedding: bool = True
    norm_feature: bool = True
    norm_fused: bool = False
    norm_input: bool = True
    norm_output: bool = True
    residual_normed: bool = False
    feeds_normed: bool = False
    project_bias: bool = False
    own_embedding: bool = False


class FeatureModule(nn.Module):
    """One such module; the names follow the shape."""

    def __init__(self, shape: FeatureShape):
        super().__init__()
        config, self.shape = shape.config, shape
        width, epsilon = config.hidden_size, config.rms_norm_eps
        if shape.norm_embedding:
            self.embedding_norm = Norm(width, epsilon)
        if shape.norm_feature:
            self.feature_norm = Norm(width, epsilon)
        if not shape.wide:
            self.project = nn.Linear(2 * width, width, bias=shape.project_bias)
        if not shape.wide and shape.norm_input:
            self.input_norm = Norm(width, epsilon)
        self.block = Block(config, 2 * width if shape.wide else width)
        if shape.norm_output:
            self.output_norm = Norm(width, epsilon)

    def forward(
        self, embedded: torch.Tensor, feature: torch.Tensor, angles: Angles, attend: Attend
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """embedded, feature: (..., n, width). Returns the feature of the next step and what the head reads."""
        shape = self.shape
        if shape.norm_embedding:
            embedded = self.embedding_norm(embedded)
        normed = self.feature_norm(feature) if shape.norm_feature else feature
        pair = torch.cat([normed, embedded] if shape.feature_first else [embedded, normed], dim=-1)
        if shape.wide:
            read, residual = pair, normed if shape.residual_normed else feature
        else:
            residual = linear(pair, self.project)
            read = self.input_norm(residual) if shape.norm_input else residual
        output = self.block(read, residual, angles, attend)
        headed = self.output_norm(output) if shape.norm_output else output
        return headed if shape.feeds_normed else output, headed


class FeatureHead(nn.Module):
    """The modules with what they share: the fusion of several features, and an embedding and a head of their own or
    the target's, which are borrowed and neither saved nor trained.
    """

    def __init__(self, shape: FeatureShape, target: LanguageModel, target_ids: torch.Tensor | None = None):
        """target_ids: (vocabulary,) int64, the target's id of each entry of a reduced draft vocabulary."""
        super().__init__()
        self.shape = shape
        width = shape.config.hidden_size
        self.stages = nn.ModuleList(FeatureModule(shape) for _ in range(shape.modules))
        if shape.fused:
            self.fuse = nn.Linear(len(shape.layers) * shape.target_width, width, bias=False)
            if shape.norm_fused:
                self.fuse_norm = Norm(len(shape.layers) * shape.target_width, shape.config.rms_norm_eps)
        if shape.own_embedding:
            self.embedding = nn.Embedding(target.model.get_input_embeddings().weight.shape[0], width)
        if shape.vocabulary:
            self.head = nn.Linear(width, shape.vocabulary, bias=False)
        self.register_buffer("target_ids", target_ids, persistent=False)
        self.rotary = Rotary(shape.config)
        self._borrowed = (target.model.get_input_embeddings(), target.model.get_output_embeddings())
        self.vocab_size = target.vocab_size

    def features(self, hidden: dict[int, torch.Tensor]) -> torch.Tensor:
        """{layer: (..., n, target_width)} to the feature (..., n, width) of the first module."""
        rows = [hidden[layer].to(self.stages[0].block.out.weight.dtype) for layer in self.shape.layers]
        if not self.shape.fused:
            return rows[0]
        joined = torch.cat(rows, dim=-1)
        return linear(self.fuse_norm(joined) if self.shape.norm_fused else joined, self.fuse)

    def embedded(self, ids: torch.Tensor) -> torch.Tensor:
        """ids (..., n) to embeddings (..., n, width)."""
        embedding = self.embedding if self.shape.own_embedding else self._borrowed[0]
        return embedding(ids)

    def own_logits(self, headed: torch.Tensor) -> torch.Tensor:
        """(..., n, width) to logits over the head's own vocabulary, or the target's where it has none."""
        return linear(headed, self.head if self.shape.vocabulary else self._borrowed[1])

    def logits(self, headed: torch.Tensor) -> torch.Tensor:
        """(n, width) to logits (n, the target's vocabulary); -inf for what a reduced vocabulary lacks."""
        logits = self.own_logits(headed)
        if self.target_ids is None:
            return logits[:, : self.vocab_size]
        whole = logits.new_full((logits.shape[0], self.vocab_size), -torch.inf)
        return whole.index_copy_(-1, self.target_ids, logits)
