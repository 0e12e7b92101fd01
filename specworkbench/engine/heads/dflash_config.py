"""What a DFlash checkpoint says of itself, in the three layouts in which such heads are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Qwen3Config

from specworkbench.errors import InputError

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
OPTIONAL = (
    "num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "max_position_embeddings", "attention_bias",
    "rope_parameters", "rope_theta", "rope_scaling", "layer_types",
)  # fmt: skip
TRANSFORMERS_TYPES = ("muse_glimmer_assistant",)
"""Model types of transformers that are DFlash heads."""


@dataclass(frozen=True)
class Reach:
    """How many positions behind itself and ahead of itself a place of the block sees; None: all."""

    behind: int | None = None
    ahead: int | None = None

    def mask(self, queries: int, keys: int, device: torch.device) -> torch.Tensor | None:
        """(queries, keys) bools, the queries being the last of the keys; None where everything is seen."""
        if self.behind is None and self.ahead is None:
            return None
        key = torch.arange(keys, device=device)
        distance = key[keys - queries :].unsqueeze(1) - key
        seen = torch.ones_like(distance, dtype=torch.bool)
        if self.behind is not None:
            seen &= distance <= self.behind
        if self.ahead is not None:
            seen &= -distance <= self.ahead
        return seen


@dataclass(frozen=True)
class DFlashConfig:
    """A head's shape and its place at the target.

    decoder: sizes of its layers; hidden_layers: which hidden states of the target it reads, numbered as transformers
    does (0 the embeddings); mask_token; block_size: the last token and the masks it was trained to fill; reaches: one a
    layer; embedding_scale, output_multiplier and softcap (0: none) of a target that has them.
    """

    decoder: Qwen3Config
    hidden_layers: tuple[int, ...]
    mask_token: int
    block_size: int
    reaches: tuple[Reach, ...]
    target_width: int
    embedding_scale: float = 1.0
    output_multiplier: float = 1.0
    softcap: float = 0.0

    @property
    def feature_width(self) -> int:
        """Width of the concatenated hidden states."""
        return len(self.hidden_layers) * self.target_width


def is_dflash(entry: Mapping[str, Any]) -> bool:
    """Whether a config.json describes a DFlash head."""
    return (
        "dflash_config" in entry
        or entry.get("speculators_model_type") == "dflash"
        or entry.get("model_type") in TRANSFORMERS_TYPES
    )


def read_dflash(entry: Mapping[str, Any], name: str) -> DFlashConfig:
    """A config.json as z-lab and vLLM (`dflash_config`), speculators or transformers write it.

    The first and the last number the target's layers from 0, so that their hidden states are one further on;
    speculators numbers the hidden states. Raises `InputError` for what is missing, and for variants that compute more.
    """
    inner = {**entry, **(entry.get("dflash_config") or {})}
    sizes = entry.get("transformer_layer_config") or entry
    _check_variant(inner, name)
    if "aux_hidden_state_layer_ids" in inner and "target_layer_ids" not in inner:
        hidden_layers = inner["aux_hidden_state_layer_ids"]
    else:
        hidden_layers = [layer + 1 for layer in inner.get("target_layer_ids") or ()]
    missing = [key for key in REQUIRED if key not in sizes]
    missing += [key for key in ("mask_token_id", "block_size") if inner.get(key) is None]
    missing += [] if hidden_layers else ["target_layer_ids"]
    if missing:
        raise InputError(f"the config.json of the DFlash head {name!r} does not give {', '.join(missing)}")
    if inner["block_size"] < 2:
        raise InputError(
            f"the block size of the DFlash head {name!r} is {inner['block_size']}; 2 is the least to guess"
        )
    decoder = Qwen3Config(**{key: sizes[key] for key in (*REQUIRED, *OPTIONAL) if sizes.get(key) is not None})
    return DFlashConfig(
        decoder,
        tuple(hidden_layers),
        inner["mask_token_id"],
        inner["block_size"],
        tuple(_reach(kind, inner, sizes, name) for kind in decoder.layer_types),
        inner.get("target_hidden_size") or decoder.hidden_size,
        float(inner.get("input_embedding_scale") or 1.0),
        float(inner.get("output_multiplier") or 1.0),
        float(inner.get("final_logit_softcapping") or 0.0),
    )


def _reach(kind: str, inner: Mapping[str, Any], sizes: Mapping[str, Any], name: str) -> Reach:
    """What a layer of this kind sees. A sliding layer of transformers sees its window on both sides, the end included;
    one of z-lab or speculators the window that ends at itself, unless the configuration says that it is not causal.
    """
    causal = inner.get("is_causal")
    if kind == "full_attention":
        return Reach(ahead=0 if causal else None)
    window = sizes.get("sliding_window")
    if kind != "sliding_attention" or not window:
        raise InputError(f"the DFlash head {name!r} has a layer of kind {kind!r} (window {window}), which is not known")
    if inner.get("model_type") in TRANSFORMERS_TYPES:
        return Reach(window, window)
    if causal is None:
        causal = not inner.get("sliding_window_non_causal", False)
    return Reach(window - 1, 0 if causal else window - 1)


def _check_variant(inner: Mapping[str, Any], name: str) -> None:
    variants = {"projector_type": "dflash", "sample_from_anchor": False, "shift_label": False, "fc_layernorm": False}
    for key, plain in variants.items():
        if inner.get(key, plain) not in (plain, None):
            raise InputError(
                f"the DFlash head {name!r} has {key} {inner[key]!r}, a variant that computes otherwise and is not known"
            )
