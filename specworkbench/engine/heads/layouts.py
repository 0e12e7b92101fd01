"""The names of heads' tensors in public checkpoints, and ours for the same. See `files` for reading.

A table maps our name to the public one, or to several that are joined along their first dimension (query, key, value;
gate, up). `{i}` counts the modules, `{n}` = L + i goes on from the target's L layers, `{base}` = L.

Sources: SafeAILab/EAGLE `cnets1.py` (EAGLE-1/2) and `cnets.py` (EAGLE-3); vllm-project/speculators `models/eagle.py`,
`models/eagle3`; vLLM `llama_eagle3.py`, `medusa.py`, `deepseek_mtp.py`, `qwen3_next_mtp.py`, `mimo_mtp.py`;
FasterDecoding/Medusa.
"""

from __future__ import annotations

import re

import torch
from torch import nn

Names = dict[str, str | tuple[str, ...]]
Tensors = dict[str, torch.Tensor]
Pairs = list[tuple[str, tuple[str, ...]]]
"""Our tensor and the public ones it joins."""


def _block(prefix: str, input_norm: bool = True) -> Names:
    """A decoder block with Llama's names."""
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    names: Names = {
        "stages.{i}.block.qkv": (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
        "stages.{i}.block.out": f"{attention}.o_proj",
        "stages.{i}.block.query_norm": f"{attention}.q_norm",
        "stages.{i}.block.key_norm": f"{attention}.k_norm",
        "stages.{i}.block.mlp_norm": f"{prefix}.post_attention_layernorm",
        "stages.{i}.block.gate_up": (f"{mlp}.gate_proj", f"{mlp}.up_proj"),
        "stages.{i}.block.down": f"{mlp}.down_proj",
    }
    return names | ({"stages.{i}.input_norm": f"{prefix}.input_layernorm"} if input_norm else {})


def _eagle3(prefix: str) -> Names:
    return {
        "fuse": "fc",
        "fuse_norm": "input_norm",
        "layer_norms.{l}": "fc_norm.{l}",
        "stages.{i}.embedding_norm": f"{prefix}.input_layernorm",
        "stages.{i}.feature_norm": f"{prefix}.hidden_norm",
        "stages.{i}.output_norm": "norm",
        "head": "lm_head",
        "embedding": "embed_tokens",
    } | _block(prefix, input_norm=False)


LAYOUTS: dict[str, Names] = {
    "eagle": {"stages.{i}.project": "fc", "embedding": "embed_tokens", "head": "lm_head"}
    | _block("layers.0", input_norm=False),
    "speculators eagle": {"stages.{i}.project": "fusion_fc", "embedding": "embed_tokens", "head": "lm_head"}
    | _block("transformer", input_norm=False),
    "eagle3": _eagle3("midlayer"),
    "speculators eagle3": _eagle3("layers.0"),
    "deepseek mtp": {
        "stages.{i}.embedding_norm": "model.layers.{n}.enorm",
        "stages.{i}.feature_norm": "model.layers.{n}.hnorm",
        "stages.{i}.project": "model.layers.{n}.eh_proj",
        "stages.{i}.output_norm": "model.layers.{n}.shared_head.norm",
        "embedding": "model.layers.{base}.embed_tokens",
        "head": "model.layers.{base}.shared_head.head",
    }
    | _block("model.layers.{n}"),
    "qwen mtp": {
        "stages.{i}.embedding_norm": "mtp.pre_fc_norm_embedding",
        "stages.{i}.feature_norm": "mtp.pre_fc_norm_hidden",
        "stages.{i}.project": "mtp.fc",
        "stages.{i}.output_norm": "mtp.norm",
    }
    | _block("mtp.layers.{i}"),
    "mimo mtp": {
        "stages.{i}.embedding_norm": "model.mtp_layers.{i}.token_layernorm",
        "stages.{i}.feature_norm": "model.mtp_layers.{i}.hidden_layernorm",
        "stages.{i}.project": "model.mtp_layers.{i}.input_proj",
        "stages.{i}.output_norm": "model.mtp_layers.{i}.final_layernorm",
    }
    | _block("model.mtp_layers.{i}"),
    "medusa": {"stages.{i}.{l}.linear": "{i}.{l}.linear", "heads.{i}": "{i}.{m}"},
    "vllm medusa": {"stages.{i}.{l}.linear": "blocks.{i}.layers.{l}", "heads.{i}": "lm_heads.{i}"},
}


SHARED = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|d2t|t2d|token_map|verifier_lm_head\.weight|verifier_norm\.weight)")
"""Tensors that hold nothing of the head's own, or are read apart."""
TARGETS = re.compile(r"(.*\.)?(embed_tokens|shared_head\.head)\.weight")
"""Tensors that may repeat the target's own embedding and output matrix, which MTP modules share."""


def of_layout(layout: str, name: str, base: int) -> bool:
    """Whether a tensor of a checkpoint belongs to a layout; others may stand beside it, as the target's do beside MTP.

    base: the target's number of layers.
    """
    if layout == "deepseek mtp":
        found = re.match(r"model\.layers\.(\d+)\.", name)
        return bool(found) and int(found.group(1)) >= base
    prefix = {"qwen mtp": "mtp.", "mimo mtp": "model.mtp_layers."}.get(layout, "")
    return name.startswith(prefix)


def pairs(layout: str, modules: int, base: int = 0, layers: int = 1) -> Pairs:
    """(our tensor, the public ones it joins) of a layout: weights and biases, some of which a checkpoint may lack.

    modules: how many; base: the target's number of layers; layers: residual layers in each Medusa head, or hidden
    states that an EAGLE-3 head reads.
    """
    found = {}
    for ours, public in LAYOUTS[layout].items():
        for i in range(modules):
            for at in range(layers):
                places = {"i": i, "n": base + i, "base": base, "l": at, "m": layers}
                joined = (public,) if isinstance(public, str) else public
                for kind in ("weight", "bias"):
                    name = f"{ours.format(**places)}.{kind}"
                    found[name] = tuple(f"{part.format(**places)}.{kind}" for part in joined)
    return list(found.items())


def fill(module: nn.Module, public: Tensors, names: Pairs) -> None:
    """Load a module from public tensors. Raises `ValueError` that names tensors which are missing, of another shape
    than the module's, or left over: a head with a part that is not run would guess badly without a word.
    """
    places, expected, ours = dict(names), module.state_dict(), from_public(public, names)
    missing = [part for name in expected if name not in ours for part in places.get(name, (name,))]
    if missing := [part for part in missing if part not in public]:
        raise ValueError(f"tensors are missing: {_listed(missing)}")
    used = {part for name in expected for part in places[name]}
    spare = sorted(name for name in public.keys() - used if not (SHARED.fullmatch(name) or TARGETS.fullmatch(name)))
    if spare:
        raise ValueError(f"this version has no place for some of its tensors: {_listed(spare)}")
    for name, value in expected.items():
        if ours[name].shape != value.shape:
            joined = " + ".join(places[name])
            raise ValueError(f"{joined} has the shape {list(ours[name].shape)}, {list(value.shape)} is needed")
    module.load_state_dict({name: ours[name] for name in expected})


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def from_public(public: Tensors, names: Pairs) -> Tensors:
    """Our tensors, of those that are all there."""
    return {
        ours: torch.cat([public[part] for part in parts])
        for ours, parts in names
        if all(part in public for part in parts)
    }


def to_public(ours: Tensors, names: Pairs, rows: dict[str, list[int]]) -> Tensors:
    """The public tensors of ours. rows: by the end of our name, how many rows each joined part has."""
    public = {}
    for name, parts in names:
        if name not in ours:
            continue
        split = next((sizes for end, sizes in rows.items() if name.rpartition(".")[0].endswith(end)), None)
        pieces = ours[name].split(split) if split else [ours[name]]
        public |= {part: piece.contiguous() for part, piece in zip(parts, pieces, strict=True)}
    return public
