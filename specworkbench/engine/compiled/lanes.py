"""Products of few rows as compiled code computes them best: sums over a weight that is read once, as fast as memory is.

Rows, up to `MOST_ROWS`, are summed side by side while an entry of the weight is in a register. In lanes, the entries of
as many rows of the weight as a vector register has room for lie beside each other, so that no sum runs across a
register; and the weight is read in two places at once, because one stream does not fill the memory's bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence

import psutil
import torch
from torch.nn import functional

from specworkbench.engine.calibration import SHARE_OF_MEMORY
from specworkbench.engine.products import Product

MOST_ROWS = 16
STREAMS = 2
STREAMS_AS_IT_IS = 4
"""A weight that is not in lanes needs more of them."""
REGISTER = {"AVX512": 64, "AVX2": 32}
"""Bytes of a vector register; other processors have 16."""


@torch.no_grad()
def in_lanes(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a weight (out, in) as (streams, blocks, in, lanes), rows of zeros added where they do not divide."""
    lanes = REGISTER.get(torch.backends.cpu.get_cpu_capability(), 16) // weight.itemsize
    filled = functional.pad(weight, (0, 0, 0, -weight.shape[0] % (STREAMS * lanes)))
    return filled.view(STREAMS, -1, lanes, weight.shape[1]).transpose(2, 3).contiguous()


class Lanes:
    """Copies in lanes of the weights of some products, which all who compute by these products share."""

    def __init__(self, products: Sequence[Product]):
        self._products = products
        for product in products:
            product.unpack()  # oneDNN's copies make room
        room = SHARE_OF_MEMORY * psutil.virtual_memory().available
        for product in products:
            if product.lanes is None and product.weight.nbytes <= room:
                product.lanes = in_lanes(product.weight)
                room -= product.lanes.nbytes
        self._changes = self._count()

    def update(self) -> None:
        """Copy weights again that were changed in place (other than through their `.data`)."""
        now = self._count()
        for product, then, changes in zip(self._products, self._changes, now, strict=True):
            if then != changes and product.lanes is not None:
                product.lanes.copy_(in_lanes(product.weight))
        self._changes = now

    def _count(self) -> list[int]:
        return [product.changes() for product in self._products]


def summed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: int) -> torch.Tensor:
    """x (n, in) @ weight.T + bias: (n, out), for a weight (out, in) or one in lanes, in code that is to be compiled."""
    n, rows = x.shape[0], _stored(x)
    if weight.dim() == 2:
        sums = [(part * row).sum(1) for row in rows for part in weight.tensor_split(STREAMS_AS_IT_IS)]
        y = torch.cat(sums).view(n, out)
    else:
        sums = [(part * row.unsqueeze(1)).sum(1) for row in rows for part in weight.unbind()]
        y = torch.stack(sums).view(n, -1)[:, :out]
    return y if bias is None else y + bias


def _stored(x: torch.Tensor) -> list[torch.Tensor]:
    """The rows of x by their places in memory.

    Compiled, x is then computed once and stored: what sums read is otherwise computed again by each of them, and for
    each entry of a weight. A part of a larger tensor is not what is stored, so it is taken apart as usual.
    """
    x = x.contiguous()
    if x.untyped_storage().nbytes() != x.nbytes:
        return list(x.unbind())
    return [x.as_strided((x.shape[1],), (1,), place * x.shape[1]) for place in range(x.shape[0])]
