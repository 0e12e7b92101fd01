"""A draft's files, in a folder or on the hub: the configuration, the names of all tensors, the tensors one wants.

MTP modules lie in their target's own checkpoint, which may be large: names come from the index or the headers, and only
the files that hold wanted tensors are downloaded, and only those tensors read.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from specworkbench.errors import InputError
from specworkbench.paths import embedded_dir, is_embedded

PICKLES = ("pytorch_model.bin", "medusa_lm_head.pt")
"""Files read with weights_only where there is no safetensors file: nothing but tensors is ever unpickled."""
INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
UNREADABLE = (OSError, SafetensorError, RuntimeError, AttributeError, EOFError, ValueError, pickle.UnpicklingError)


class Checkpoint:
    """Files by name: embedded/NAME, a local folder, or a hub id.

    config: the object in its config.json. Raises `InputError` for what is not there or cannot be read.
    """

    def __init__(self, name: str, revision: str | None = None):
        self.name, self._revision = name, revision
        folder = _local(name)
        self._remote = folder is None
        self.folder = self._download(["config.json", *INDICES]) if folder is None else folder
        self._revision = self.folder.name if self._remote else revision  # the commit, for all that follows
        self.config = self._json("config.json")
        self._loaded: dict[str, dict[str, Any]] = {}

    @cached_property
    def _file_of(self) -> dict[str, str]:
        """{tensor: file} of the whole checkpoint."""
        return self._indexed() or self._scanned()

    @property
    def names(self) -> list[str]:
        """Of all tensors, sorted."""
        return sorted(self._file_of)

    def read(self, wanted: Callable[[str], bool]) -> dict[str, torch.Tensor]:
        """The wanted tensors, on the CPU, as they are stored."""
        chosen = [name for name in self._file_of if wanted(name)]
        files = sorted({self._file_of[name] for name in chosen})
        if self._remote and files:
            self._download(files)
        found: dict[str, torch.Tensor] = {}
        for file in files:
            names = [name for name in chosen if self._file_of[name] == file]
            found |= self._pickled(file, names) if not file.endswith(".safetensors") else self._stored(file, names)
        return found

    def _indexed(self) -> dict[str, str]:
        """{tensor: file} by an index file; empty without one."""
        for index in INDICES:
            if (self.folder / index).exists():
                files = self._json(index).get("weight_map")
                if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
                    raise InputError(f"the {index} of {self.name!r} has no weight_map of tensors to files")
                return files
        return {}

    def _scanned(self) -> dict[str, str]:
        """{tensor: file} by the files' headers, all of them downloaded."""
        if self._remote:
            self._download(["*.safetensors"])
        files = sorted(path.name for path in self.folder.glob("*.safetensors"))
        if not files and self._remote:
            self._download([*PICKLES])
        files = files or [name for name in PICKLES if (self.folder / name).exists()]
        if not files:
            raise InputError(
                f"{self.name!r} holds no weights in {self.folder}: no safetensors file, nor {' or '.join(PICKLES)}"
            )
        return {name: file for file in files for name in self._names_in(file)}

    def _names_in(self, file: str) -> list[str]:
        if not file.endswith(".safetensors"):
            return list(self._pickle(file))
        try:
            with safe_open(self.folder / file, framework="pt") as opened:
                return list(opened.keys())
        except UNREADABLE as error:
            raise self._damaged(file, error) from error

    def _stored(self, file: str, names: list[str]) -> dict[str, torch.Tensor]:
        try:
            with safe_open(self.folder / file, framework="pt") as opened:
                return {name: opened.get_tensor(name) for name in names}
        except UNREADABLE as error:
            raise self._damaged(file, error) from error

    def _pickled(self, file: str, names: list[str]) -> dict[str, torch.Tensor]:
        found = self._pickle(file)
        odd = [name for name in names if not isinstance(found.get(name), torch.Tensor)]
        if odd:
            raise InputError(f"{odd[0]!r} in the file {file} of {self.name!r} is no tensor")
        return {name: found[name] for name in names}

    def _pickle(self, file: str) -> dict[str, Any]:
        if file not in self._loaded:
            try:
                found = torch.load(self.folder / file, map_location="cpu", weights_only=True)
            except pickle.UnpicklingError as error:
                raise InputError(
                    f"the file {file} of {self.name!r} is damaged or holds pickled objects beside tensors; such "
                    "objects can run any program when they are loaded, so they never are: save the tensors alone, or "
                    "as safetensors"
                ) from error
            except UNREADABLE as error:
                raise self._damaged(file, error) from error
            if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
                raise InputError(f"the file {file} of {self.name!r} holds no named tensors")
            self._loaded[file] = found
        return self._loaded[file]

    def _json(self, file: str) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / file).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"there is no head {self.name!r}: {self.folder} has no {file}") from error
        except ValueError as error:
            raise InputError(f"the {file} of the head {self.name!r} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise InputError(f"the {file} of the head {self.name!r} is no JSON object")
        return found

    def _damaged(self, file: str, error: BaseException) -> InputError:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return InputError(f"cannot read the file {file} of {self.name!r}: {lines[0]}")

    def _download(self, files: list[str]) -> Path:
        """The folder of the hub's cache that has these files, where the repository has them."""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError

        try:
            return Path(snapshot_download(self.name, revision=self._revision, allow_patterns=files))
        except (HfHubHTTPError, OSError, ValueError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(f"cannot load the head {self.name!r} from the hub: {lines[0]}") from error


def _local(name: str) -> Path | None:
    """The folder of that name; None for a hub id."""
    if is_embedded(name):
        return embedded_dir() / (name.partition("/")[2] or "target")
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise InputError(f"there is no folder of a head {name!r}, and it is no hub id OWNER/REPOSITORY")
    return None
