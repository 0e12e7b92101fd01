"""A model's forward over a fixed number of tokens as one compiled program, over the tensors of a preallocated cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from specworkbench.engine.compiled.graphs import Graph
from specworkbench.engine.compiled.lanes import Lanes
from specworkbench.engine.compiled.programs import Build, Program, Programs
from specworkbench.engine.compiled.step import NORMS, Step
from specworkbench.engine.fused import FusedForward
from specworkbench.engine.preallocated import PreallocatedCache


class CompiledForward:
    """A `FusedForward` that runs compiled for the shapes that were expected, and as it is for all others.

    Both work on the same cache. A program is made when its shape first comes, and again when the cache has grown.
    """

    def __init__(self, fused: FusedForward, name: str):
        self.fused, self.name, self.programs = fused, name, Programs()
        self._lanes = None if fused.embedding.is_cuda else Lanes(fused.products)
        self._expected: set[tuple[int, int]] = set()
        self._lengths = torch.empty(0, dtype=torch.int64)

    def expect(self, tokens: int, rows: int) -> None:
        """Forwards over so many tokens that give so many rows of logits are to come."""
        self._expected.add((tokens, rows))

    def __call__(
        self, ids: torch.Tensor, cache: PreallocatedCache, rows: int | None = None, layers: Sequence[int] = (),
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:  # fmt: skip
        """As `FusedForward.__call__`."""
        n, wanted = ids.shape[0], tuple(layers)
        shape = (n, rows or n)
        if mask is not None or shape not in self._expected:
            return self.fused(ids, cache, rows, layers, mask)
        cache.reserve(cache.length + n)
        length = self._length(cache.length)
        program = self._program(shape, wanted, ids, length, cache)
        states = () if ids.is_cuda else (*cache.keys, *cache.values)
        logits, *hidden = program(ids, length, *states)
        return logits, dict(zip(wanted, hidden, strict=True))

    def prepare(self, cache: PreallocatedCache, layers: Sequence[int] = ()) -> None:
        """Make the programs of all that is expected, for a cache of this size, and see that they have the weights as
        they are now."""
        if self._lanes is not None:
            self._lanes.update()
        for shape in sorted(self._expected):
            ids = torch.zeros(shape[0], dtype=torch.int64, device=self.fused.embedding.device)
            self._program(shape, tuple(layers), ids, self._length(cache.length), cache)

    def _program(
        self, shape: tuple[int, int], layers: tuple[int, ...], ids: torch.Tensor, length: torch.Tensor,
        cache: PreallocatedCache,
    ) -> Program | Graph:  # fmt: skip
        places = tuple(held.data_ptr() for held in (*cache.keys, *cache.values)) if ids.is_cuda else ()
        key = (*shape, cache.capacity, layers, places)
        return self.programs.get(key, lambda: self._build(shape, layers, ids, length, cache))

    def _length(self, length: int) -> torch.Tensor:
        """() int64, on the device."""
        if length >= self._lengths.shape[0]:
            self._lengths = torch.arange(max(1024, 2 * length), device=self.fused.embedding.device)
        return self._lengths[length]

    def _build(
        self, shape: tuple[int, int], layers: tuple[int, ...], ids: torch.Tensor, length: torch.Tensor,
        cache: PreallocatedCache,
    ) -> Build:  # fmt: skip
        """A graph is captured over the cache's own tensors; a program is exported over empty ones of their shape."""
        self.fused.reach(cache.capacity)
        step = Step(self.fused, shape, layers, cache.capacity)
        name = f"the forward of {self.name} over {shape[0]} tokens, room for {cache.capacity}"
        changing, states = (ids, length), (cache.keys, cache.values)
        if not ids.is_cuda:
            changing = torch.zeros_like(ids), torch.zeros_like(length)
            states = tuple([torch.zeros_like(held) for held in held_by_layer] for held_by_layer in states)
        return Build(name, step, self._describe(shape, layers), changing, states)

    def _describe(self, shape: tuple[int, int], layers: tuple[int, ...]) -> dict[str, Any]:
        """What the code of a step depends on besides the shapes of its tensors."""
        fused = self.fused
        return {
            "rows": shape[1],
            "layers": layers,
            "heads": (fused.heads, fused.kv_heads, fused.head_dim, fused.scaling),
            "norms": [[getattr(layer, part) and getattr(layer, part)[1] for part in NORMS] for layer in fused.layers],
            "last_norm": fused.norm[1],
            "activations": [str(layer.activation) for layer in fused.layers],
        }
