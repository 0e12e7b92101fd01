"""Fresh heads for a target, begun from what it knows already: its output matrix and its final norm."""

from __future__ import annotations

import torch
from torch import nn
from transformers import LlamaConfig

from specworkbench.engine import LanguageModel
from specworkbench.engine.heads.feature import FeatureHead, FeatureShape
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape

__all__ = ["block_config", "draft_config", "make_eagle", "make_mtp", "make_medusa", "reduced_vocabulary"]


def block_config(target: LanguageModel, width: int = 0) -> LlamaConfig:
    """A Llama block of the target's width, heads, feed-forward and positions; or of another width, as a draft's.

    >>> from specworkbench.engine import load_model
    >>> block_config(load_model("embedded")).num_hidden_layers
    1
    """
    config = target.model.config.get_text_config()
    if width not in (0, config.hidden_size):
        return draft_config(target, width, depth=1)
    return LlamaConfig(
        hidden_size=config.hidden_size, intermediate_size=config.intermediate_size, num_hidden_layers=1,
        num_attention_heads=config.num_attention_heads, num_key_value_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        rms_norm_eps=getattr(config, "rms_norm_eps", 1e-6), rope_parameters=getattr(config, "rope_parameters", None),
        max_position_embeddings=target.max_context, vocab_size=target.vocab_size,
    )  # fmt: skip


def draft_config(target: LanguageModel, width: int, depth: int) -> LlamaConfig:
    """A small Llama of the target's vocabulary: heads of 32, a feed-forward of three widths, tied embeddings.

    >>> from specworkbench.engine import load_model
    >>> draft_config(load_model("embedded"), width=64, depth=2).hidden_size
    64
    """
    config = target.model.config.get_text_config()
    heads = max(1, width // 32)
    return LlamaConfig(
        vocab_size=config.vocab_size, hidden_size=32 * heads, num_hidden_layers=depth, intermediate_size=96 * heads,
        num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=target.max_context,
        tie_word_embeddings=True, rms_norm_eps=1e-6, eos_token_id=list(target.eos_ids) or None, bos_token_id=None,
        pad_token_id=getattr(config, "pad_token_id", None),
    )  # fmt: skip


def make_eagle(
    target: LanguageModel,
    layers: tuple[int, ...],
    target_ids: torch.Tensor | None = None,
    width: int = 0,
    seed: int = 0,
) -> FeatureHead:
    """An EAGLE-3 head.

    layers: hidden states it reads; target_ids: the tokens of a reduced vocabulary, None for all; width: of the head, 0:
    the target's. A narrower one has an embedding of its own, and begins with the main directions of the target's.

    >>> from specworkbench.engine import load_model
    >>> make_eagle(load_model("embedded"), layers=(1, -1)).shape.layers
    (1, -1)
    """
    config = block_config(target, width)
    own = target.model.get_input_embeddings().weight.data.float()
    narrow = config.hidden_size != own.shape[1]
    shape = FeatureShape(
        config, layers, own.shape[1], fused=True, wide=True, own_embedding=own.shape[0] if narrow else 0,
        vocabulary=target.vocab_size if target_ids is None else len(target_ids),
    )  # fmt: skip
    torch.manual_seed(seed)
    head = FeatureHead(shape, target, target_ids).float()
    _begin(head, target)
    rows = _output(target)[: target.vocab_size]
    if narrow:
        head.embedding.weight.data.copy_(_narrowed(own, config.hidden_size))
        rows = _narrowed(rows, config.hidden_size)
    head.head.weight.data.copy_(rows if target_ids is None else rows[target_ids])
    return head


def make_mtp(target: LanguageModel, modules: int, seed: int = 0) -> FeatureHead:
    """MTP modules as in DeepSeek-V3, with the target's embedding and output matrix.

    >>> from specworkbench.engine import load_model
    >>> make_mtp(load_model("embedded"), modules=2).shape.modules
    2
    """
    config = block_config(target)
    torch.manual_seed(seed)
    head = FeatureHead(FeatureShape(config, (-1,), config.hidden_size, modules=modules), target).float()
    _begin(head, target)
    return head


def make_medusa(target: LanguageModel, heads: int, layers: int = 1, seed: int = 0) -> MedusaHeads:
    """Medusa heads that begin as the target's own: residual layers of zero before its output matrix.

    >>> from specworkbench.engine import load_model
    >>> type(make_medusa(load_model("embedded"), heads=2)).__name__
    'MedusaHeads'
    """
    rows = _output(target)[: target.vocab_size]
    torch.manual_seed(seed)
    made = MedusaHeads(MedusaShape(heads, layers, rows.shape[1], target.vocab_size)).float()
    for stage in made.stages:
        for layer in stage:
            nn.init.zeros_(layer.linear.weight)
            nn.init.zeros_(layer.linear.bias)
    for head in made.heads:
        head.weight.data.copy_(rows)
    return made


def reduced_vocabulary(counts: torch.Tensor, size: int) -> torch.Tensor:
    """(size,) int64, ascending: the tokens that the target gives most often. counts: (vocabulary,).

    >>> reduced_vocabulary(torch.tensor([5, 0, 9, 1]), size=2)
    tensor([0, 2])
    """
    return counts.topk(min(size, len(counts))).indices.sort().values


def _begin(head: FeatureHead, target: LanguageModel) -> None:
    """Blocks that write nothing yet; output norms as the target's final one."""
    norm = getattr(target.model.get_decoder(), "norm", None)
    for stage in head.stages:
        nn.init.zeros_(stage.block.out.weight)
        nn.init.zeros_(stage.block.down.weight)
        if norm is not None and norm.weight.shape == stage.output_norm.weight.shape:
            stage.output_norm.weight.data.copy_(norm.weight.data)


def _narrowed(rows: torch.Tensor, width: int) -> torch.Tensor:
    """(n, width): the rows in their main directions."""
    _, _, directions = torch.linalg.svd(rows, full_matrices=False)
    return rows @ directions[:width].T


def _output(target: LanguageModel) -> torch.Tensor:
    return target.model.get_output_embeddings().weight.data.float()
