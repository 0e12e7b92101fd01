"""The files of a published head: its config.json and its safetensors, from a local folder or from the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import PreTrainedConfig
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from specworkbench.errors import InputError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def read_entry(name: str, revision: str | None = None) -> dict[str, Any]:
    """The config.json of a folder or a hub id, as it stands. Raises `InputError` where there is none."""
    path = Path(name).expanduser()
    if (path.is_absolute() or name.startswith((".", "~"))) and not (path / "config.json").exists():
        raise InputError(f"there is no folder {name!r} with a config.json")
    try:
        return PreTrainedConfig.get_config_dict(str(path) if path.is_dir() else name, revision=revision)[0]
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the config.json of {name!r}: {str(error).strip().splitlines()[0]}") from error


def read_weights(name: str, revision: str | None = None) -> dict[str, torch.Tensor]:
    """Every tensor of model.safetensors, whole or in shards. Raises `InputError` where there is none to read."""
    path = Path(name).expanduser()
    source, options = (str(path) if path.is_dir() else name), {"revision": revision}
    try:
        files = [cached_file(source, WEIGHTS, **options, _raise_exceptions_for_missing_entries=False)]
        if files == [None]:
            files, _ = get_checkpoint_shard_files(source, cached_file(source, INDEX, **options), **options)
        return {key: tensor for file in files for key, tensor in load_file(file).items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"cannot read the weights of {name!r} ({WEIGHTS}): {str(error).strip()}") from error
