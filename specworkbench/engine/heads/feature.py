"""Heads that guess from the target's own features: EAGLE-1/2, EAGLE-3 and multi-token prediction (MTP) in one shape.

Every module takes, at position t, the embedding of token t + 1 and a feature of position t, mixes the two, runs one
decoder block over its own cache, and gives a feature of the next step and logits of token t + 2. They differ in what
`FeatureShape` says. EAGLE: Li et al. 2024 (2401.15077), 2025 (2503.01840); MTP: DeepSeek-V3 (2412.19437), section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedConfig

from specworkbench.engine.heads.blocks import Angles, Attend, Block, BlockCache, Norm, Rotary
from specworkbench.engine.heads.library_block import LibraryBlock, LibraryCache, LibraryRotary
from specworkbench.engine.models import LanguageModel

LARGEST_TABLE = 2**22
"""Entries of an embedding up to which a head keeps it normed."""


@dataclass(frozen=True)
class FeatureShape:
    """What tells one feature head from another.

    config: of the decoder block; layers: the target's hidden states that are read, as transformers numbers them (-1 the
    last, after the norm); target_width: their width; vocabulary: rows of the head's own output matrix, 0: the target's
    is used. modules: one is used again for every guess (EAGLE, Qwen3-Next, MiMo), several are chained, one for each
    guess (DeepSeek-V3). fused: several hidden states go through one matrix (EAGLE-3). wide: the attention reads
    cat[embedding, feature] (EAGLE-3) instead of a projection of it. feature_first: the order in that pair.
    norm_embedding, norm_feature, norm_input, norm_output: where there are norms; norm_fused: one over the joined hidden
    states; norm_layers: one over each of them; centred: see `Norm`. residual_normed: whether the wide block's residual
    is the normed feature; feeds_normed: whether the next step gets the normed output. own_embedding: rows of the head's
    own embedding, 0: the target's is used. layer_class: transformers' decoder layer where the block is not of Llama's
    shape (see `library_block`), with a configuration of its own kind.
    """

    config: PreTrainedConfig
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
    norm_layers: bool = False
    norm_input: bool = True
    norm_output: bool = True
    residual_normed: bool = False
    feeds_normed: bool = False
    project_bias: bool = False
    own_embedding: int = 0
    centred: bool = False
    layer_class: type[nn.Module] | None = None


class FeatureModule(nn.Module):
    """One such module; the names follow the shape."""

    def __init__(self, shape: FeatureShape):
        super().__init__()
        config, self.shape = shape.config, shape
        width, epsilon, centred = config.hidden_size, config.rms_norm_eps, shape.centred
        if shape.norm_embedding:
            self.embedding_norm = Norm(width, epsilon, centred)
        if shape.norm_feature:
            self.feature_norm = Norm(width, epsilon, centred)
        if not shape.wide:
            self.project = nn.Linear(2 * width, width, bias=shape.project_bias)
        if not shape.wide and shape.norm_input:
            self.input_norm = Norm(width, epsilon, centred)
        if shape.layer_class is None:
            self.block = Block(config, 2 * width if shape.wide else width, centred)
        else:
            self.block = LibraryBlock(shape.layer_class, config)
        if shape.norm_output:
            self.output_norm = Norm(width, epsilon, centred)

    def forward(
        self, embedded: torch.Tensor, feature: torch.Tensor, angles: Angles, attend: Attend
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """embedded, feature: (..., n, width), the first normed already (see `FeatureHead.embedded`).

        Returns the feature of the next step and what the head reads.
        """
        shape = self.shape
        normed = self.feature_norm(feature) if shape.norm_feature else feature
        pair = torch.cat([normed, embedded] if shape.feature_first else [embedded, normed], dim=-1)
        if shape.wide:
            read, residual = pair, normed if shape.residual_normed else feature
        else:
            residual = self.project(pair)
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
            if shape.norm_layers:
                norms = (Norm(shape.target_width, shape.config.rms_norm_eps) for _ in shape.layers)
                self.layer_norms = nn.ModuleList(norms)
        if shape.own_embedding:
            self.embedding = nn.Embedding(shape.own_embedding, width)
        if shape.vocabulary:
            self.head = nn.Linear(width, shape.vocabulary, bias=False)
        self.register_buffer("target_ids", target_ids, persistent=False)
        self.rotary = Rotary(shape.config) if shape.layer_class is None else LibraryRotary(target.model)
        self._borrowed = (target.model.get_input_embeddings(), target.head)
        self.vocab_size = target.vocab_size
        self._tables: dict[int, torch.Tensor] = {}

    def features(self, hidden: dict[int, torch.Tensor]) -> torch.Tensor:
        """{layer: (..., n, target_width)} to the feature (..., n, width) of the first module."""
        shape, dtype = self.shape, next(self.parameters()).dtype
        rows = [hidden[layer].to(dtype) for layer in shape.layers]
        if not shape.fused:
            return rows[0]
        joined = torch.cat(rows, dim=-1)
        if shape.norm_fused:
            joined = self.fuse_norm(joined)
        if shape.norm_layers:
            parts = joined.split(shape.target_width, dim=-1)
            joined = torch.cat([norm(part) for norm, part in zip(self.layer_norms, parts, strict=True)], dim=-1)
        return self.fuse(joined)

    def new_caches(self) -> list[BlockCache | LibraryCache]:
        """Empty caches of one sequence, one for each module."""
        return [stage.block.new_cache() for stage in self.stages]

    def embedded(self, ids: torch.Tensor, module: int = 0) -> torch.Tensor:
        """ids (..., n) to embeddings (..., n, width) as a module reads them.

        A small vocabulary is normed once, outside training: a step is a lookup.
        """
        embedding, stage = self.embedding if self.shape.own_embedding else self._borrowed[0], self.stages[module]
        if not self.shape.norm_embedding:
            return embedding(ids)
        if self.training or embedding.weight.numel() > LARGEST_TABLE:
            return stage.embedding_norm(embedding(ids))
        if module not in self._tables:
            self._tables[module] = stage.embedding_norm(embedding.weight)
        return functional.embedding(ids, self._tables[module])

    def own_logits(self, headed: torch.Tensor) -> torch.Tensor:
        """(..., n, width) to logits over the head's own vocabulary, or the target's where it has none."""
        return (self.head if self.shape.vocabulary else self._borrowed[1])(headed)

    def logits(self, headed: torch.Tensor) -> torch.Tensor:
        """(n, width) to logits (n, the target's vocabulary); -inf for what a reduced vocabulary lacks."""
        return over_vocabulary(self.own_logits(headed), self.target_ids, self.vocab_size)


def over_vocabulary(logits: torch.Tensor, target_ids: torch.Tensor | None, size: int) -> torch.Tensor:
    """Logits (n, rows of an output matrix) over the target's vocabulary (n, size).

    target_ids: (rows,) the target's id of each entry of a reduced vocabulary; what it lacks is -inf. None: padding rows
    are cut off.
    """
    if target_ids is None:
        return logits[:, :size]
    whole = logits.new_full((logits.shape[0], size), -torch.inf)
    return whole.index_copy_(-1, target_ids, logits)
