"""Medusa: heads on the last hidden state, each for a token further ahead (Cai et al. 2024, arXiv 2401.10774)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from specworkbench.engine.heads.feature import over_vocabulary


@dataclass(frozen=True)
class MedusaShape:
    """heads: how many, head k (0, 1, ...) guessing token t + 2 + k from the hidden state of position t; layers:
    residual layers in each; width: of the hidden state; vocabulary: rows of each output matrix. ranks: for each head,
    how often its first, second, ... candidate is the target's token, on held-out text; empty where not measured.
    """

    heads: int
    layers: int
    width: int
    vocabulary: int
    ranks: tuple[tuple[float, ...], ...] = ()


class ResidualLayer(nn.Module):
    """x + SiLU(W x + b)."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + functional.silu(self.linear(x))


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
        return self.heads[head](self.stages[head](hidden))

    def logits(self, hidden: torch.Tensor, head: int, size: int) -> torch.Tensor:
        """hidden (n, width) to logits (n, size) of a head over the target's vocabulary of that size."""
        return over_vocabulary(self(hidden, head), self.target_ids, size)


def likely_paths(ranks: tuple[tuple[float, ...], ...], nodes: int) -> list[tuple[int, ...]]:
    """The `nodes` paths of candidates most likely to be accepted, most likely first (Cai et al. 2024, section 2.3.3).

    ranks: acceptance by head and rank, not rising with the rank; a path's likelihood is the product over its nodes.
    Every beginning of a path comes before it, so that the paths are a tree.
    """
    waiting = [(-ranks[0][0], (0,))]
    paths: list[tuple[int, ...]] = []
    while waiting and len(paths) < nodes:
        value, path = heapq.heappop(waiting)
        paths.append(path)
        depth, rank = len(path), path[-1]
        if rank + 1 < len(ranks[depth - 1]) and ranks[depth - 1][rank] > 0:
            sibling = value / ranks[depth - 1][rank] * ranks[depth - 1][rank + 1]
            heapq.heappush(waiting, (sibling, (*path[:-1], rank + 1)))
        if depth < len(ranks):
            heapq.heappush(waiting, (value * ranks[depth][0], (*path, 0)))
    return paths
