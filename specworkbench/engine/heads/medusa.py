"""Medusa: heads on the last hidden state, each for a token further ahead (Cai et al. 2024, arXiv 2401.10774)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from specworkbench.engine.heads.blocks import linear
from specworkbench.engine.heads.feature import over_vocabulary


@dataclass(frozen=True)
class MedusaShape:
    """heads: how many, head k guessing the token k + 1 after the feature's; layers: residual blocks in each;
    width: of the target's hidden state; vocabulary: rows of each output matrix."""

    heads: int
    layers: int
    width: int
    vocabulary: int


class ResidualLayer(nn.Module):
    """x + SiLU(W x + b)."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + functional.silu(linear(x, self.linear))


class MedusaHeads(nn.Module):
    """All heads; they see the target's last hidden state (after the norm) and nothing of each other's guesses."""

    layers = (-1,)

    def __init__(self, shape: MedusaShape, target_ids: torch.Tensor | None = None):
        """target_ids: (vocabulary,) int64, the target's id of each entry of a truncated vocabulary."""
        super().__init__()
        self.shape = shape
        self.register_buffer("target_ids", target_ids, persistent=False)
        self.stages = nn.ModuleList(
            nn.Sequential(*(ResidualLayer(shape.width) for _ in range(shape.layers))) for _ in range(shape.heads)
        )
        self.heads = nn.ModuleList(nn.Linear(shape.width, shape.vocabulary, bias=False) for _ in range(shape.heads))

    def forward(self, hidden: torch.Tensor, head: int) -> torch.Tensor:
        """hidden (..., n, width) to logits (..., n, vocabulary) of head 0, 1, ..."""
        return linear(self.stages[head](hidden), self.heads[head])

    def logits(self, hidden: torch.Tensor, head: int, size: int) -> torch.Tensor:
        """hidden (n, width) to logits (n, size) of a head over the target's vocabulary of that size."""
        return over_vocabulary(self(hidden, head), self.target_ids, size)
