"""Interim."""

from __future__ import annotations

import torch
from torch.nn import functional

FEW_ROWS = 16
PAIRED_FROM = 2**18


class Product:
    def __init__(self, weight, bias=None):
        self.weight, self.bias, self.packed = weight, bias, None
        if weight.dtype == torch.float32:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), 8)

    def form(self, rows):
        if self.packed is not None and 2 < rows <= FEW_ROWS:
            return "packed"
        if rows == 1 and self.weight.numel() >= PAIRED_FROM and torch.get_num_threads() > 1:
            return "paired"
        return "turned" if rows <= FEW_ROWS else "plain"

    def __call__(self, x):
        form = self.form(x.shape[0])
        if form == "packed":
            return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        if form == "plain":
            return functional.linear(x, self.weight, self.bias)
        turned = torch.mm(self.weight, torch.cat([x, x]).t())[:, :1] if form == "paired" else self.weight @ x.t()
        rows = turned.t().contiguous()
        return rows if self.bias is None else rows.add_(self.bias)


def product(x, weight, bias):
    if x.shape[0] > FEW_ROWS:
        return functional.linear(x, weight, bias)
    turned = torch.mm(weight, torch.cat([x, x]).t())[:, :1] if x.shape[0]==1 and weight.numel() >= PAIRED_FROM else weight @ x.t()
    rows = turned.t().contiguous()
    return rows if bias is None else rows.add_(bias)
