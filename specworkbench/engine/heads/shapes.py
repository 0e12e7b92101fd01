"""Which layout a checkpoint is in and which `FeatureShape` its tensors and configuration describe."""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import LlamaConfig

from specworkbench.engine.heads.feature import FeatureShape
from specworkbench.engine.models import LanguageModel

BLOCK_KEYS = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps",
    "hidden_act", "rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings", "vocab_size",
)  # fmt: skip


def recognised(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> str | None:
    """The layout, by the names of the tensors (widths may mislead); None for one that is not known."""
    names = tensors.keys()
    if any(name.startswith("midlayer.") for name in names):
        return "eagle3"
    if "layers.0.hidden_norm.weight" in names:
        return "speculators eagle3"
    if "fc.weight" in names and "layers.0.self_attn.q_proj.weight" in names:
        return "eagle"
    if any(re.fullmatch(r"model\.layers\.\d+\.eh_proj\.weight", name) for name in names):
        return "deepseek mtp"
    if "mtp.fc.weight" in names:
        return "qwen mtp"
    if "model.mtp_layers.0.input_proj.weight" in names:
        return "mimo mtp"
    if "blocks.0.layers.0.weight" in names:
        return "vllm medusa"
    return "medusa" if "0.0.linear.weight" in names else None


def medusa_layout(layout: str, tensors: dict[str, torch.Tensor]) -> tuple[int, int]:
    """(heads, residual layers in each), counted in the tensors: a public configuration may be out of date."""
    vllm = layout == "vllm medusa"
    pattern = r"blocks\.(\d+)\.layers\.(\d+)\.weight" if vllm else r"(\d+)\.(\d+)\.linear\.weight"
    found = [match.groups() for name in tensors if (match := re.fullmatch(pattern, name))]
    return 1 + max(int(head) for head, _ in found), 1 + max(int(layer) for _, layer in found)


def feature_shape(
    layout: str, config: dict[str, Any], tensors: dict[str, torch.Tensor], target: LanguageModel
) -> FeatureShape:
    """The shape of a feature head in a layout. Raises `ValueError` where tensors and target do not fit together."""
    own = target.model.config.get_text_config()
    if "mtp" in layout:
        return _mtp_shape(layout, config, tensors, target)
    inner = config.get("transformer_layer_config") or config
    block = _block_config(inner, tensors, "midlayer" if layout == "eagle3" else "layers.0")
    if layout == "eagle":
        return FeatureShape(
            block, (-1,), own.hidden_size, norm_embedding=False, norm_feature=False, norm_input=False,
            norm_output=False, project_bias="fc.bias" in tensors,
            own_embedding=_differs(tensors, "embed_tokens.weight", target),
        )  # fmt: skip
    layers = _feature_layers(config, own.num_hidden_layers)
    width = int(config.get("target_hidden_size") or own.hidden_size)
    fused = "fc.weight" in tensors
    if fused and tensors["fc.weight"].shape[1] != len(layers) * own.hidden_size:
        raise ValueError(
            f"fc.weight reads {tensors['fc.weight'].shape[1]} features, and {len(layers)} layers of the target have "
            f"{own.hidden_size} each"
        )
    speculators = layout.startswith("speculators")
    return FeatureShape(
        block, layers, width, vocabulary=tensors["lm_head.weight"].shape[0] if "lm_head.weight" in tensors else 0,
        fused=fused, wide=True, norm_fused="fc_norm.weight" in tensors,
        residual_normed=bool(config.get("norm_before_residual", speculators)),
        feeds_normed=bool(config.get("norm_output", False)),
        own_embedding=_differs(tensors, "embed_tokens.weight", target),
    )  # fmt: skip


def _mtp_shape(
    layout: str, config: dict[str, Any], tensors: dict[str, torch.Tensor], target: LanguageModel
) -> FeatureShape:
    own = target.model.config.get_text_config()
    prefix = {
        "deepseek mtp": f"model.layers.{own.num_hidden_layers}", "qwen mtp": "mtp.layers.0",
        "mimo mtp": "model.mtp_layers.0",
    }[layout]  # fmt: skip
    if f"{prefix}.mlp.gate_proj.weight" not in tensors or f"{prefix}.self_attn.q_proj.weight" not in tensors:
        raise ValueError(
            f"its block {prefix} has no plain attention and feed-forward (a mixture of experts, or latent attention), "
            "which this version does not run"
        )
    modules = sum(bool(re.fullmatch(_counted(layout), name)) for name in tensors)
    block = _block_config(own.to_dict() | config, tensors, prefix)
    return FeatureShape(
        block, (-1,), own.hidden_size, modules=modules, feature_first=layout == "mimo mtp",
        feeds_normed=bool(config.get("chains_normed_feature", layout != "deepseek mtp")),
    )  # fmt: skip


def _counted(layout: str) -> str:
    return {
        "deepseek mtp": r"model\.layers\.\d+\.eh_proj\.weight", "qwen mtp": r"mtp\.fc\.weight",
        "mimo mtp": r"model\.mtp_layers\.\d+\.input_proj\.weight",
    }[layout]  # fmt: skip


def _block_config(inner: dict[str, Any], tensors: dict[str, torch.Tensor], prefix: str) -> LlamaConfig:
    given = {key: inner[key] for key in BLOCK_KEYS if inner.get(key) is not None}
    config = LlamaConfig(**given, num_hidden_layers=1)
    config.attention_bias = f"{prefix}.self_attn.q_proj.bias" in tensors
    config.mlp_bias = f"{prefix}.mlp.gate_proj.bias" in tensors
    return config


def _feature_layers(config: dict[str, Any], depth: int) -> tuple[int, ...]:
    """The hidden states an EAGLE-3 head reads; by default SafeAILab's: 2, the middle, the third from the end."""
    inner = config.get("eagle_config") or {}
    given = config.get("eagle_aux_hidden_state_layer_ids") or inner.get("eagle_aux_hidden_state_layer_ids")
    return tuple(given) if given else (2, depth // 2, depth - 3)


def _differs(tensors: dict[str, torch.Tensor], name: str, target: LanguageModel) -> bool:
    """Whether the head brings an embedding that is not just the target's own again."""
    if name not in tensors:
        return False
    own = target.model.get_input_embeddings().weight
    given = tensors[name]
    return given.shape != own.shape or not torch.equal(given.to(own.dtype), own.detach().to("cpu"))


def feature_config(shape: FeatureShape, target: LanguageModel, kind: str) -> dict[str, Any]:
    """config.json of a head of ours: the block's, and what its public layout says beside it."""
    block = shape.config.to_dict()
    config = {key: block[key] for key in BLOCK_KEYS if block.get(key) is not None}
    config |= {"num_hidden_layers": 1, "model_type": "llama", "torch_dtype": "float16", "vocab_size": target.vocab_size}
    if kind == "eagle":
        return config | {
            "architectures": ["LlamaForCausalLMEagle3"],
            "draft_vocab_size": shape.vocabulary or target.vocab_size,
            "target_hidden_size": shape.target_width,
            "norm_before_residual": shape.residual_normed,
            "norm_output": shape.feeds_normed,
            "eagle_config": {
                "eagle_aux_hidden_state_layer_ids": list(shape.layers), "use_aux_hidden_state": True,
                "norm_before_fc": shape.norm_fused,
            },
        }  # fmt: skip
    return config | {
        "architectures": ["LlamaForCausalLM"],
        "num_nextn_predict_layers": shape.modules,
        "num_target_layers": target.model.config.get_text_config().num_hidden_layers,
        "chains_normed_feature": shape.feeds_normed,
    }
