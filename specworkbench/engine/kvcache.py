"""One adapter in front of transformers' caches: how long it is, how to take tokens back, whether it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import Cache, DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

from specworkbench.errors import InputError

NO_ROLLBACK = (
    "this model keeps a recurrent state, which cannot be rolled back after a rejected guess; "
    "speculative decoding needs a model with attention layers only (proposer none decodes plainly)"
)


class KVCache:
    """The keys and values of one sequence.

    After `rollback(n)` the next forward gives the row that a fresh forward over the shorter prefix would give.
    Sliding windows are rewound by the library's own recording of the past, which is switched on here; recurrent
    state cannot be rewound, and `rollback` says so.
    """

    def __init__(self, config: PreTrainedConfig):
        self.cache: Cache = DynamicCache(config=config)
        self.length = 0
        self._records_past = False
        for layer in self.cache.layers:
            if hasattr(layer, "activate_past_recording"):
                layer.activate_past_recording()
                self._records_past = True

    @property
    def can_rollback(self) -> bool:
        """False once a layer holds state that cannot be rewound (recurrent layers, after their first forward)."""
        return not any(_holds_recurrent_state(layer) for layer in self.cache.layers)

    @property
    def can_branch(self) -> bool:
        """Whether every layer keeps all keys and values, so that a path through a tree can be picked out of it."""
        return all(type(layer) is DynamicLayer for layer in self.cache.layers)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values held."""
        tensors = (getattr(layer, name, None) for layer in self.cache.layers for name in ("keys", "values"))
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)

    def grew(self, tokens: int) -> None:
        """A forward has added `tokens`."""
        self.length += tokens

    def rollback(self, tokens: int) -> None:
        """Take the last `tokens` back. Raises `InputError` when the cache cannot, `ValueError` past its beginning."""
        if not 0 <= tokens <= self.length:
            raise ValueError(f"cannot roll back {tokens} of {self.length} cached tokens")
        if tokens and not self.can_rollback:
            raise InputError(NO_ROLLBACK)
        self._crop(tokens)
        self.length -= tokens

    def reserve(self, tokens: int) -> None:
        """A context of so many tokens is to come; a cache that is made beforehand makes room."""

    @torch.inference_mode()
    def keep(self, last: int, kept: Sequence[int]) -> None:
        """Of the last `last` tokens keep those numbered `kept` (from 0, rising), in this order; drop the others.

        Each kept one moves to the place it has in the context: rotary positions were given by depth and stay right.
        Raises `ValueError` for numbers out of range, and as `rollback` does.
        """
        if list(kept) != sorted(set(kept)) or (kept and not 0 <= kept[0] <= kept[-1] < last):
            raise ValueError(f"cannot keep {list(kept)} of the last {last} tokens: the numbers must rise from 0 on")
        if list(kept) != list(range(len(kept))):
            self._move(last, kept)
        self.rollback(last - len(kept))

    def _crop(self, tokens: int) -> None:
        if tokens or self._records_past:
            self.cache.crop(-tokens)

    def _move(self, last: int, kept: Sequence[int]) -> None:
        start = self.length - last
        for layer in self.cache.layers:
            slots = torch.tensor(kept, device=layer.keys.device) + start
            for states in (layer.keys, layer.values):
                states[..., start : start + len(kept), :] = states.index_select(-2, slots)


def _holds_recurrent_state(layer: Any) -> bool:
    return any(getattr(layer, "is_recurrent_states_initialized", {}).values())
