"""Products of few rows with a weight on the CPU: the forms of one product, and which of them serves how many rows.

A decoding step sends one row, a verification gamma + 1 rows, through every weight. There `x @ W.T` as torch computes it
reads the weight at a fraction of the memory's speed. Other forms give the same numbers up to rounding; which is the
fastest depends on the weight's shape, the rows, the machine and its threads, and is measured (`engine.calibration`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from specworkbench.engine.calibration import Calibration

Bias = torch.Tensor | None

ROWS = (1, 2, 3, 5, 9, 16, 64)
"""Numbers of rows for which forms are compared; one between two is computed as the higher is, more as the last."""
BLOCKS_PER_THREAD = 8


class Affine(NamedTuple):
    """A linear layer's weight (out, in) and bias (out,) or None, and the parameters that the weight consists of."""

    weight: torch.Tensor
    bias: Bias = None
    sources: tuple[torch.Tensor, ...] = ()  # itself, when not given


@dataclass(frozen=True)
class Form:
    """One way to compute x @ weight.T + bias.

    prepare: the weight (out, in) as the form reads it: a view, or (`copies`) a copy of the same size. compute: from
    x (n, in), what was prepared, and bias (out,) or None to (n, out), contiguous.
    """

    prepare: Callable[[torch.Tensor], torch.Tensor]
    compute: Callable[[torch.Tensor, torch.Tensor, Bias], torch.Tensor]
    copies: bool = False


def _same(weight: torch.Tensor) -> torch.Tensor:
    return weight


def _blocks(weight: torch.Tensor) -> torch.Tensor:
    """(blocks, out / blocks, in), some blocks for each thread. Raises `ValueError` where out cannot be divided."""
    blocks = math.gcd(weight.shape[0], BLOCKS_PER_THREAD * torch.get_num_threads())
    if blocks == 1:
        raise ValueError(f"{weight.shape[0]} rows cannot be divided into blocks")
    return weight.view(blocks, -1, weight.shape[1])


def _packed(weight: torch.Tensor) -> torch.Tensor:
    """A copy in the layout oneDNN likes for 8 rows, which serves any number of them well."""
    return torch.ops.mkldnn._reorder_linear_weight.default(weight, 8)


def _turned(x: torch.Tensor, weight: torch.Tensor, bias: Bias) -> torch.Tensor:
    """(W @ x.T).T: the rows of W are those of the left matrix, for which BLAS has the better kernel."""
    return _plus(torch.mm(weight, x.t()).t().contiguous(), bias)


def _plain_blocks(x: torch.Tensor, blocks: torch.Tensor, bias: Bias) -> torch.Tensor:
    """The plain product of each block, as one batch, which the threads share."""
    products = torch.bmm(x.expand(blocks.shape[0], -1, -1), blocks.transpose(1, 2))
    return _plus(products.transpose(0, 1).reshape(x.shape[0], -1), bias)


def _turned_blocks(x: torch.Tensor, blocks: torch.Tensor, bias: Bias) -> torch.Tensor:
    products = torch.bmm(blocks, x.t().expand(blocks.shape[0], -1, -1))
    return _plus(products.view(-1, x.shape[0]).t().contiguous(), bias)


def _onednn(x: torch.Tensor, weight: torch.Tensor, bias: Bias) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")


def _plus(fresh: torch.Tensor, bias: Bias) -> torch.Tensor:
    return fresh if bias is None else fresh.add_(bias)


FORMS = {
    "plain": Form(_same, functional.linear),
    "turned": Form(_same, _turned),
    "plain_blocks": Form(_blocks, _plain_blocks),
    "turned_blocks": Form(_blocks, _turned_blocks),
    "onednn": Form(_same, _onednn),
    "packed": Form(_packed, _onednn, copies=True),
}
"""By name; of forms that are equally fast the first is preferred."""


class Product:
    """x @ weight.T + bias for x (n, in), by the form chosen for n rows: (n, out), contiguous, without gradients.

    weight, bias, sources: see `Affine`; forms: {rows: name} for each of ROWS, all plain when not given; packed:
    oneDNN's copy of the weight, None where no form uses one; lanes: the copy that compiled steps read, if there is one
    (`engine.compiled.lanes`). `packed` is made anew when a source was changed in place (other than through its `.data`,
    which torch does not count).
    """

    def __init__(
        self, weight: torch.Tensor, bias: Bias = None, sources: Sequence[torch.Tensor] = (),
        forms: dict[int, str] | None = None,
    ):  # fmt: skip
        self.weight, self.bias = weight, bias
        self.forms = forms or dict.fromkeys(ROWS, "plain")
        self.lanes: torch.Tensor | None = None
        self._sources = [source for source in sources or (weight,) if not source.is_inference()]
        self._prepare()

    def form(self, rows: int) -> str:
        """The name of the form that computes so many rows."""
        return self.forms[ROWS[min(bisect_left(ROWS, rows), len(ROWS) - 1)]]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is not None and self.changes() != self._prepared_at:
            self._prepare()
        rows = x.shape[0]
        compute, operand = self._by_rows[rows if rows < ROWS[-1] else ROWS[-1]]
        return compute(x, operand, self.bias)

    @property
    def packed_bytes(self) -> int:
        """Bytes that copies add to those of the weight."""
        packed = 0 if self.packed is None else torch.ops.mkldnn._nbytes(self.packed)
        return packed + (0 if self.lanes is None else self.lanes.nbytes)

    def unpack(self) -> None:
        """Give up oneDNN's copy; what it served is computed plainly."""
        self.forms = {rows: "plain" if name == "packed" else name for rows, name in self.forms.items()}
        self._prepare()

    def changes(self) -> int:
        """How often the weight was changed in place."""
        return sum([source._version for source in self._sources])

    def computes(self, layer: nn.Linear) -> bool:
        """Whether this is still the product of that layer: nobody has given it other tensors."""
        return layer.weight.data_ptr() == self._address and layer.bias is self.bias

    @torch.no_grad()
    def _prepare(self) -> None:
        weight = self.weight.detach()
        self._address, self._prepared_at = weight.data_ptr(), self.changes()
        operands = {name: FORMS[name].prepare(weight) for name in {"plain", *self.forms.values()}}
        names = ["plain", *(self.form(rows) for rows in range(1, ROWS[-1] + 1))]  # no row at all comes first
        self._by_rows = [(FORMS[name].compute, operands[name]) for name in names]
        self.packed = operands.get("packed")



class ProductLinear(nn.Linear):
    """A linear layer that computes few rows by a `Product`, and otherwise is the layer it was: same parameters, same
    names, and gradients through torch's own product. Copies and pickles of it are ordinary layers.
    """

    product: Product

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        differentiated = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        if differentiated or torch.compiler.is_compiling() or not self.product.computes(self):
            return functional.linear(x, self.weight, self.bias)
        if x.dim() == 2:
            return self.product(x)
        return self.product(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], -1)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        state = {name: value for name, value in vars(self).items() if name != "product"}
        return object.__new__, (nn.Linear,), state


def with_product(layer: nn.Linear, product: Product) -> nn.Linear:
    """A layer of the same parameters that computes by the product; the given one is left as it is."""
    other = copy(layer)
    other.__class__, other.product = ProductLinear, product
    return other


def use_products(module: nn.Module, calibration: Calibration) -> None:
    """Have every linear layer in a module compute few rows by its fastest form.

    Left alone are layers that are not on the CPU, not of the calibration's dtype, hooked by another library (which sets
    their `forward`), or best computed plainly. `drop_products` undoes it.
    """
    layers = [
        layer for layer in module.modules()
        if type(layer) is nn.Linear and "forward" not in vars(layer)
        and layer.weight.device.type == "cpu" and layer.weight.dtype == calibration.dtype
    ]  # fmt: skip
    products = calibration.products([Affine(layer.weight, layer.bias) for layer in layers])
    for layer, product in zip(layers, products, strict=True):
        if set(product.forms.values()) != {"plain"}:
            layer.__class__, layer.product = ProductLinear, product


def drop_products(module: nn.Module) -> None:
    """Make the linear layers of a module what they were before `use_products`."""
    for layer in module.modules():
        if isinstance(layer, ProductLinear):
            del layer.product
            layer.__class__ = nn.Linear


def products_of(module: nn.Module) -> list[Product]:
    """Those in use in a module."""
    return [layer.product for layer in module.modules() if isinstance(layer, ProductLinear)]


def describe_products(products: Sequence[Product]) -> dict[str, Any]:
    """For a trace's manifest: threads, packed_bytes added, and forms: {"3072x576": "turned 1-3, packed 4+"}."""
    shapes = {"{}x{}".format(*product.weight.shape): product for product in products}
    return {
        "threads": torch.get_num_threads(),
        "packed_bytes": sum(product.packed_bytes for product in products),
        "forms": {shape: _in_words(product) for shape, product in shapes.items()},
    }


def _in_words(product: Product) -> str:
    parts = [] if product.lanes is None else ["in lanes where compiled"]
    for name, rows in groupby(range(1, ROWS[-1] + 1), product.form):
        first, *more = rows
        last = "+" if ROWS[-1] in (first, *more) else f"-{more[-1]}" if more else ""
        parts.append(f"{name} {first}{last}")
    return ", ".join(parts)
