"""Muon (Jordan et al. 2024) in float32 for hidden matrices, beside AdamW for embeddings and norms.

torch.optim.Muon orthogonalises in bfloat16, one matrix at a time, which a CPU without bfloat16 units does slowly; here
all matrices of one shape go through the iteration as one batch.
"""

from __future__ import annotations

from collections import defaultdict

import torch

__all__ = ["orthogonalise", "Muon"]

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # quintic of the Newton-Schulz iteration


def orthogonalise(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Nearest semi-orthogonal matrices, roughly: singular values to about 1. (batch, rows, columns) -> the same.

    >>> found = orthogonalise(torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    >>> bool((torch.linalg.svdvals(found) - 1).abs().max() < 0.4)
    True
    """
    a, b, c = COEFFICIENTS
    x = matrices.mT if matrices.size(1) > matrices.size(2) else matrices
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        gram = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if matrices.size(1) > matrices.size(2) else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, scaled by sqrt(max(1, rows / columns)); decoupled weight decay.

    >>> matrix = torch.nn.Parameter(torch.eye(3))
    >>> optimizer = Muon([matrix], lr=0.1)
    >>> matrix.grad = torch.ones(3, 3)
    >>> optimizer.step()
    >>> bool((matrix < torch.eye(3)).all())
    True
    """

    def __init__(self, params, lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """One update of every matrix."""
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for matrix in group["params"]:
                by_shape[matrix.shape].append(matrix)
            for (rows, columns), matrices in by_shape.items():
                directions = orthogonalise(torch.stack([self._direction(m, group["momentum"]) for m in matrices]))
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, direction in zip(matrices, directions, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-scale)

    def _direction(self, matrix: torch.Tensor, momentum: float) -> torch.Tensor:
        """Nesterov momentum of this matrix's gradient."""
        buffer = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
        buffer.lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(buffer, momentum)
