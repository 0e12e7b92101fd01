"""A forward of Llama-shaped models on the CPU with fewer and better shaped products than the library's.

A decoding step sends one row, a verification gamma + 1 rows, through every weight. There the time goes into reading the
weights and into dispatching operations, so here query, key and value are one product, gate and up another, the norm is
one call, nothing is wrapped, and a product of few rows is computed as `W @ x.T`, for which BLAS has the better kernel.

Weights, rotary positions and cache are those of the transformers model, which stays whole and usable beside it; the
results equal its own up to rounding. Architectures that are not listed go through transformers' forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import Cache

FEW_ROWS = 16
"""Up to so many rows a product is computed as `W @ x.T`."""
PAIRED_FROM = 2**18
"""Entries of a weight from which a single row is sent through twice: two threads share a product, but not one row's."""
ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
STATIC_ROPE = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose angles do not depend on how long the context has become."""

Affine = tuple[torch.Tensor, torch.Tensor | None]
"""Weight (out, in) and bias (out,) of a linear layer, or no bias."""


def can_fuse(model: Any) -> bool:
    """Whether `FusedForward` computes what this model computes."""
    config = model.config
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    sliding = any(kind != "full_attention" for kind in getattr(config, "layer_types", None) or ())
    sliding = sliding or (getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True))
    linear = all(type(module) is nn.Linear for module in model.modules() if hasattr(module, "in_features"))
    parameter = next(model.parameters())
    return (
        type(model).__name__ in ARCHITECTURES
        and config._attn_implementation == "sdpa"
        and parameter.device.type == "cpu"
        and parameter.dtype in (torch.float32, torch.float64)
        and rope in STATIC_ROPE
        and linear
        and not sliding
    )


@dataclass
class _Layer:
    """What one decoder layer needs; norms are (weight, epsilon)."""

    before_attention: tuple[torch.Tensor, float]
    mixed: Affine
    query_norm: tuple[torch.Tensor, float] | None
    key_norm: tuple[torch.Tensor, float] | None
    attention_out: Affine
    before_mlp: tuple[torch.Tensor, float]
    gate_up: Affine
    down: Affine
    activation: nn.Module


class FusedForward:
    """Logits and hidden states of a model that `can_fuse`, for one sequence."""

    @torch.no_grad()
    def __init__(self, model: Any):
        self._model = model
        attention = model.model.layers[0].self_attn
        self.head_dim, self.scaling = attention.head_dim, attention.scaling
        self.heads = attention.q_proj.out_features // self.head_dim
        self.kv_heads = attention.k_proj.out_features // self.head_dim
        self.layers = [_layer(layer) for layer in model.model.layers]
        self._cos = self._sin = torch.empty(0, self.head_dim)

    def __call__(
        self, ids: torch.Tensor, cache: Cache, rows: int | None = None, layers: Sequence[int] = (),
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:  # fmt: skip
        """ids: (n,) tokens, appended to the cache. Returns logits of the last `rows` (all when None), (rows, vocab),
        and {layer: (n, width)} for the `layers` asked for, numbered as transformers' hidden states.

        mask: (n, past + n) bools, what each row sees, itself too; what comes before when not given. A row's rotary
        position is the number of tokens it sees before itself.
        """
        n, past = ids.shape[0], cache.get_seq_length()
        cos, sin = self._rotary(past, n)
        causal = mask
        if mask is not None:
            positions = mask.sum(-1) - 1
            cos, sin = self._cos[positions], self._sin[positions]
        elif n > 1 and past:
            causal = torch.ones(n, past + n, dtype=torch.bool).tril_(past)
        x = functional.embedding(ids, self._model.model.embed_tokens.weight)
        wanted = {layer % (len(self.layers) + 1): layer for layer in layers}
        hidden = {}
        for index, layer in enumerate(self.layers):
            if index in wanted:
                hidden[wanted[index]] = x
            x = self._attend(layer, index, x, cos, sin, causal, cache)
            x = x + _gated(layer, _normed(x, layer.before_mlp))
        x = _normed(x, _norm(self._model.model.norm))
        if len(self.layers) in wanted:
            hidden[wanted[len(self.layers)]] = x
        head = self._model.lm_head
        return product(x if rows is None else x[-rows:], head.weight, head.bias), hidden

    def _attend(
        self, layer: _Layer, index: int, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
        causal: torch.Tensor | None, cache: Cache,
    ) -> torch.Tensor:  # fmt: skip
        """x (n, width) and what attention adds to it."""
        n, heads = x.shape[0], self.heads
        mixed = product(_normed(x, layer.before_attention), *layer.mixed).view(n, -1, self.head_dim)
        turning, value = mixed[:, : -self.kv_heads], mixed[:, -self.kv_heads :]
        if layer.query_norm is not None:
            query, key = _normed(turning[:, :heads], layer.query_norm), _normed(turning[:, heads:], layer.key_norm)
            turning = torch.cat([query, key], dim=1)
        first, second = turning.chunk(2, dim=-1)
        turned = (turning * cos + torch.cat([-second, first], dim=-1) * sin).transpose(0, 1).unsqueeze(0)
        key, value = cache.update(turned[:, heads:], value.transpose(0, 1).unsqueeze(0), index)
        attended = functional.scaled_dot_product_attention(
            turned[:, :heads], key, value, causal,
            is_causal=causal is None and n > 1, scale=self.scaling, enable_gqa=self.kv_heads < heads,
        )  # fmt: skip
        return x + product(attended.squeeze(0).transpose(0, 1).reshape(n, -1), *layer.attention_out)

    def _rotary(self, start: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of n positions, each (n, 1, head_dim), from a table that grows as it is needed."""
        if start + n > self._cos.shape[0]:
            size = max(256, 2 * (start + n))
            like = self._model.model.embed_tokens.weight[:1, None]
            cos, sin = self._model.model.rotary_emb(like, torch.arange(size).unsqueeze(0))
            self._cos, self._sin = cos[0].unsqueeze(1), sin[0].unsqueeze(1)
        return self._cos[start : start + n], self._sin[start : start + n]


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x: (n, in), weight: (out, in), bias: (out,) or None. Returns x @ weight.T + bias, (n, out), contiguous."""
    if x.shape[0] > FEW_ROWS:
        return functional.linear(x, weight, bias)
    rows = _turned(weight, x).t().contiguous()
    return rows if bias is None else rows.add_(bias)


def _turned(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """weight (out, in) times the few rows x (n, in), contiguous: (out, n). The fast kernel wants x in this layout."""
    if x.shape[0] == 1 and weight.numel() >= PAIRED_FROM and torch.get_num_threads() > 1:
        return torch.mm(weight, torch.cat([x, x]).t())[:, :1]
    return torch.mm(weight, x.t())


def _gated(layer: _Layer, x: torch.Tensor) -> torch.Tensor:
    """down(activation(gate(x)) * up(x)), (n, width)."""
    (weight, bias), (down, down_bias) = layer.gate_up, layer.down
    if x.shape[0] > FEW_ROWS or bias is not None:
        gate, up = product(x, weight, bias).chunk(2, dim=-1)
        return product(layer.activation(gate) * up, down, down_bias)
    gate, up = _turned(weight, x).chunk(2)
    return product(layer.activation(gate).mul_(up).t().contiguous(), down, down_bias)


def _normed(x: torch.Tensor, norm: tuple[torch.Tensor, float]) -> torch.Tensor:
    weight, epsilon = norm
    return functional.rms_norm(x, weight.shape, weight, epsilon)


def _layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    has_norms = hasattr(attention, "q_norm")
    return _Layer(
        _norm(layer.input_layernorm),
        _joined(attention.q_proj, attention.k_proj, attention.v_proj),
        _norm(attention.q_norm) if has_norms else None,
        _norm(attention.k_norm) if has_norms else None,
        (attention.o_proj.weight, attention.o_proj.bias),
        _norm(layer.post_attention_layernorm),
        _joined(mlp.gate_proj, mlp.up_proj),
        (mlp.down_proj.weight, mlp.down_proj.bias),
        mlp.act_fn,
    )


def _norm(norm: Any) -> tuple[torch.Tensor, float]:
    return norm.weight, norm.variance_epsilon


def _joined(*layers: nn.Linear) -> Affine:
    """One weight and bias for linear layers of one input; their own become views of it, so nothing is held twice."""
    sizes = [layer.out_features for layer in layers]
    weight = torch.cat([layer.weight.data for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias.data for layer in layers])
    for i, layer in enumerate(layers):
        layer.weight.data = weight.split(sizes)[i]
        if bias is not None:
            layer.bias.data = bias.split(sizes)[i]
    return weight, bias
