"""A forward of Llama-shaped models on the CPU with fewer and better shaped products than the library's.

A decoding step sends one row, a verification gamma + 1 rows, through every weight. There the time goes into reading the
weights and into dispatching operations, so here query, key and value are one product, gate and up another, the norm is
one call, nothing is wrapped, and every product is computed by the form that is the fastest here (`engine.products`).

Weights and rotary positions are those of the transformers model, which stays whole and usable beside it; the results
equal its own up to rounding. Architectures that are not listed go through transformers' forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from specworkbench.engine.calibration import Calibration
from specworkbench.engine.preallocated import PreallocatedCache
from specworkbench.engine.products import Affine, Product, ProductLinear

ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
STATIC_ROPE = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose angles do not depend on how long the context has become."""


def can_fuse(model: Any, devices: Sequence[str] = ("cpu",)) -> bool:
    """Whether `FusedForward` computes what this model computes, in single or double precision if on a CPU."""
    config = model.config
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    sliding = any(kind != "full_attention" for kind in getattr(config, "layer_types", None) or ())
    sliding = sliding or (getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True))
    known = (nn.Linear, ProductLinear)
    linear = all(type(module) in known for module in model.modules() if hasattr(module, "in_features"))
    parameter = next(model.parameters())
    return (
        type(model).__name__ in ARCHITECTURES
        and config._attn_implementation == "sdpa"
        and parameter.device.type in devices
        and (parameter.device.type != "cpu" or parameter.dtype in (torch.float32, torch.float64))
        and rope in STATIC_ROPE
        and linear
        and not sliding
    )


@dataclass
class _Layer:
    """What one decoder layer needs; norms are (weight, epsilon), number is its place in the model and in the cache."""

    number: int
    before_attention: tuple[torch.Tensor, float]
    mixed: Product
    query_norm: tuple[torch.Tensor, float] | None
    key_norm: tuple[torch.Tensor, float] | None
    attention_out: Product
    before_mlp: tuple[torch.Tensor, float]
    gate_up: Product
    down: Product
    activation: nn.Module


class FusedForward:
    """Logits and hidden states of a model that `can_fuse`, for one sequence.

    calibration: finds the forms of the products; all are plain without one. products: of all weights but the embedding.
    """

    @torch.no_grad()
    def __init__(self, model: Any, calibration: Calibration | None = None):
        decoder = model.model
        attention = decoder.layers[0].self_attn
        self.head_dim, self.scaling = attention.head_dim, attention.scaling
        self.heads = attention.q_proj.out_features // self.head_dim
        self.kv_heads = attention.k_proj.out_features // self.head_dim
        affines = [affine for layer in decoder.layers for affine in _affines(layer)] + [_affine(model.lm_head)]
        self.products = calibration.products(affines) if calibration else [Product(*affine) for affine in affines]
        *of_layers, self.head = self.products
        self.layers = [
            _layer(number, layer, *of_layers[4 * number : 4 * number + 4])
            for number, layer in enumerate(decoder.layers)
        ]
        self.embedding, self.norm = decoder.embed_tokens.weight, _norm(decoder.norm)
        self._rotary = decoder.rotary_emb
        self.cos = self.sin = torch.empty(0, 1, self.head_dim)

    def __call__(
        self, ids: torch.Tensor, cache: PreallocatedCache, rows: int | None = None, layers: Sequence[int] = (),
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:  # fmt: skip
        """ids: (n,) tokens, appended to the cache, which the caller lets grow. Returns logits of the last `rows` (all
        when None), (rows, vocab), and {layer: (n, width)} for the `layers` asked for, numbered as transformers' hidden
        states.

        mask: (n, past + n) bools, what each row sees, itself too; what comes before when not given. A row's rotary
        position is the number of tokens it sees before itself; `reach` has made room for it.
        """
        if mask is None:
            cos, sin = cache.angles(self.cos, ids.shape[0]), cache.angles(self.sin, ids.shape[0])
        else:
            positions = mask.sum(-1) - 1
            cos, sin = self.cos[positions], self.sin[positions]
        x = functional.embedding(ids, self.embedding)
        wanted = {layer % (len(self.layers) + 1): layer for layer in layers}
        hidden = {}
        for index, layer in enumerate(self.layers):
            if index in wanted:
                hidden[wanted[index]] = x
            x = self._attend(layer, x, cos, sin, mask, cache)
            x = x + _gated(layer, _normed(x, layer.before_mlp))
        if len(self.layers) not in wanted:
            return self.head(_normed(x if rows is None else x[-rows:], self.norm)), hidden
        hidden[wanted[len(self.layers)]] = x = _normed(x, self.norm)
        return self.head(x if rows is None else x[-rows:]), hidden

    def new_cache(self) -> PreallocatedCache:
        """An empty cache for one sequence."""
        return PreallocatedCache([layer.number for layer in self.layers], self.kv_heads, self.head_dim, self.embedding)

    def reach(self, tokens: int) -> None:
        """Have the rotary angles of so many positions: (positions, 1, head_dim), in tables that grow as needed."""
        if tokens > self.cos.shape[0]:
            positions = torch.arange(max(256, 2 * tokens), device=self.embedding.device).unsqueeze(0)
            cos, sin = self._rotary(self.embedding[:1, None], positions)
            self.cos, self.sin = cos[0].unsqueeze(1), sin[0].unsqueeze(1)

    def only(self, numbers: Sequence[int]) -> FusedForward:
        """The same forward through these layers alone, which keep their numbers in the cache."""
        some = copy(self)
        some.layers = [self.layers[number] for number in numbers]
        return some

    def _attend(
        self, layer: _Layer, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
        mask: torch.Tensor | None, cache: PreallocatedCache,
    ) -> torch.Tensor:  # fmt: skip
        """x (n, width) and what attention adds to it."""
        n, heads = x.shape[0], self.heads
        mixed = layer.mixed(_normed(x, layer.before_attention)).view(n, -1, self.head_dim)
        turning, value = mixed[:, : -self.kv_heads], mixed[:, -self.kv_heads :]
        if layer.query_norm is not None:
            query, key = _normed(turning[:, :heads], layer.query_norm), _normed(turning[:, heads:], layer.key_norm)
            turning = torch.cat([query, key], dim=1)
        first, second = turning.chunk(2, dim=-1)
        turned = (turning * cos + torch.cat([-second, first], dim=-1) * sin).transpose(0, 1)
        attended = cache.attend(layer.number, turned[:heads], turned[heads:], value.transpose(0, 1), self.scaling, mask)
        return x + layer.attention_out(attended.transpose(0, 1).reshape(n, -1))


def _gated(layer: _Layer, x: torch.Tensor) -> torch.Tensor:
    """down(activation(gate(x)) * up(x)), (n, width)."""
    gate, up = layer.gate_up(x).chunk(2, dim=-1)
    return layer.down(layer.activation(gate) * up)


def _normed(x: torch.Tensor, norm: tuple[torch.Tensor, float]) -> torch.Tensor:
    weight, epsilon = norm
    return functional.rms_norm(x, weight.shape, weight, epsilon)


def _layer(number: int, layer: Any, mixed: Product, attention_out: Product, gate_up: Product, down: Product) -> _Layer:
    """The products are those of `_affines`."""
    attention = layer.self_attn
    has_norms = hasattr(attention, "q_norm")
    return _Layer(
        number,
        _norm(layer.input_layernorm),
        mixed,
        _norm(attention.q_norm) if has_norms else None,
        _norm(attention.k_norm) if has_norms else None,
        attention_out,
        _norm(layer.post_attention_layernorm),
        gate_up,
        down,
        layer.mlp.act_fn,
    )


def _norm(norm: Any) -> tuple[torch.Tensor, float]:
    return norm.weight, norm.variance_epsilon


def _affines(layer: Any) -> list[Affine]:
    """Of a decoder layer: query, key and value as one, the output of attention, gate and up as one, down."""
    attention, mlp = layer.self_attn, layer.mlp
    return [
        _joined(attention.q_proj, attention.k_proj, attention.v_proj),
        _affine(attention.o_proj),
        _joined(mlp.gate_proj, mlp.up_proj),
        _affine(mlp.down_proj),
    ]


def _affine(layer: nn.Linear) -> Affine:
    return Affine(layer.weight, layer.bias)


def _joined(*layers: nn.Linear) -> Affine:
    """One weight and bias for linear layers of one input; their own become views of it, so nothing is held twice."""
    sources = tuple(layer.weight for layer in layers)
    weight = _consecutive([layer.weight.data for layer in layers])
    bias = None if layers[0].bias is None else _consecutive([layer.bias.data for layer in layers])
    sizes = [layer.out_features for layer in layers]
    for i, layer in enumerate(layers):
        layer.weight.data = weight.split(sizes)[i]
        if bias is not None:
            layer.bias.data = bias.split(sizes)[i]
    return Affine(weight, bias, sources)


def _consecutive(parts: list[torch.Tensor]) -> torch.Tensor:
    """The parts one after the other: as they lie where they do so already, else copied."""
    first = parts[0]
    places = accumulate((part.numel() for part in parts), initial=first.storage_offset())
    storage = first.untyped_storage().data_ptr()
    if all(
        part.is_contiguous() and part.untyped_storage().data_ptr() == storage and part.storage_offset() == place
        for part, place in zip(parts, places, strict=False)
    ):
        shape = (sum(part.shape[0] for part in parts), *first.shape[1:])
        return first.as_strided(shape, first.stride())
    return torch.cat(parts)
