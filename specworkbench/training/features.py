"""What a head learns from, cached on disk: the target's hidden states and its most probable next tokens, by window."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tqdm.auto import tqdm

from specworkbench.engine import LanguageModel
from specworkbench.errors import InputError
from specworkbench.files import whole_file


@dataclass(frozen=True)
class Batch:
    """Windows of text with what the target made of them.

    ids: (windows, length) int64; hidden: {layer: (windows, length, width)} float32; top: (windows, length, k) int64,
    the target's most probable tokens after each position; probs: their probabilities at temperature 1, likewise.
    """

    ids: torch.Tensor
    hidden: dict[int, torch.Tensor]
    top: torch.Tensor
    probs: torch.Tensor


@dataclass(frozen=True)
class StoreSettings:
    """What a store holds: target, revision, text; hidden states; windows of `length` tokens; the top `k` tokens."""

    target: str
    revision: str | None
    source: str
    layers: tuple[int, ...]
    windows: int
    length: int = 512
    k: int = 64


class FeatureStore:
    """Arrays on disk, filled window by window; what a killed run has finished is not computed again.

    Position t of a window has seen the t tokens before it in the window. A folder that holds more hidden states or
    windows than are asked for is used as it is. Raises `InputError` where it holds a store of other settings, and, when
    filled, for a target whose hidden states do not fit in float16.
    """

    def __init__(self, folder: Path, settings: StoreSettings, target: LanguageModel):
        self.folder, self._meta = Path(folder), Path(folder) / "store.json"
        self.settings, self.done = self._opened(settings)
        settings = self.settings
        width = target.model.config.get_text_config().hidden_size
        self._k = min(settings.k, target.vocab_size)
        shape = (settings.windows, settings.length)
        self._ids = self._array("ids", np.int32, shape)
        self._hidden = self._array("hidden", np.float16, (*shape, len(settings.layers), width))
        self._top = self._array("top", np.int32, (*shape, self._k))
        self._probs = self._array("probs", np.float16, (*shape, self._k))

    def fill(self, target: LanguageModel, ids_of: Callable[[int], np.ndarray], save_every: int = 64) -> None:
        """Run the target over the windows that are missing. ids_of: the number of a window to its (length,) ids."""
        windows = range(self.done, self.settings.windows)
        for window in tqdm(windows, initial=self.done, total=self.settings.windows, unit="window", desc="features"):
            ids = ids_of(window)
            self._ids[window] = ids
            forward = target.forward(
                torch.as_tensor(ids, dtype=torch.int64, device=target.device), target.new_cache(),
                layers=self.settings.layers,
            )  # fmt: skip
            probs, top = forward.logits.float().softmax(-1).topk(self._k, dim=-1)
            hidden = torch.stack([forward.hidden[layer] for layer in self.settings.layers], dim=1).half()
            if not hidden.isfinite().all():
                raise InputError(f"hidden states of {target.name} exceed what float16 can hold; choose other layers")
            self._hidden[window], self._top[window] = hidden.cpu().numpy(), top.cpu().numpy()
            self._probs[window] = probs.cpu().numpy()
            self.done = window + 1
            if self.done % save_every == 0 or self.done == self.settings.windows:
                self._save()

    def batch(self, first: int, count: int, length: int) -> Batch:
        """Windows number `first` and on, in an order that changes with every pass; cut to `length` tokens."""
        order = [self._place(first + i) for i in range(count)]
        hidden = torch.from_numpy(self._hidden[order, :length]).float()
        return Batch(
            torch.from_numpy(self._ids[order, :length]).long(),
            {layer: hidden[:, :, i] for i, layer in enumerate(self.settings.layers)},
            torch.from_numpy(self._top[order, :length]).long(),
            torch.from_numpy(self._probs[order, :length]).float(),
        )

    def token_counts(self, vocabulary: int) -> torch.Tensor:
        """(vocabulary,) float: how often the target gives each token, by its probabilities."""
        counts = torch.zeros(vocabulary)
        for window in range(self.done):
            top = torch.from_numpy(self._top[window]).long().flatten()
            counts.index_add_(0, top, torch.from_numpy(self._probs[window]).float().flatten())
        return counts

    def _place(self, number: int) -> int:
        epoch, slot = divmod(number, self.settings.windows)
        return int(np.random.default_rng(epoch).permutation(self.settings.windows)[slot])

    def _array(self, name: str, dtype: type, shape: tuple[int, ...]) -> np.memmap:
        path = self.folder / f"{name}.npy"
        mode = "r+" if path.exists() else "w+"
        return np.lib.format.open_memmap(path, mode=mode, dtype=dtype, shape=None if mode == "r+" else shape)

    def _opened(self, wanted: StoreSettings) -> tuple[StoreSettings, int]:
        """The settings and the number of windows done. Raises `InputError` where the folder holds another store."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._meta.exists():
            return wanted, 0
        found = json.loads(self._meta.read_text(encoding="utf-8"))
        done = found.pop("done")
        settings = StoreSettings(**found | {"layers": tuple(found["layers"])})
        if set(wanted.layers) <= set(settings.layers) and wanted.windows <= settings.windows:
            wanted = replace(wanted, layers=settings.layers, windows=settings.windows)
        if settings != wanted:
            both = {name: (getattr(settings, name), getattr(wanted, name)) for name in found}
            differing = ", ".join(f"{name} {has!r}, not {want!r}" for name, (has, want) in both.items() if has != want)
            raise InputError(f"{self.folder} holds features of other settings ({differing}); give another folder")
        return settings, done

    def _save(self) -> None:
        for array in (self._ids, self._hidden, self._top, self._probs):
            array.flush()
        with whole_file(self._meta, "the store's description") as file:
            file.write(json.dumps(asdict(self.settings) | {"done": self.done}).encode())
