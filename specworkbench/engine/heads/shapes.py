"""Which layout a checkpoint is in and which `FeatureShape` its tensors and configuration describe."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import torch
from transformers import LlamaConfig

from specworkbench.engine.heads.feature import FeatureShape
from specworkbench.engine.heads.layouts import Tensors
from specworkbench.engine.models import LanguageModel
from specworkbench.paths import HEAD_MARK

BLOCK_KEYS = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps",
    "hidden_act", "rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings", "vocab_size",
)  # fmt: skip


def recognised(names: Collection[str]) -> str | None:
    """The layout, by the names of the tensors (widths may mislead); None for one that is not known."""
    if any(name.startswith("midlayer.") for name in names):
        return "eagle3"
    if "layers.0.hidden_norm.weight" in names:
        return "speculators eagle3"
    if "fusion_fc.weight" in names:
        return "speculators eagle"
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


def eagle_shape(layout: str, config: dict[str, Any], tensors: Tensors, target: LanguageModel) -> FeatureShape:
    """The shape of an EAGLE-1/2 or EAGLE-3 head. Raises `ValueError` where tensors, configuration and target differ."""
    prefix = {"eagle3": "midlayer", "speculators eagle": "transformer"}.get(layout, "layers.0")
    inner = config.get("transformer_layer_config") or config
    if int(inner.get("num_hidden_layers", 1)) != 1:
        raise ValueError(f"its configuration has {inner['num_hidden_layers']} blocks; only heads of one block are run")
    block = block_config(inner, tensors, prefix)
    shared = {"own_embedding": _own_embedding(block, tensors, target), "vocabulary": _rows(tensors, "lm_head.weight")}
    if not shared["vocabulary"]:
        _check_borrowed(block.hidden_size, target)
    if layout.endswith("eagle3"):
        return _eagle3_shape(config, block, tensors, target, shared, layout)
    if config.get("layernorms"):
        raise ValueError(
            "it has the extra norms of speculators' EAGLE ('layernorms': true), which speculators and vLLM place "
            "differently; only heads without them are read"
        )
    bias = config.get("fusion_bias" if layout.startswith("speculators") else "bias", False)
    return FeatureShape(
        block, (-1,), hidden_size(target), norm_embedding=False, norm_feature=False, norm_input=False,
        norm_output=False, project_bias=bool(bias) or any(name in tensors for name in ("fc.bias", "fusion_fc.bias")),
        **shared,
    )  # fmt: skip


def _eagle3_shape(
    config: dict[str, Any], block: LlamaConfig, tensors: Tensors, target: LanguageModel, shared: dict[str, int],
    layout: str,
) -> FeatureShape:  # fmt: skip
    """norm_before_residual: absent means True in speculators' format (as vLLM reads it), and False elsewhere.

    norm_output: the next step gets the normed output (speculators, from 2026 on); elsewhere the un-normed one.
    """
    inner = config.get("eagle_config") or {}
    own, fused = hidden_size(target), bool(inner.get("use_aux_hidden_state", True))
    layers = _feature_layers(config, target, layout) if fused else (-1,)
    width = int(config.get("target_hidden_size") or own)
    if width != own:
        raise ValueError(f"it was made for a target of width {width}, {target.name} has {own}")
    if fused and "fc.weight" in tensors and tensors["fc.weight"].shape[1] != len(layers) * own:
        raise ValueError(
            f"fc.weight reads {tensors['fc.weight'].shape[1]} features, and {len(layers)} hidden states of the target "
            f"have {own} each; the configuration's eagle_aux_hidden_state_layer_ids may name others"
        )
    if not fused and own != block.hidden_size:
        raise ValueError(
            f"it reads the last hidden state as it is (use_aux_hidden_state is false), which has width {own}, and its "
            f"block has {block.hidden_size}"
        )
    return FeatureShape(
        block, layers, width, fused=fused, wide=True,
        norm_fused=_said(config, "norm_before_fc") or "input_norm.weight" in tensors,
        norm_layers=_said(config, "fc_norm") or "fc_norm.0.weight" in tensors,
        residual_normed=bool(config.get("norm_before_residual", "speculators_model_type" in config)),
        feeds_normed=bool(config.get("norm_output", False)), **shared,
    )  # fmt: skip


def block_config(inner: dict[str, Any], tensors: Tensors, prefix: str) -> LlamaConfig:
    """A Llama block: sizes from a configuration, biases and norms by the tensors. Raises `ValueError` for others."""
    given = {key: inner[key] for key in BLOCK_KEYS if inner.get(key) is not None}
    config = LlamaConfig(**given, num_hidden_layers=1)
    partial = (config.rope_parameters or {}).get("partial_rotary_factor", 1.0)
    if inner.get("partial_rotary_factor", partial) != 1.0:
        raise ValueError("its block turns a part of each head only (partial_rotary_factor), which is not run here")
    config.attention_bias = f"{prefix}.self_attn.q_proj.bias" in tensors
    config.mlp_bias = f"{prefix}.mlp.gate_proj.bias" in tensors
    config.qk_norm = f"{prefix}.self_attn.q_norm.weight" in tensors
    sliding = (inner.get("layer_types") or [""])[0] == "sliding_attention"
    config.window = int(inner.get("sliding_window") or 0) if sliding else 0
    return config


def hidden_size(target: LanguageModel) -> int:
    """Width of the target's hidden states."""
    return target.model.config.get_text_config().hidden_size


def _said(config: dict[str, Any], key: str) -> bool:
    return bool(config.get(key) or (config.get("eagle_config") or {}).get(key))


def _feature_layers(config: dict[str, Any], target: LanguageModel, layout: str) -> tuple[int, ...]:
    """The hidden states an EAGLE-3 head reads; by default SafeAILab's: 2, the middle, the third from the end.

    Number i is the state BEFORE layer i, transformers' hidden_states[i], in SafeAILab's code, vLLM and speculators. In
    SpecForge, SGLang and ModelOpt it is the output of layer i, hidden_states[i + 1]. A configuration does not say which
    it means; but 1, n//2 - 1, n - 4 is the others' default, the same three states, and is read so. vLLM's number n is
    the last state before the final norm, which the engine does not give; -1, in heads made here, is the one after it.
    """
    depth = target.model.config.get_text_config().num_hidden_layers
    inner = config.get("eagle_config") or {}
    given = config.get("eagle_aux_hidden_state_layer_ids") or inner.get("eagle_aux_hidden_state_layer_ids")
    default = (2, depth // 2, depth - 3)
    layers = tuple(int(layer) for layer in given) if given else default
    outputs = layers == tuple(layer - 1 for layer in default)
    if outputs and layout == "eagle3" and HEAD_MARK not in config:
        layers = default
    if not all(layer == -1 or 0 <= layer < depth for layer in layers):
        raise ValueError(
            f"it reads the hidden states {list(layers)}; the target's are 0 to {depth - 1} before its layers, and -1 "
            "after the final norm"
        )
    return layers


def _rows(tensors: Tensors, name: str) -> int:
    return tensors[name].shape[0] if name in tensors else 0


def _check_borrowed(width: int, target: LanguageModel) -> None:
    own = target.model.get_output_embeddings().weight.shape[1]
    if width != own:
        raise ValueError(
            f"it has no lm_head, and its block of width {width} does not fit the target's, which reads {own}"
        )


def _own_embedding(block: LlamaConfig, tensors: Tensors, target: LanguageModel) -> int:
    """Rows of the embedding that the head brings; 0 where that is only the target's own again, or there is none."""
    own = target.model.get_input_embeddings().weight
    if "embed_tokens.weight" in tensors:
        given = tensors["embed_tokens.weight"]
        if given.shape[0] < target.vocab_size:
            raise ValueError(f"its embed_tokens has {given.shape[0]} rows, the target {target.vocab_size} tokens")
        return given.shape[0] if differs(given, own) else 0
    if own.shape[1] != block.hidden_size:
        raise ValueError(
            f"its block has width {block.hidden_size}, the target's embedding {own.shape[1]}; it must bring an "
            "embed_tokens.weight of its own"
        )
    return 0


def differs(given: torch.Tensor, own: torch.Tensor) -> bool:
    """Whether a stored tensor is another than the target's, in the target's dtype."""
    return given.shape != own.shape or not torch.equal(given.to(own.dtype), own.detach().to("cpu"))


def target_ids(tensors: Tensors, rows: int, target: LanguageModel) -> torch.Tensor | None:
    """(rows,) int64, the target's id of each entry of a reduced vocabulary, from d2t, which holds OFFSETS: i + d2t[i].

    None where the head's vocabulary is the target's. Raises `ValueError` for ids that are none, or that come twice.
    """
    if "d2t" not in tensors:
        if rows and rows < target.vocab_size:
            raise ValueError(f"its lm_head has {rows} rows, the target {target.vocab_size} tokens, and there is no d2t")
        return None
    offsets = tensors["d2t"].long()
    if not rows:
        raise ValueError("it has a reduced vocabulary (d2t), and lm_head.weight is missing")
    if offsets.shape != (rows,):
        raise ValueError(f"its d2t has {offsets.numel()} entries, its lm_head {rows} rows")
    if not offsets.any() and rows >= target.vocab_size:
        return None
    return checked_ids(offsets + torch.arange(rows), "d2t", target)


def checked_ids(ids: torch.Tensor, name: str, target: LanguageModel) -> torch.Tensor:
    """The ids, if each is a token of the target and none comes twice. Raises `ValueError` naming the tensor."""
    outside = ids[(ids < 0) | (ids >= target.vocab_size)]
    if outside.numel():
        raise ValueError(f"its {name} leads to token {int(outside[0])}, the target has {target.vocab_size} tokens")
    if ids.unique().numel() != ids.numel():
        raise ValueError(f"its {name} leads to some token twice")
    return ids


def feature_config(shape: FeatureShape, target: LanguageModel, kind: str) -> dict[str, Any]:
    """config.json of a head of ours: the block's, and what its public layout says beside it."""
    block, depth = shape.config.to_dict(), target.model.config.get_text_config().num_hidden_layers
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
                "eagle_aux_hidden_state_layer_ids": list(shape.layers),
                "use_aux_hidden_state": shape.fused, "norm_before_fc": shape.norm_fused, "fc_norm": shape.norm_layers,
            },
        }  # fmt: skip
    return config | {
        "architectures": ["LlamaForCausalLM"],
        "num_nextn_predict_layers": shape.modules,
        "num_target_layers": depth,
        "chains_normed_feature": shape.feeds_normed,
    }
