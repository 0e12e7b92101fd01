"""The names of heads' tensors in public checkpoints, and ours for the same. Tables only; see `files` for reading.

A table maps our name to the public one, or to several that are joined along their first dimension (query, key, value;
gate, up). `{i}` counts the modules, `{n}` = L + i goes on from the target's L layers.
"""

from __future__ import annotations

import torch

Names = dict[str, str | tuple[str, ...]]


def _block(prefix: str, input_norm: bool = True) -> Names:
    """A decoder block with Llama's names."""
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    names: Names = {
        "stages.{i}.block.qkv": (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
        "stages.{i}.block.out": f"{attention}.o_proj",
        "stages.{i}.block.mlp_norm": f"{prefix}.post_attention_layernorm",
        "stages.{i}.block.gate_up": (f"{mlp}.gate_proj", f"{mlp}.up_proj"),
        "stages.{i}.block.down": f"{mlp}.down_proj",
    }
    return names | ({"stages.{i}.input_norm": f"{prefix}.input_layernorm"} if input_norm else {})


def _eagle3(prefix: str) -> Names:
    return {
        "fuse": "fc",
        "fuse_norm": "fc_norm",
        "stages.{i}.embedding_norm": f"{prefix}.input_layernorm",
        "stages.{i}.feature_norm": f"{prefix}.hidden_norm",
        "stages.{i}.output_norm": "norm",
        "head": "lm_head",
        "embedding": "embed_tokens",
    } | _block(prefix, input_norm=False)


LAYOUTS: dict[str, Names] = {
    "eagle": {"stages.{i}.project": "fc", "embedding": "embed_tokens"} | _block("layers.0", input_norm=False),
    "eagle3": _eagle3("midlayer"),
    "speculators eagle3": _eagle3("layers.0"),
    "deepseek mtp": {
        "stages.{i}.embedding_norm": "model.layers.{n}.enorm",
        "stages.{i}.feature_norm": "model.layers.{n}.hnorm",
        "stages.{i}.project": "model.layers.{n}.eh_proj",
        "stages.{i}.output_norm": "model.layers.{n}.shared_head.norm",
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


def pairs(layout: str, modules: int, base: int = 0, layers: int = 1) -> list[tuple[str, tuple[str, ...]]]:
    """(our tensor, the public ones it joins) of a layout: weights and biases, some of which a checkpoint may lack.

    modules: how many; base: the target's number of layers; layers: residual layers in each Medusa head.
    """
    found = {}
    for ours, public in LAYOUTS[layout].items():
        for i in range(modules):
            for at in range(layers):
                places = {"i": i, "n": base + i, "l": at, "m": layers}
                joined = (public,) if isinstance(public, str) else public
                for kind in ("weight", "bias"):
                    name = f"{ours.format(**places)}.{kind}"
                    found[name] = tuple(f"{part.format(**places)}.{kind}" for part in joined)
    return list(found.items())


def from_public(public: dict[str, torch.Tensor], names: list[tuple[str, tuple[str, ...]]]) -> dict[str, torch.Tensor]:
    """Our tensors, of those that are all there."""
    return {
        ours: torch.cat([public[part] for part in parts])
        for ours, parts in names
        if all(part in public for part in parts)
    }


def to_public(
    ours: dict[str, torch.Tensor], names: list[tuple[str, tuple[str, ...]]], rows: dict[str, list[int]]
) -> dict[str, torch.Tensor]:
    """The public tensors of ours. rows: by the end of our name, how many rows each joined part has."""
    public = {}
    for name, parts in names:
        if name not in ours:
            continue
        split = next((sizes for end, sizes in rows.items() if name.rpartition(".")[0].endswith(end)), None)
        pieces = ours[name].split(split) if split else [ours[name]]
        public |= {part: piece.contiguous() for part, piece in zip(parts, pieces, strict=True)}
    return public
