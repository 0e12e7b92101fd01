"""The `FeatureShape` of MTP modules in the layouts of DeepSeek-V3 and GLM-4.5, Qwen3-Next and 3.5, and MiMo.

What a module hands on is un-normed in DeepSeek-V3's paper (2412.19437, eq. 21 to 23: the block's output; the head norms
it) and in vLLM, and normed in transformers and SGLang; for Qwen3-Next and MiMo it is normed in vLLM too. The published
checkpoints of the first kind have one module, for which it matters from the second guess on. A configuration may say
otherwise by the key "chains_normed_feature". vLLM and SGLang also blank the embedding at position 0; the paper and
transformers do not, nor is it done here.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from specworkbench.engine.heads.feature import FeatureShape
from specworkbench.engine.heads.layouts import Tensors
from specworkbench.engine.heads.library_block import module_config
from specworkbench.engine.heads.shapes import block_config, differs, hidden_size
from specworkbench.engine.models import LanguageModel

MODULE = {
    "deepseek mtp": r"model\.layers\.(\d+)\.eh_proj\.weight",
    "qwen mtp": r"mtp\.layers\.(\d+)\.input_layernorm\.weight",
    "mimo mtp": r"model\.mtp_layers\.(\d+)\.input_proj\.weight",
}
"""The tensor that every module has one of."""
AROUND = (
    "enorm.", "hnorm.", "eh_proj.", "shared_head.", "embed_tokens.", "token_layernorm.", "hidden_layernorm.",
    "input_proj.", "final_layernorm.",
)  # fmt: skip
"""What stands beside a block's own tensors under the same prefix."""
PLAIN = re.compile(
    r"self_attn\.([qkv]_proj\.(weight|bias)|o_proj\.weight|[qk]_norm\.weight)"
    r"|mlp\.(gate|up|down)_proj\.(weight|bias)|(input|post_attention)_layernorm\.weight"
)
"""The tensors of a block of Llama's shape."""


def mtp_shape(layout: str, config: dict[str, Any], tensors: Tensors, target: LanguageModel) -> FeatureShape:
    """The shape of MTP modules. Raises `ValueError` where tensors and target do not fit together."""
    own = target.model.config.get_text_config()
    first = own.num_hidden_layers if layout == "deepseek mtp" else 0
    found = sorted(int(match.group(1)) for name in tensors if (match := re.fullmatch(MODULE[layout], name)))
    if found != list(range(first, first + len(found))) or not found:
        raise ValueError(f"its MTP modules are numbered {found}; for this target they would begin at {first}")
    if layout == "qwen mtp" and len(found) > 1:
        raise ValueError(f"it has {len(found)} blocks under one mtp.fc; only modules of one block are run")
    centred = norms_are_centred(target)
    shared = {
        "modules": len(found), "feature_first": layout == "mimo mtp", "centred": centred,
        "feeds_normed": bool(config.get("chains_normed_feature", layout != "deepseek mtp")),
    } | _own_matrices(layout, first, tensors, target)  # fmt: skip
    prefix, inner = block_prefix(layout, first), _inner(own.to_dict(), config)
    if _llama_shaped(prefix, inner, tensors):
        return FeatureShape(block_config(inner, tensors, prefix), (-1,), hidden_size(target), **shared)
    decoder = target.model.get_decoder()
    if getattr(decoder, "rotary_emb", None) is None:
        raise ValueError(f"its block is not of Llama's shape, and {type(decoder).__name__} has no rotary positions")
    return FeatureShape(
        module_config(own), (-1,), hidden_size(target), norm_input=False, layer_class=type(decoder.layers[-1]), **shared
    )


def block_prefix(layout: str, module: int) -> str:
    """Where the tensors of a module's block are. module: its public number."""
    return {"deepseek mtp": "model.layers.{}", "qwen mtp": "mtp.layers.{}", "mimo mtp": "model.mtp_layers.{}"}[
        layout
    ].format(module)


def _inner(own: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """The target's configuration under the checkpoint's, whose rotary positions replace the target's as a whole."""
    rotary = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")
    turned = any(config.get(key) is not None for key in rotary)
    return {key: value for key, value in own.items() if not (turned and key in rotary)} | config


def _llama_shaped(prefix: str, inner: dict[str, Any], tensors: Tensors) -> bool:
    """Whether a block is one of Llama's shape: its tensors' names, whole heads turned, and queries without gates."""
    names = [name.removeprefix(f"{prefix}.") for name in tensors if name.startswith(f"{prefix}.")]
    if not all(PLAIN.fullmatch(name) for name in names if not name.startswith(AROUND)):
        return False
    heads = inner["num_attention_heads"]
    rows = heads * (inner.get("head_dim") or inner["hidden_size"] // heads)
    query = tensors.get(f"{prefix}.self_attn.q_proj.weight")
    partial = (inner.get("rope_parameters") or {}).get("partial_rotary_factor", 1.0)
    return inner.get("partial_rotary_factor", partial) == 1.0 and (query is None or query.shape[0] == rows)


def norms_are_centred(target: LanguageModel) -> bool:
    """Whether the norms of the target's architecture multiply by 1 + weight: tried out, with a weight of zero."""
    kind = type(getattr(target.model.get_decoder(), "norm", None))
    try:
        norm = kind(4)
        norm.weight.data.zero_()
    except (TypeError, AttributeError):
        return False
    return bool(norm(torch.ones(1, 4)).abs().sum() > 0)


def _own_matrices(layout: str, first: int, tensors: Tensors, target: LanguageModel) -> dict[str, int]:
    """Rows of an embedding and an output matrix of the modules' own; 0 where they only repeat the target's.

    The modules share them (DeepSeek-V3, section 2.2), so the first one's count, as in vLLM.
    """
    if layout != "deepseek mtp":
        return {}
    embedding = tensors.get(f"model.layers.{first}.embed_tokens.weight")
    head = tensors.get(f"model.layers.{first}.shared_head.head.weight")
    pairs = {
        "own_embedding": (embedding, target.model.get_input_embeddings().weight),
        "vocabulary": (head, target.model.get_output_embeddings().weight),
    }
    return {
        key: given.shape[0] if given is not None and differs(given, own) else 0 for key, (given, own) in pairs.items()
    }
