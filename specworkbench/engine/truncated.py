"""Some layers of a target as a language model of their own, for a draft that costs no weights: self-drafting.

The truncated model shares every module of the target, which is not disturbed: neither a module nor its `layer_idx` is
changed. Only the two outermost modules are copied, shallowly, to hold a shorter list of layers; and the cache finds
the place of a layer by the number that it has in the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from specworkbench.engine.fused import FusedForward
from specworkbench.engine.kvcache import KVCache
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.preallocated import PreallocatedCache
from specworkbench.errors import InputError

DECODER_PARTS = ("embed_tokens", "layers", "norm", "rotary_emb")


class LayersCache(Cache):
    """Keys and values of some layers of a model, which keep the numbers they have there."""

    def __init__(self, numbers: Sequence[int], held: Sequence[DynamicLayer]):
        super().__init__(layers=list(held))
        self._place = {number: place for place, number in enumerate(numbers)}

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return super().update(key_states, value_states, self._place[layer_idx], *args, **kwargs)


class LayersKVCache(KVCache):
    """The engine's adapter over a `LayersCache`: empty, or over what another cache already holds."""

    def __init__(self, numbers: Sequence[int], held: Sequence[DynamicLayer] | None = None, length: int = 0):
        self.cache = LayersCache(numbers, held or [DynamicLayer() for _ in numbers])
        self.length = length
        self._records_past = False


class TruncatedModel(LanguageModel):
    """The layers `numbers` of the target, then its final norm and its head.

    numbers: increasing, 0-based. Raises `InputError` for numbers that are not, for a decoder built otherwise than
    Llama's, and for layers with a sliding window or a recurrent state.
    """

    def __init__(self, target: LanguageModel, numbers: Sequence[int]):
        _check_decoder(target)
        _check_numbers(numbers, len(target.model.model.layers))
        self.numbers, self._whole = tuple(numbers), target
        name = f"{target.name}, layers {', '.join(map(str, numbers))}"
        super().__init__(_shortened(target.model, numbers), target.tokenizer, name, target.revision, **target.options)
        if target.engine == "compiled":
            self.compile()

    def _fused_forward(self) -> FusedForward | None:
        return self._whole._fused and self._whole._fused.only(self.numbers)

    @property
    def is_prefix(self) -> bool:
        """Whether these are the target's first layers, so that the target's cache holds what this model would cache."""
        return self.numbers == tuple(range(len(self.numbers)))

    def new_cache(self) -> KVCache:
        return LayersKVCache(self.numbers) if self._fused is None else self._fused.new_cache()

    def borrowed(self, cache: KVCache) -> KVCache:
        """A cache that begins with what the target's holds of these layers, for a prefix of them; nothing is copied.

        What the target's holds stays as it is: what is appended makes new tensors (`DynamicLayer.update` concatenates),
        or stands beyond the target's last token.
        """
        if isinstance(cache, PreallocatedCache):
            return cache.first(len(self.numbers))
        return LayersKVCache(
            self.numbers, [copy(layer) for layer in cache.cache.layers[: len(self.numbers)]], cache.length
        )


def _check_decoder(target: LanguageModel) -> None:
    decoder = getattr(target.model, "model", None)
    missing = [part for part in DECODER_PARTS if not hasattr(decoder, part)]
    if missing or not hasattr(target.model, "lm_head"):
        raise InputError(
            f"{type(target.model).__name__} is not built as Llama is (a model with {', '.join(DECODER_PARTS)} under an "
            "lm_head), so its layers cannot be run by themselves; choose another proposer"
        )
    if not target.new_cache().can_branch:
        raise InputError(
            f"{target.name} has layers with a sliding window or a recurrent state, which cannot be run by themselves; "
            "choose another proposer"
        )


def _check_numbers(numbers: Sequence[int], depth: int) -> None:
    inside = all(0 <= number < depth for number in numbers)
    increasing = all(one < following for one, following in pairwise(numbers))
    if not (numbers and inside and increasing):
        raise InputError(
            f"the layers {', '.join(map(str, numbers)) or '(none)'} cannot be run by themselves: they must be at least "
            f"one, increasing, and between 0 and {depth - 1}, the target's last"
        )


def _shortened(model: Any, numbers: Sequence[int]) -> Any:
    """The same model with these layers only. The modules are shared, but the two outermost and the configuration."""
    config = copy(model.config)
    config.num_hidden_layers = len(numbers)
    decoder = _shell(model.model, config, layers=nn.ModuleList(model.model.layers[number] for number in numbers))
    return _shell(model, config, model=decoder)


def _shell(module: Any, config: Any, **parts: nn.Module) -> Any:
    """A shallow copy of a module with some of its parts exchanged."""
    shell = copy(module)
    shell.__dict__.pop("forward", None)  # set where the model is spread over devices, and bound to the original
    shell._modules = dict(module._modules) | parts
    shell.config = config
    return shell
