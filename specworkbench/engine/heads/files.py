"""Heads on disk: read in any public layout, written in one of them, as config.json and model.safetensors.

What is written by `save_head` adds only the key "specworkbench_head" to a public configuration, so that other programs
that know the layout can read it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as safetensors_bytes

from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.heads.layouts import from_public, pairs, to_public
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape
from specworkbench.engine.heads.shapes import feature_config, feature_shape, medusa_layout, recognised
from specworkbench.engine.models import EMBEDDED, LanguageModel
from specworkbench.errors import InputError
from specworkbench.files import whole_file
from specworkbench.paths import embedded_dir

MARK = "specworkbench_head"
PICKLES = ("pytorch_model.bin", "medusa_lm_head.pt")
"""Files read with weights_only where there is no safetensors file."""


def load_head(name: str, target: LanguageModel, kind: str, revision: str | None = None) -> Any:
    """A head by name (embedded/NAME, a local folder, a hub id) for a target, in its dtype and on its device.

    kind: what is wanted: eagle, mtp or medusa. Returns a `FeatureHead` or `MedusaHeads`, with `name` and `layout`
    set. Raises `InputError` for files that cannot be read, another kind of head, or shapes that do not fit the target.
    """
    folder = _folder(name, revision)
    config = _config(folder, name)
    tensors = _tensors(folder, lambda key: not key.startswith("model.layers.") or _beyond(key, target))
    layout = recognised(tensors, config)
    if layout is None:
        raise InputError(f"{name!r} holds no head of a layout that is known (EAGLE, EAGLE-3, MTP, Medusa)")
    if kind not in layout:
        raise InputError(f"{name!r} is a head of the layout {layout!r}; the proposer {kind} cannot use it")
    build = _medusa if "medusa" in layout else _feature
    try:
        head = build(layout, config, tensors, target)
    except (RuntimeError, KeyError, ValueError) as error:
        first = " ".join(str(error).split())[:300]
        raise InputError(f"the head {name!r} (layout {layout}) does not fit {target.name}: {first}") from error
    head = head.to(target.device, target.dtype).eval().requires_grad_(False)
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
    }


def save_head(head: FeatureHead | MedusaHeads, folder: Path, target: LanguageModel, kind: str) -> None:
    """Write a head of ours, float16, in a public layout: SafeAILab's EAGLE-3, DeepSeek's MTP, or vLLM's Medusa.

    kind: eagle, mtp or medusa.
    """
    layout = {"eagle": "eagle3", "mtp": "deepseek mtp", "medusa": "vllm medusa"}[kind]
    if isinstance(head, MedusaHeads):
        shape = head.shape
        config = {
            "architectures": ["MedusaModel"], "medusa_num_heads": shape.heads, "medusa_num_layers": shape.layers,
            "num_heads": shape.heads, "num_hidden_layers": shape.layers, "hidden_size": shape.width,
            "vocab_size": shape.vocabulary, "base_model_name_or_path": target.name, "torch_dtype": "float16",
            "rank_acceptance": [[round(value, 4) for value in row] for row in shape.ranks],
        }  # fmt: skip
        names, rows = pairs(layout, shape.heads, layers=shape.layers), {}
    else:
        block, shape = head.stages[0].block, head.shape
        config = feature_config(shape, target, kind) | {"base_model_name_or_path": target.name}
        kv = block.kv_heads * block.head_dim
        rows = {"qkv": [block.heads * block.head_dim, kv, kv], "gate_up": [shape.config.intermediate_size] * 2}
        names = pairs(layout, shape.modules, base=_depth(target))
    state = {name: value.detach().cpu().to(torch.float16) for name, value in head.state_dict().items()}
    public = to_public(state, names, rows)
    if len(from_public(public, names)) != len(state):
        raise ValueError(f"the layout {layout} has no name for some of {sorted(state)}")
    if getattr(head, "target_ids", None) is not None:
        ids = head.target_ids.cpu()
        public["d2t"] = ids - torch.arange(len(ids))
        public["t2d"] = torch.zeros(target.vocab_size, dtype=torch.bool).index_fill(0, ids, True)
    with whole_file(folder / "config.json", "the head's configuration") as file:
        file.write((json.dumps(config | {MARK: kind}, indent=2) + "\n").encode())
    with whole_file(folder / "model.safetensors", "the head's weights") as file:
        file.write(safetensors_bytes(public, metadata={"format": "pt"}))


def _feature(layout: str, config: dict, tensors: dict[str, torch.Tensor], target: LanguageModel) -> FeatureHead:
    shape = feature_shape(layout, config, tensors, target)
    ids = None
    if "d2t" in tensors:
        ids = tensors["d2t"].long() + torch.arange(len(tensors["d2t"]))
    head = FeatureHead(shape, target, ids)
    ours = from_public(tensors, pairs(layout, shape.modules, base=_depth(target)))
    wanted = head.state_dict().keys()
    head.load_state_dict({name: value for name, value in ours.items() if name in wanted})
    return head


def _medusa(layout: str, config: dict, tensors: dict[str, torch.Tensor], target: LanguageModel) -> MedusaHeads:
    heads, layers = medusa_layout(layout, tensors)
    ours = from_public(tensors, pairs(layout, heads, layers=layers))
    vocabulary, width = ours["heads.0.weight"].shape
    own = target.model.config.get_text_config().hidden_size
    if width != own:
        raise ValueError(f"its heads read {width} features, the target has {own}")
    ranks = tuple(tuple(float(value) for value in row) for row in config.get("rank_acceptance") or ())
    if ranks and len(ranks) != heads:
        raise ValueError(f"its configuration gives rank_acceptance for {len(ranks)} heads, and it has {heads}")
    built = MedusaHeads(MedusaShape(heads, layers, width, vocabulary, ranks))
    built.load_state_dict(ours)
    return built


def _depth(target: LanguageModel) -> int:
    return target.model.config.get_text_config().num_hidden_layers


def _beyond(key: str, target: LanguageModel) -> bool:
    """Whether `model.layers.N.` is beyond the target's own layers, where MTP modules are kept."""
    return int(key.split(".")[2]) >= _depth(target)


def _folder(name: str, revision: str | None) -> Path:
    if name.startswith(f"{EMBEDDED}/"):
        return embedded_dir() / name.partition("/")[2]
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise InputError(f"there is no folder of a head {name!r}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        wanted = ["*.json", "*.safetensors", *PICKLES]
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise InputError(f"cannot load the head {name!r}: {str(error).strip().splitlines()[0]}") from error


def _config(folder: Path, name: str) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"there is no head {name!r}: {folder} has no config.json") from error
    except ValueError as error:
        raise InputError(f"the config.json of the head {name!r} is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise InputError(f"the config.json of the head {name!r} is no object")
    return config


def _tensors(folder: Path, wanted: Callable[[str], bool]) -> dict[str, torch.Tensor]:
    """The wanted tensors of all weight files; pickled ones are read with weights_only."""
    found: dict[str, torch.Tensor] = {}
    files = sorted(folder.glob("*.safetensors"))
    try:
        for file in files:
            with safe_open(file, framework="pt") as opened:
                names = [key for key in list(opened.keys()) if wanted(key)]
                found |= {key: opened.get_tensor(key) for key in names}
        for file in [] if files else [folder / name for name in PICKLES if (folder / name).exists()]:
            saved = torch.load(file, map_location="cpu", weights_only=True)
            found |= {key: value for key, value in saved.items() if wanted(key)}
    except (OSError, SafetensorError, RuntimeError, AttributeError, EOFError, ValueError) as error:
        raise InputError(f"cannot read the weights in {folder}: {str(error).strip().splitlines()[0]}") from error
    if not found:
        raise InputError(f"{folder} holds no weights of a head (no safetensors file, nor {' or '.join(PICKLES)})")
    return found
