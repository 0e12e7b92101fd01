"""Bytes of weights: of a target, and of what a proposer has beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from specworkbench.engine import LanguageModel, Proposer

__all__ = ["weight_bytes"]

ENGINE = "specworkbench.engine"


def weight_bytes(target: LanguageModel, proposer: Proposer | None = None) -> dict[str, int]:
    """weight_bytes: of the target's weights, each once, or of the proposer's that are not the target's too;
    copy_bytes: what packed copies of these models' weights, made for speed, add to that.

    >>> from specworkbench.engine import load_model
    >>> sorted(weight_bytes(load_model("embedded")))
    ['copy_bytes', 'weight_bytes']
    """
    if proposer is None:
        models, modules, own, others = [target], [target.model], {}, set()
    else:
        parts = list(_parts(proposer, set()))
        models = [part for part in parts if isinstance(part, LanguageModel)]
        modules = [part.model if isinstance(part, LanguageModel) else part for part in parts]
        own, others = _storages([target.model]), {id(product) for product in target.products}
    storages = {address: size for address, size in _storages(modules).items() if address not in own}
    products = {id(product): product for model in models for product in model.products}
    copies = sum(product.packed_bytes for key, product in products.items() if key not in others)
    return {"weight_bytes": sum(storages.values()), "copy_bytes": copies}


def _parts(thing: Any, seen: set[int]) -> Iterator[LanguageModel | nn.Module]:
    """The models and modules that an object of the engine holds, at any depth."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, LanguageModel | nn.Module):
        yield thing
    elif isinstance(thing, list | tuple):
        for item in thing:
            yield from _parts(item, seen)
    elif type(thing).__module__.startswith(ENGINE):
        for value in getattr(thing, "__dict__", {}).values():
            yield from _parts(value, seen)


def _storages(modules: list[nn.Module]) -> dict[int, int]:
    """{address: bytes} of the memory that holds their parameters and buffers."""
    tensors: list[torch.Tensor] = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    return {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
