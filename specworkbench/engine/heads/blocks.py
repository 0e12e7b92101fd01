"""What heads are built of: one decoder block of Llama's shape, rotary positions, and a cache of one sequence.

The same code runs in training, on (batch, length, width), and in decoding, on (n, width): only `attend` differs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(..., heads, n, head_dim) queries, (..., kv_heads, n, head_dim) keys and values to the attended values."""
Angles = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of n positions, each (n, 1, head_dim)."""


class Norm(nn.Module):
    """Root mean square norm with a weight. centred: it multiplies by 1 + weight (Qwen3-Next), not by weight."""

    def __init__(self, width: int, epsilon: float, centred: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width) if centred else torch.ones(width))
        self.epsilon, self.centred = epsilon, centred

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = 1 + self.weight if self.centred else self.weight
        return functional.rms_norm(x, weight.shape, weight, self.epsilon)


class Block(nn.Module):
    """Attention and gated feed-forward, with residuals. `reads`: width of what the attention reads (normed before).

    Beside Llama's own, the configuration may say `qk_norm` (queries and keys are normed head by head, as in Qwen3) and
    `window` (tokens back, itself included, that a token sees; 0: all). centred: see `Norm`.
    """

    def __init__(self, config: LlamaConfig, reads: int, centred: bool = False):
        super().__init__()
        width, self.heads, self.kv_heads = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or width // self.heads
        mixed = (self.heads + 2 * self.kv_heads) * self.head_dim
        self.qkv = nn.Linear(reads, mixed, bias=bool(config.attention_bias))
        self.out = nn.Linear(self.heads * self.head_dim, width, bias=False)
        self.mlp_norm = Norm(width, config.rms_norm_eps, centred)
        self.qk_norm, self.window = getattr(config, "qk_norm", False), getattr(config, "window", 0)
        if self.qk_norm:
            self.query_norm = Norm(self.head_dim, config.rms_norm_eps, centred)
            self.key_norm = Norm(self.head_dim, config.rms_norm_eps, centred)
        self.gate_up = nn.Linear(width, 2 * config.intermediate_size, bias=bool(config.mlp_bias))
        self.down = nn.Linear(config.intermediate_size, width, bias=bool(config.mlp_bias))
        self.activation = ACT2FN[config.hidden_act]

    def new_cache(self) -> BlockCache:
        """An empty cache for one sequence."""
        return BlockCache(self.window)

    def forward(self, read: torch.Tensor, residual: torch.Tensor, angles: Angles, attend: Attend) -> torch.Tensor:
        """read (..., n, reads), residual (..., n, width). Returns (..., n, width)."""
        mixed = self.qkv(read).unflatten(-1, (-1, self.head_dim))
        turning, value = mixed.split([self.heads + self.kv_heads, self.kv_heads], dim=-2)
        if self.qk_norm:
            query, key = turning.split([self.heads, self.kv_heads], dim=-2)
            turning = torch.cat([self.query_norm(query), self.key_norm(key)], dim=-2)
        turned = turn(turning, angles).transpose(-3, -2)
        query, key = turned.split([self.heads, self.kv_heads], dim=-3)
        attended = attend(query, key, value.transpose(-3, -2)).transpose(-3, -2).flatten(-2)
        x = residual + self.out(attended)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(self.activation(gate) * up)


def turn(x: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Rotary positions on x, as in Llama; the angles are as wide as x or broadcast to it."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Rotary:
    """Angles by position, from a table that grows as it is needed; the frequencies are transformers'."""

    def __init__(self, config: LlamaConfig):
        self._angles_of = LlamaRotaryEmbedding(config)
        self._cos = self._sin = torch.empty(0)

    def span(self, start: int, n: int, like: torch.Tensor) -> Angles:
        """Angles of the n positions from `start` on, in the dtype and on the device of `like`."""
        cos, sin = self._table(start + n, like)
        return cos[start : start + n], sin[start : start + n]

    def _table(self, size: int, like: torch.Tensor) -> Angles:
        if size > self._cos.shape[0] or self._cos.device != like.device or self._cos.dtype != like.dtype:
            positions = torch.arange(max(256, 2 * size), device=like.device).unsqueeze(0)
            cos, sin = self._angles_of.to(like.device)(like.new_empty(1, 1, 1), positions)
            self._cos, self._sin = cos[0].unsqueeze(1), sin[0].unsqueeze(1)
        return self._cos, self._sin


class BlockCache:
    """Keys and values of one block for one sequence. window: tokens back that a token sees, 0 for all."""

    def __init__(self, window: int = 0) -> None:
        self.window = window
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    @property
    def nbytes(self) -> int:
        return 0 if self.keys is None else 2 * self.keys.numel() * self.keys.element_size()

    def keep(self, tokens: int) -> None:
        """Keep the first `tokens`."""
        if tokens < self.length:
            self.keys, self.values = self.keys[..., :tokens, :], self.values[..., :tokens, :]

    def attend(self, mask: torch.Tensor | None = None) -> Attend:
        """Attention over what is cached and the new tokens, which are appended.

        mask: (n, cached + n) bools of what each new token sees; causal when not given.
        """

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            n, past = query.shape[-2], self.length
            if past:
                key, value = torch.cat([self.keys, key], dim=-2), torch.cat([self.values, value], dim=-2)
            self.keys, self.values = key, value
            seen = mask
            beyond = 0 < self.window < past + n
            if seen is None and ((n > 1 and past) or beyond):
                seen = torch.ones(n, past + n, dtype=torch.bool, device=query.device).tril_(past)
            if beyond:
                seen = seen.triu(past + 1 - self.window)
            attended = functional.scaled_dot_product_attention(
                query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), seen,
                is_causal=seen is None and n > 1, enable_gqa=key.shape[0] != query.shape[0],
            )  # fmt: skip
            return attended.squeeze(0)

        return attend
