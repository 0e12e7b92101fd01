"""What is compiled of a model: its forward over a fixed number of tokens, with everything it reads as named tensors."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from specworkbench.engine.compiled.lanes import MOST_ROWS, summed
from specworkbench.engine.fused import FusedForward
from specworkbench.engine.products import Product

PRODUCTS = ("mixed", "attention_out", "gate_up", "down")
NORMS = ("before_attention", "query_norm", "key_norm", "before_mlp")


class Step(nn.Module):
    """The forward of n tokens with everything it reads as named parameters, so that it can be exported."""

    def __init__(self, fused: FusedForward, shape: tuple[int, int], layers: tuple[int, ...], capacity: int):
        super().__init__()
        self._fused, self._rows, self._wanted = fused, shape[1], layers
        self._summed = not fused.embedding.is_cuda and shape[0] <= MOST_ROWS
        self._outs: dict[str, int] = {}
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

    def _name(self, name: str, tensor: torch.Tensor) -> None:
        """A parameter: the export copies buffers, which takes as much memory again."""
        self.register_parameter(name, nn.Parameter(tensor.detach(), requires_grad=False))

    def _name_product(self, name: str, product: Product) -> None:
        in_lanes = self._summed and product.lanes is not None
        self._name(name, product.lanes if in_lanes else product.weight)
        self._outs[name] = product.weight.shape[0]
        if product.bias is not None:
            self._name(f"{name}_bias", product.bias)

    def _product(self, name: str) -> Callable[[torch.Tensor], torch.Tensor]:
        weight, bias = getattr(self, name), getattr(self, f"{name}_bias", None)
        if self._summed:
            return partial(summed, weight=weight, bias=bias, out=self._outs[name])
        return partial(functional.linear, weight=weight, bias=bias)


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
        if query.is_cuda:
            return functional.scaled_dot_product_attention(
                query.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), self._hidden, scale=scaling,
                enable_gqa=kv_heads < heads,
            ).squeeze(0)  # fmt: skip
        scores = torch.bmm(query.reshape(kv_heads, -1, head_dim), keys.transpose(1, 2)) * scaling
        weights = (scores.view(kv_heads, -1, n, slots) + self._hidden).softmax(-1)
        return torch.bmm(weights.view(kv_heads, -1, slots), values).view(heads, n, head_dim)
