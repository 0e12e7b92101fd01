"""Heads on disk: read in any public layout, written in one of them, as config.json and model.safetensors.

What is written by `save_head` adds only the key "specworkbench_head" to a public configuration, so that other programs
that know the layout can read it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import save as safetensors_bytes

from specworkbench.engine.heads.checkpoint import Checkpoint
from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.heads.layouts import Tensors, fill, from_public, of_layout, pairs, to_public
from specworkbench.engine.heads.library_block import joined_experts
from specworkbench.engine.heads.medusa import MedusaHeads
from specworkbench.engine.heads.medusa_shapes import medusa_config, medusa_heads
from specworkbench.engine.heads.mtp_shapes import block_prefix, mtp_shape
from specworkbench.engine.heads.shapes import eagle_shape, feature_config, recognised, target_ids
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.products import describe_products, products_of
from specworkbench.errors import InputError
from specworkbench.files import whole_file
from specworkbench.paths import HEAD_MARK


def load_head(name: str, target: LanguageModel, kind: str, revision: str | None = None) -> Any:
    """A head by name (embedded/NAME, a local folder, a hub id) for a target, in its dtype and on its device.

    kind: what is wanted: eagle, mtp or medusa. Returns a `FeatureHead` or `MedusaHeads`, with `name` and `layout`
    set. Raises `InputError` for files that cannot be read, another kind of head, or shapes that do not fit the target.
    """
    checkpoint = Checkpoint(name, revision)
    names = {_plain(stored): stored for stored in checkpoint.names}
    layout = recognised(names)
    if layout is None:
        raise InputError(
            f"{name!r} holds no head of a layout that is known (EAGLE, EAGLE-3, MTP, Medusa); name another checkpoint"
        )
    if kind not in layout:
        raise InputError(f"{name!r} is a head of the layout {layout!r}; the proposer {kind} cannot use it")
    wanted = {stored for plain, stored in names.items() if of_layout(layout, plain, _depth(target))}
    tensors = {_plain(stored): value for stored, value in checkpoint.read(wanted.__contains__).items()}
    try:
        head = (medusa_heads if kind == "medusa" else _feature)(layout, checkpoint.config, tensors, target)
    except (RuntimeError, KeyError, ValueError, TypeError, StrictDataclassError) as error:
        first = " ".join(str(error).split())[:400]
        raise InputError(f"the head {name!r} (layout {layout}) does not fit {target.name}: {first}") from error
    head = target.speed_up(head.to(target.device, target.dtype).eval().requires_grad_(False))
    head.name, head.layout, head.revision = name, layout, revision
    return head


def describe_head(head: FeatureHead | MedusaHeads) -> dict[str, Any]:
    """A head's entry in a trace's manifest; name, layout and revision are null for one that was not loaded."""
    weight = next(head.parameters())
    return {
        "name": getattr(head, "name", None),
        "layout": getattr(head, "layout", None),
        "revision": getattr(head, "revision", None),
        "dtype": str(weight.dtype).removeprefix("torch."),
        "parameters": sum(parameter.numel() for parameter in head.parameters()),
        "products": describe_products(products_of(head)),
    }


def save_head(head: FeatureHead | MedusaHeads, folder: Path, target: LanguageModel, kind: str) -> None:
    """Write a head of ours, float16, in a public layout: SafeAILab's EAGLE-3, DeepSeek's MTP, or vLLM's Medusa.

    kind: eagle, mtp or medusa. Raises `ValueError` for a head that the layout cannot hold.
    """
    layout = {"eagle": "eagle3", "mtp": "deepseek mtp", "medusa": "vllm medusa"}[kind]
    ids = head.target_ids
    if isinstance(head, MedusaHeads):
        config, rows = medusa_config(head.shape), {}
        names = pairs(layout, head.shape.heads, layers=head.shape.layers)
        mapping = {} if ids is None else {"token_map": ids.cpu()}
    else:
        block, shape = head.stages[0].block, head.shape
        if shape.layer_class is not None or shape.centred or shape.feature_first:
            raise ValueError(f"the layout {layout} is written for heads made here, and this one has another block")
        config = feature_config(shape, target, kind)
        kv = block.kv_heads * block.head_dim
        rows = {"qkv": [block.heads * block.head_dim, kv, kv], "gate_up": [shape.config.intermediate_size] * 2}
        names = pairs(layout, shape.modules, base=_depth(target), layers=len(shape.layers))
        mapping = {} if ids is None else _draft_vocabulary(ids.cpu(), target.vocab_size)
    state = {name: value.detach().cpu().to(torch.float16) for name, value in head.state_dict().items()}
    public = to_public(state, names, rows)
    if len(from_public(public, names)) != len(state):
        raise ValueError(f"the layout {layout} has no name for some of {sorted(state)}")
    config |= {"base_model_name_or_path": target.name, HEAD_MARK: kind}
    with whole_file(folder / "config.json", "the head's configuration") as file:
        file.write((json.dumps(config, indent=2) + "\n").encode())
    with whole_file(folder / "model.safetensors", "the head's weights") as file:
        file.write(safetensors_bytes(public | mapping, metadata={"format": "pt"}))


def _draft_vocabulary(ids: torch.Tensor, vocabulary: int) -> Tensors:
    """d2t, offsets, and t2d, of a reduced vocabulary."""
    return {
        "d2t": ids - torch.arange(len(ids)),
        "t2d": torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, ids, True),
    }


def _feature(layout: str, config: dict[str, Any], tensors: Tensors, target: LanguageModel) -> FeatureHead:
    first = _depth(target) if layout == "deepseek mtp" else 0
    shape = (mtp_shape if "mtp" in layout else eagle_shape)(layout, config, tensors, target)
    head = FeatureHead(shape, target, target_ids(tensors, shape.vocabulary, target))
    names = pairs(layout, shape.modules, base=first, layers=len(shape.layers))
    if shape.layer_class is not None:
        tensors = joined_experts(tensors)
        names = [(ours, public) for ours, public in names if ".block." not in ours]
        for i, stage in enumerate(head.stages):
            prefix, inside = block_prefix(layout, first + i), stage.block.layer.state_dict()
            names += [(f"stages.{i}.block.layer.{name}", (f"{prefix}.{name}",)) for name in inside]
    fill(head, tensors, names)
    return head


def _depth(target: LanguageModel) -> int:
    return target.model.config.get_text_config().num_hidden_layers


def _plain(name: str) -> str:
    """A tensor's name without the prefix that some Medusa checkpoints have."""
    return name.removeprefix("medusa_heads.").removeprefix("medusa_head.")
