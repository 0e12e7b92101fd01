"""One adapter in front of transformers' caches: how long it is, how to take tokens back, whether it can."""

from __future__ import annotations

from typing import Any

from transformers import Cache, DynamicCache, PreTrainedConfig

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
        if tokens or self._records_past:
            self.cache.crop(-tokens)
        self.length -= tokens


def _holds_recurrent_state(layer: Any) -> bool:
    return any(getattr(layer, "is_recurrent_states_initialized", {}).values())
