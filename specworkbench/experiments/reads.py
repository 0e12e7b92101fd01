"""What a forward has to read and to do: bytes of weights and of cache, operations; counted, not measured.

Weights are counted as the model holds them, each once, however many layers share it or copies an engine keeps beside
it: a forward reads one of the copies. Of an embedding table it reads a row a token, unless the output head is the same
matrix; of experts those that its rows are sent to. Activations, which stay in the cache of the processor, do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from specworkbench.engine import LanguageModel
from specworkbench.engine.kvcache import KVCache

__all__ = ["Weights", "Reads", "weights_of", "reads_of"]

ALL_EXPERTS = "which experts a forward uses could not be seen; all are counted, so bytes and operations are too many"


@dataclass(frozen=True)
class Weights:
    """The weights of a model as a forward reads them, but for the experts.

    every: bytes read once, whatever the number of rows; looked_up: bytes of the embedding tables a row reads; entries:
    of the matrices that each row is multiplied with; experts: the modules that hold the experts of a layer.

    >>> from specworkbench.engine import load_model
    >>> weights_of(load_model("embedded").model).experts
    ()
    """

    every: int
    looked_up: int
    entries: int
    experts: tuple[nn.Module, ...]


@dataclass(frozen=True)
class Reads:
    """Of one forward: bytes of weights, bytes of keys and values (the written ones too), and operations.

    operations: two for each entry of a matrix and row; those of attention are left out. note: what is not exact.

    >>> Reads(weight_bytes=4000, cache_bytes=128, operations=2000).note is None
    True
    """

    weight_bytes: int
    cache_bytes: int
    operations: int
    note: str | None = None


def weights_of(model: Any) -> Weights:
    """model: a causal language model of transformers; of one that also sees or hears, what it reads for text.

    >>> from specworkbench.engine import load_model
    >>> found = weights_of(load_model("embedded").model)
    >>> found.every >= 4 * found.entries > 0
    True
    """
    modules = list(dict.fromkeys(module for part in _text_parts(model) for module in part.modules()))
    experts = tuple(module for module in modules if _holds_experts(module))
    tables = [module for module in modules if isinstance(module, nn.Embedding)]
    layers = [module for module in modules if module not in experts and module not in tables]
    every = {id(tensor): _nbytes(tensor) for module in layers for tensor in _tensors(module)}
    looked_up = {
        id(table.weight): _nbytes(table.weight) // table.num_embeddings
        for table in tables
        if id(table.weight) not in every
    }
    return Weights(sum(every.values()), sum(looked_up.values()), sum(map(_entries, layers)), experts)


def reads_of(target: LanguageModel, weights: Weights, ids: torch.Tensor, cache: KVCache) -> Reads:
    """Of a forward over ids (n,), which is done here and stays in the cache; weights: those of the target.

    >>> from specworkbench.engine import load_model
    >>> target = load_model("embedded")
    >>> ids = torch.tensor(target.encode("a b a b"))
    >>> one, all_ = (reads_of(target, weights_of(target.model), part, target.new_cache()) for part in (ids[:1], ids))
    >>> all_.operations == len(ids) * one.operations
    True
    """
    with _experts_watched(weights.experts) as used:
        target.forward(ids, cache)
    rows, read, entries, note = len(ids), weights.every + len(ids) * weights.looked_up, weights.entries * len(ids), None
    for module in weights.experts:
        number = module.num_experts
        experts, picks = used.get(module, (number, rows * number))
        note = note if module in used else ALL_EXPERTS
        tensors = _tensors(module)
        read += sum(map(_nbytes, tensors)) // number * experts
        entries += sum(tensor.numel() for tensor in tensors if tensor.ndim > 2) // number * picks
    return Reads(read, cache.nbytes, 2 * entries, note)


def _text_parts(model: Any) -> list[nn.Module]:
    if model.config.get_text_config() is model.config:
        return [model]
    return [model.get_decoder(), model.get_output_embeddings()]


def _holds_experts(module: nn.Module) -> bool:
    """Whether it holds the weights of all experts of a layer, as transformers stacks them: (experts, ..., ...)."""
    number, tensors = getattr(module, "num_experts", None), list(module.parameters(recurse=False))
    stacked = all(tensor.shape[:1] == (number,) for tensor in tensors)
    return number is not None and stacked and any(tensor.ndim > 2 for tensor in tensors)


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    """The weights of the module itself: its parameters; where a linear layer has none (quantised), its buffers."""
    parameters = list(module.parameters(recurse=False))
    return parameters or (list(module.buffers(recurse=False)) if hasattr(module, "in_features") else [])


def _entries(module: nn.Module) -> int:
    if hasattr(module, "in_features") and hasattr(module, "out_features"):
        return module.in_features * module.out_features
    return sum(tensor.numel() for tensor in module.parameters(recurse=False) if tensor.ndim > 1)


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


@contextmanager
def _experts_watched(modules: tuple[nn.Module, ...]) -> Iterator[dict[nn.Module, tuple[int, int]]]:
    """{module: (distinct experts used, rows sent to them in all)} of the forwards meanwhile, where it can be seen."""
    used: dict[nn.Module, tuple[int, int]] = {}
    hooks = [module.register_forward_pre_hook(partial(_see, used), with_kwargs=True) for module in modules]
    try:
        yield used
    finally:
        for hook in hooks:
            hook.remove()


def _see(
    used: dict[nn.Module, tuple[int, int]], module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """The experts are the one argument of whole numbers; a number past the last expert stands for none."""
    for given in (*arguments, *options.values()):
        if isinstance(given, torch.Tensor) and not given.is_floating_point() and given.dtype != torch.bool:
            experts = given[given < module.num_experts]
            used[module] = (experts.unique().numel(), experts.numel())
