"""Keys and values in tensors made beforehand: tokens are written into their places, a rollback moves the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from specworkbench.engine.kvcache import KVCache

LEAST_CAPACITY = 256
"""Tokens; a cache has room for this many or a power of two above, so that few different sizes occur."""


class PreallocatedCache(KVCache):
    """The cache of one sequence for forwards of our own, numbered by the model's layers.

    keys, values: a tensor (kv_heads, capacity, head_dim) for each of the layers `numbers`. What stands beyond `length`
    is nobody's: left over from guesses that were taken back, and overwritten by the next tokens.
    """

    def __init__(self, numbers: Sequence[int], kv_heads: int, head_dim: int, like: torch.Tensor):
        """like: a tensor of the dtype and on the device that keys and values are to have."""
        self._place = {number: place for place, number in enumerate(numbers)}
        self.keys = [like.new_zeros(kv_heads, LEAST_CAPACITY, head_dim) for _ in numbers]
        self.values = [like.new_zeros(kv_heads, LEAST_CAPACITY, head_dim) for _ in numbers]
        self.length = 0

    @property
    def can_rollback(self) -> bool:
        return True

    @property
    def can_branch(self) -> bool:
        return True

    @property
    def capacity(self) -> int:
        """Tokens there is room for."""
        return self.keys[0].shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values held; there is room for `capacity` tokens."""
        per_token = sum(states[0].shape[0] * states[0].shape[-1] for states in (self.keys, self.values))
        return per_token * len(self.keys) * self.length * self.keys[0].element_size()

    def reserve(self, tokens: int) -> None:
        """Make room for a context of so many tokens; what is held is copied when the tensors must become larger."""
        if tokens <= self.capacity:
            return
        room = 1 << (tokens - 1).bit_length()
        for states in (self.keys, self.values):
            states[:] = [functional.pad(held, (0, 0, 0, room - held.shape[1])) for held in states]

    def first(self, layers: int) -> PreallocatedCache:
        """A cache of the first so many layers in these same tensors: what it appends, the next tokens overwrite."""
        shared = object.__new__(PreallocatedCache)
        shared._place = {number: place for number, place in self._place.items() if place < layers}
        shared.keys, shared.values, shared.length = self.keys[:layers], self.values[:layers], self.length
        return shared

    def angles(self, table: torch.Tensor, n: int) -> torch.Tensor:
        """table: (positions, ...) of rotary angles. Those of the n tokens to come."""
        return table[self.length : self.length + n]

    def attend(
        self, number: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Write n tokens after the cached ones, and attend; `grew` counts them once all layers have them.

        query: (heads, n, head_dim), key, value: (kv_heads, n, head_dim); mask: (n, length + n) bools of what each token
        sees, causal when not given. Returns (heads, n, head_dim).
        """
        n, past, place = query.shape[1], self.length, self._place[number]
        self.reserve(past + n)
        keys, values = self.keys[place], self.values[place]
        keys[:, past : past + n] = key
        values[:, past : past + n] = value
        if mask is None and n > 1 and past:
            mask = torch.ones(n, past + n, dtype=torch.bool, device=query.device).tril_(past)
        attended = functional.scaled_dot_product_attention(
            query.unsqueeze(0), keys[:, : past + n].unsqueeze(0), values[:, : past + n].unsqueeze(0), mask,
            is_causal=mask is None and n > 1, scale=scaling, enable_gqa=key.shape[0] < query.shape[0],
        )  # fmt: skip
        return attended.squeeze(0)

    def _crop(self, tokens: int) -> None:
        """Nothing is to be done: the length alone says what is held."""

    def _move(self, last: int, kept: Sequence[int]) -> None:
        start = self.length - last
        slots = torch.tensor(kept, device=self.keys[0].device) + start
        for held in (*self.keys, *self.values):
            held[:, start : start + len(kept)] = held.index_select(1, slots)
