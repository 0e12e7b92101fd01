"""Weights in int8 on the CPU: a quarter of float32's bytes to read a step, and products of whole numbers.

Weights are quantised symmetrically by output channel, once; what comes in symmetrically by row, at every product
(LLM.int8 without its outliers, Dettmers et al. 2022). The output matrix stays as it is, as it does in bitsandbytes:
it is often the embedding's too. The quantised model is another model, with a distribution of its own, to which
speculation over it is lossless.
"""

from __future__ import annotations

import torch
from torch import nn

from specworkbench.errors import InputError

NONE, INT8 = "none", "int8"
QUANTISATIONS = (NONE, INT8)
LARGEST = 127


class Int8Linear(nn.Module):
    """A linear layer whose weight (out, in) is int8 with a scale for each row; bias as it was."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        whole, scale = by_row(layer.weight.detach())
        self.weight = nn.Parameter(whole, requires_grad=False)
        self.register_buffer("scale", scale.squeeze(1))
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., in); (..., out) of x's dtype."""
        rows, scale = by_row(x.reshape(-1, self.in_features))
        product = torch._int_mm(rows, self.weight.t()).to(x.dtype) * scale * self.scale
        product = product if self.bias is None else product + self.bias
        return product.view(*x.shape[:-1], self.out_features)


def by_row(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x (n, m) as int8 (n, m) and the scale (n, 1) of each row: x is nearly their product. A row of zeros stays one."""
    scale = x.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny) / LARGEST
    return torch.round(x / scale).to(torch.int8), scale


def quantise(model: nn.Module, quantisation: str, name: str, device: torch.device) -> None:
    """Put the weights of all linear layers but the output matrix into int8, in place; nothing for "none".

    Raises `InputError` for another word, and on another device than the CPU.
    """
    if quantisation not in QUANTISATIONS:
        raise InputError(f"quantisation is {quantisation!r}; choose one of {', '.join(QUANTISATIONS)}")
    if quantisation == NONE:
        return
    if device.type not in ("cpu", "meta"):
        raise InputError(
            f"{name} cannot be quantised to {quantisation} on {device.type}: products of int8 are for the CPU; load it "
            "there, or name a checkpoint that is quantised already"
        )
    head = model.get_output_embeddings()
    for parent in list(model.modules()):
        for child_name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and child is not head:
                setattr(parent, child_name, Int8Linear(child))


def quantisation_of(model: nn.Module) -> str:
    """int8 where any layer is, else none: a checkpoint that came quantised says so in its configuration."""
    return INT8 if any(isinstance(module, Int8Linear) for module in model.modules()) else NONE
