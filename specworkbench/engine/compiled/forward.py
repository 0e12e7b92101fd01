"""A model's forward over a fixed number of tokens as one compiled program, over the tensors of a preallocated cache."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from specworkbench.engine.compiled.programs import Programs
from specworkbench.engine.fused import FusedForward
from specworkbench.engine.preallocated import PreallocatedCache
from specworkbench.engine.products import Product

PRODUCTS = ("mixed", "attention_out", "gate_up", "down")
NORMS = ("before_attention", "query_norm", "key_norm", "before_mlp")


class CompiledForward:
    """A `FusedForward` that runs compiled for the shapes that were expected, and as it is for all others.

    Both work on the same cache. A program is made when its shape first comes, and again when the cache has grown.
    """

    def __init__(self, fused: FusedForward, name: str):
        self.fused, self.name, self.programs = fused, name, Programs()
        self._expected: set[tuple[int, int]] = set()
        self._lengths = torch.empty(0, dtype=torch.int64)
        self._states: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])

    def expect(self, tokens: int, rows: int) -> None:
        """Forwards over so many tokens that give so many rows of logits are to come."""
        self._expected.add((tokens, rows))

    def __call__(
        self, ids: torch.Tensor, cache: PreallocatedCache, rows: int | None = None, layers: Sequence[int] = (),
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:  # fmt: skip
        """As `FusedForward.__call__`."""
        n = ids.shape[0]
        shape = (n, rows or n)
        if mask is not None or shape not in self._expected:
            return self.fused(ids, cache, rows, layers, mask)
        cache.reserve(cache.length + n)
        wanted = tuple(layers)
        key = (*shape, cache.capacity, wanted)
        program = self.programs.get(
            key, f"the forward of {self.name} over {n} tokens, room for {cache.capacity}",
            lambda: _traced(self.fused, *shape, wanted, cache.capacity), self._describe(shape, wanted),
        )  # fmt: skip
        logits, *hidden = program(ids, self._length(cache.length), *cache.keys, *cache.values)
        return logits, dict(zip(wanted, hidden, strict=True))

    def _length(self, length: int) -> torch.Tensor:
        """() int64."""
        if length >= self._lengths.shape[0]:
            self._lengths = torch.arange(max(1024, 2 * length))
        return self._lengths[length]

    def _describe(self, shape: tuple[int, int], layers: tuple[int, ...]) -> dict[str, Any]:
        """What the code of a step depends on besides the shapes of its tensors."""
        fused = self.fused
        return {
            "rows": shape[1], "layers": layers, "numbers": [layer.number for layer in fused.layers],
            "heads": (fused.heads, fused.kv_heads, fused.head_dim, fused.scaling),
            "forms": sorted(_forms(fused, shape).items()), "norms": [_epsilons(layer) for layer in fused.layers],
            "activations": [str(layer.activation) for layer in fused.layers],
        }  # fmt: skip


class Step(nn.Module):
    """The forward of n tokens with everything it reads as named buffers, so that it can be exported."""

    def __init__(self, fused: FusedForward, shape: tuple[int, int], layers: tuple[int, ...], capacity: int):
        super().__init__()
        self._fused, self._rows, self._wanted, self._capacity = fused, shape[1], layers, capacity
        self._form = _forms(fused, shape)
        self.constants: dict[str, torch.Tensor] = {}
        self._name("embedding", fused.embedding)
        self._name("norm", fused.norm[0])
        for table in ("cos", "sin"):
            self._name(table, getattr(fused, table)[:capacity].clone())
        self._name_product("head", fused.head)
        for place, layer in enumerate(fused.layers):
            for part in PRODUCTS:
                self._name_product(f"{part}_{place}", getattr(layer, part))
            for part in NORMS:
                if getattr(layer, part) is not None:
                    self._name(f"{part}_{place}", getattr(layer, part)[0])

    def forward(
        self, ids: torch.Tensor, length: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """ids (n,), length () tokens cached before. Returns logits (rows, vocab) and the hidden states asked for."""
        bound = copy(self._fused)
        bound.embedding, bound.norm = self.embedding, (self.norm, self._fused.norm[1])
        bound.cos, bound.sin, bound.head = self.cos, self.sin, self._product("head")
        bound.layers = [self._layer(place, layer) for place, layer in enumerate(self._fused.layers)]
        slots = Slots(ids.shape[0], length, keys, values)
        logits, hidden = bound(ids, slots, self._rows, self._wanted)
        return logits, *(hidden[layer] for layer in self._wanted)

    def _layer(self, place: int, layer: Any) -> Any:
        norms = {
            part: (getattr(self, f"{part}_{place}"), getattr(layer, part)[1])
            for part in NORMS
            if getattr(layer, part) is not None
        }
        products = {part: self._product(f"{part}_{place}") for part in PRODUCTS}
        return replace(layer, number=place, **norms, **products)

    def _name(self, name: str, tensor: torch.Tensor, held: torch.Tensor | None = None) -> None:
        """A buffer for the export, and what takes its place when the program is loaded."""
        self.register_buffer(name, tensor.detach())
        self.constants[name] = tensor.detach() if held is None else held

    def _name_product(self, name: str, product: Product) -> None:
        self._name(name, product.weight, product.packed if self._form[name] == "packed" else None)
        if product.bias is not None:
            self._name(f"{name}_bias", product.bias)

    def _product(self, name: str) -> Any:
        weight, bias, form = getattr(self, name), getattr(self, f"{name}_bias", None), self._form[name]
        return lambda x: _product(x, weight, bias, form)


class Slots:
    """A preallocated cache as a compiled step sees it: tensors of fixed size and a length that is a tensor."""

    def __init__(self, n: int, length: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor]):
        self._keys, self._values = keys, values
        self._positions = length + torch.arange(n, device=length.device)
        slots = torch.arange(keys[0].shape[1], device=length.device)
        self._hidden = torch.where(slots <= self._positions.unsqueeze(-1), 0.0, -torch.inf).to(keys[0].dtype)

    def angles(self, table: torch.Tensor, n: int) -> torch.Tensor:
        """See `PreallocatedCache.angles`."""
        return table.index_select(0, self._positions)

    def attend(
        self, number: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, mask: None
    ) -> torch.Tensor:
        """See `PreallocatedCache.attend`. Queries of one key head are the rows of one product."""
        keys, values = self._keys[number], self._values[number]
        keys.index_copy_(1, self._positions, key)
        values.index_copy_(1, self._positions, value)
        heads, n, head_dim = query.shape
        kv_heads, slots = keys.shape[:2]
        scores = torch.bmm(query.reshape(kv_heads, -1, head_dim), keys.transpose(1, 2)) * scaling
        weights = (scores.view(kv_heads, -1, n, slots) + self._hidden).softmax(-1)
        return torch.bmm(weights.view(kv_heads, -1, slots), values).view(heads, n, head_dim)


def _traced(
    fused: FusedForward, tokens: int, rows: int, layers: tuple[int, ...], capacity: int
) -> tuple[nn.Module, tuple[Any, ...], dict[str, torch.Tensor]]:
    fused.reach(capacity)
    step = Step(fused, (tokens, rows), layers, capacity)
    states = [
        [fused.embedding.new_zeros(fused.kv_heads, capacity, fused.head_dim) for _ in fused.layers] for _ in range(2)
    ]
    return step, (torch.zeros(tokens, dtype=torch.int64), torch.tensor(0), *states), step.constants


def _forms(fused: FusedForward, shape: tuple[int, int]) -> dict[str, str]:
    """How each product of a step is computed, by name: packed, or reduced for a single row, where sums over a weight's
    rows run at the memory's speed and take neighbouring operations into their loop."""
    tokens, rows = shape
    named = {"head": (fused.head, rows)}
    for place, layer in enumerate(fused.layers):
        named |= {f"{part}_{place}": (getattr(layer, part), tokens) for part in PRODUCTS}
    return {name: "reduced" if n == 1 else product.form(n) for name, (product, n) in named.items()}


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: str) -> torch.Tensor:
    if form == "packed":
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    if form == "plain":
        return functional.linear(x, weight, bias)
    y = (weight * x).sum(-1).unsqueeze(0) if form == "reduced" else torch.mm(weight, x.t()).t()
    return y if bias is None else y + bias


def _epsilons(layer: Any) -> list[float | None]:
    return [getattr(layer, part) and getattr(layer, part)[1] for part in NORMS]
