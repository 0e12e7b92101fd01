"""Medusa's two public layouts, FasterDecoding's and vLLM's, with what only vLLM's has: no biases, a token map."""

from __future__ import annotations

import re
from typing import Any

import torch

from specworkbench.engine.heads.layouts import Tensors, fill, pairs
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape
from specworkbench.engine.heads.shapes import checked_ids, hidden_size
from specworkbench.engine.models import LanguageModel


def medusa_heads(layout: str, config: dict[str, Any], tensors: Tensors, target: LanguageModel) -> MedusaHeads:
    """The heads in a checkpoint. Raises `ValueError` where tensors and target do not fit together.

    vLLM: residual layers have a bias only where the configuration says `medusa_fc_bias`; with `original_lm_head` all
    heads share lm_heads.0; `token_map` (rows,) int64 names the token of each row of a truncated vocabulary, and output
    matrices that are whole are cut down to it.
    """
    heads, layers = counted(layout, tensors)
    names = pairs(layout, heads, layers=layers)
    if layout == "vllm medusa":
        tensors = _completed(config, dict(tensors), heads, layers)
    output = dict(names)["heads.0.weight"][0]
    if output not in tensors:
        raise ValueError(f"tensors are missing: {output}")
    vocabulary, width = tensors[output].shape
    if width != hidden_size(target):
        raise ValueError(f"its heads read {width} features, the target has {hidden_size(target)}")
    ids = None
    if "token_map" in tensors:
        ids = checked_ids(tensors["token_map"].long(), "token_map", target)
    if (ids is None and vocabulary < target.vocab_size) or (ids is not None and len(ids) != vocabulary):
        told = "there is no token_map" if ids is None else f"its token_map {len(ids)} entries"
        raise ValueError(f"its heads give {vocabulary} logits, the target has {target.vocab_size} tokens, and {told}")
    ranks = tuple(tuple(float(value) for value in row) for row in config.get("rank_acceptance") or ())
    if ranks and len(ranks) != heads:
        raise ValueError(f"its configuration gives rank_acceptance for {len(ranks)} heads, and it has {heads}")
    built = MedusaHeads(MedusaShape(heads, layers, width, vocabulary, ranks), ids)
    fill(built, tensors, names)
    return built


def counted(layout: str, tensors: Tensors) -> tuple[int, int]:
    """(heads, residual layers in each), counted in the tensors: public configurations may be out of date."""
    pattern = r"blocks\.(\d+)\.layers\.(\d+)\.weight" if layout == "vllm medusa" else r"(\d+)\.(\d+)\.linear\.weight"
    found = [match.groups() for name in tensors if (match := re.fullmatch(pattern, name))]
    return 1 + max(int(head) for head, _ in found), 1 + max(int(layer) for _, layer in found)


def _completed(config: dict[str, Any], tensors: Tensors, heads: int, layers: int) -> Tensors:
    """vLLM's tensors with the biases, shared output matrices and rows that its loader would supply or cut."""
    if config.get("original_lm_head") and "lm_heads.0.weight" in tensors:
        tensors |= {f"lm_heads.{head}.weight": tensors["lm_heads.0.weight"] for head in range(heads)}
    if not config.get("medusa_fc_bias") and not any(name.endswith(".bias") for name in tensors):
        for name in [f"blocks.{head}.layers.{layer}" for head in range(heads) for layer in range(layers)]:
            if f"{name}.weight" in tensors:
                tensors[f"{name}.bias"] = torch.zeros_like(tensors[f"{name}.weight"][:, 0])
    kept = tensors.get("token_map")
    for name in [f"lm_heads.{head}.weight" for head in range(heads)] if kept is not None else []:
        if name in tensors and tensors[name].shape[0] > len(kept):
            tensors[name] = tensors[name][kept.long()]
    return tensors


def medusa_config(shape: MedusaShape) -> dict[str, Any]:
    """config.json of heads of ours in vLLM's layout, with FasterDecoding's keys beside vLLM's."""
    return {
        "architectures": ["MedusaModel"], "model_type": "medusa", "medusa_num_heads": shape.heads,
        "medusa_num_layers": shape.layers, "num_heads": shape.heads, "num_hidden_layers": shape.layers,
        "hidden_size": shape.width, "vocab_size": shape.vocabulary, "truncated_vocab_size": shape.vocabulary,
        "medusa_fc_bias": True, "torch_dtype": "float16",
        "rank_acceptance": [[round(value, 4) for value in row] for row in shape.ranks],
    }  # fmt: skip
