"""A causal language model as the decode loop needs it: one sequence, forwards on a cache, rows of logits."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

import torch

from specworkbench.engine.calibration import Calibration, calibration_here
from specworkbench.engine.compiled.forward import CompiledForward
from specworkbench.engine.compiled.programs import check_can_compile
from specworkbench.engine.fused import ARCHITECTURES, FusedForward, can_fuse
from specworkbench.engine.kvcache import KVCache
from specworkbench.engine.products import (
    Product,
    describe_products,
    drop_products,
    products_of,
    use_products,
    with_product,
)
from specworkbench.engine.quantised import quantisation_of
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.errors import InputError

ENGINES = ("eager", "compiled")
Module = TypeVar("Module", bound=torch.nn.Module)

MASKED_ATTENTION = ("sdpa", "eager")
"""Kinds of attention of transformers that take a mask of any shape."""


@dataclass(frozen=True)
class Forward:
    """What one forward gave: logits (rows, vocab); hidden: {layer: (n, width)} for the layers asked for."""

    logits: torch.Tensor
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)


class LanguageModel:
    """A causal language model of transformers with its tokenizer, seen as the decode loop needs it: one sequence.

    Attributes: name, revision, device, dtype, parameters (count), vocab_size (tokens that can be drawn: padding rows
    of the output matrix are cut off), max_context (tokens), eos_ids. fused: use `engine.fused` where it can be;
    products: on the CPU, compute products of few rows by the fastest forms (`engine.products`), in the model itself
    where it is not fused. Both are in `options`, for whoever loads a draft in the same way.

    >>> from specworkbench.engine import load_model
    >>> target = load_model("embedded")
    >>> target.name, target.vocab_size, target.max_context, target.parameters
    ('embedded', 4096, 1024, 6557952)
    """

    def __init__(
        self, model: Any, tokenizer: Any, name: str, revision: str | None = None, *,
        fused: bool = True, products: bool = True,
    ):  # fmt: skip
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name, self.revision = name, revision
        self.device = next(model.parameters()).device
        self.dtype = next(model.parameters()).dtype
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        config = model.config.get_text_config()
        self.vocab_size = min(config.vocab_size, max(tokenizer.get_vocab().values()) + 1)
        self.max_context = int(getattr(config, "max_position_embeddings", 0) or 2**31 - 1)
        self.eos_ids = _eos_ids(model, tokenizer)
        accepted = inspect.signature(model.forward).parameters
        self._cache_keyword = "cache" if "cache" in accepted else "past_key_values"
        self._keeps_logits = "logits_to_keep" in accepted
        self._takes_positions = "position_ids" in accepted
        self.options = {"fused": fused, "products": products}
        self._fused = self._fused_forward()
        self._compiled: CompiledForward | None = None

    def _fused_forward(self) -> FusedForward | None:
        """The fused forward, where it is wanted and can be; else the model itself is sped up, where that is wanted."""
        drop_products(self.model)
        if self.options["fused"] and can_fuse(self.model):
            return FusedForward(self.model, self._calibration)
        self.speed_up(self.model)
        return None

    @property
    def _calibration(self) -> Calibration | None:
        return calibration_here(self.dtype) if self.options["products"] and self.device.type == "cpu" else None

    def speed_up(self, module: Module) -> Module:
        """Have the linear layers of a module computed by the fastest forms, if this model's are; returns the module."""
        if self._calibration is not None:
            use_products(module, self._calibration)
        return module

    @property
    def products(self) -> list[Product]:
        """Those that this model computes, except for what is left to torch."""
        return products_of(self.model) if self._fused is None else self._fused.products

    @cached_property
    def head(self) -> torch.nn.Module:
        """The output matrix as a layer: hidden states (..., width) to logits (..., rows of the matrix)."""
        layer = self.model.get_output_embeddings()
        return layer if self._fused is None else with_product(layer, self._fused.head)

    def new_cache(self) -> KVCache:
        """An empty cache for one sequence."""
        return KVCache(self.model.config.get_text_config()) if self._fused is None else self._fused.new_cache()

    @property
    def engine(self) -> str:
        """eager or compiled, one of `ENGINES`."""
        return "eager" if self._compiled is None else "compiled"

    @property
    def can_compile(self) -> bool:
        """Whether `compile` knows this model."""
        return self._fused is not None or (self.options["fused"] and can_fuse(self.model, ("cuda",)))

    def compile(self) -> None:
        """From now on forwards of fixed shape, those it is told to `expect`, run compiled (see `engine.compiled`).

        Raises `InputError` for a model it does not know, and where nothing can be compiled.
        """
        if not self.can_compile:
            raise InputError(
                f"the engine compiled does not know {self.name} as it was loaded: it takes {', '.join(ARCHITECTURES)} "
                "with full attention, fused, on a GPU or in float32 or float64 on a CPU; use engine eager"
            )
        if self.device.type == "cpu":
            check_can_compile()
        self._fused = self._fused or FusedForward(self.model)
        self._compiled = CompiledForward(self._fused, self.name)

    def expect(self, tokens: int, rows: int) -> None:
        """Forwards over so many tokens, giving so many rows, are to come again and again: worth compiling."""
        if self._compiled is not None:
            self._compiled.expect(tokens, rows)

    def prepare(self, cache: KVCache, layers: Sequence[int] = ()) -> None:
        """Compile what is expected for a cache of this size, unless it is; `layers` as in `forward`."""
        if self._compiled is not None:
            self._compiled.prepare(cache, layers)

    def blank_logits(self, rows: int) -> torch.Tensor:
        """(rows, vocab_size) zeros that lie in memory as the logits of a forward do."""
        width = self.model.get_output_embeddings().weight.shape[0]
        return torch.zeros(rows, width, dtype=self.dtype, device=self.device)[:, : self.vocab_size]

    def check_trees(self) -> None:
        """Raises `InputError` where this model cannot forward a tree of guesses, saying why."""
        config = self.model.config
        attention = getattr(config, "_attn_implementation", None) or "sdpa"
        why = None
        if not self.new_cache().can_branch:
            why = "it has layers with a sliding window or a recurrent state, which follow one line of tokens"
        elif not self._takes_positions or getattr(config.get_text_config(), "alibi", False):
            why = "its forward takes no positions"
        elif attention not in MASKED_ATTENTION:
            why = f"its attention {attention} takes no mask; load it with {' or '.join(MASKED_ATTENTION)}"
        if why is not None:
            raise InputError(f"{self.name} cannot judge or draft a tree of guesses: {why}; use a proposer of chains")

    @torch.inference_mode()
    def forward(
        self,
        ids: torch.Tensor,
        cache: KVCache,
        *,
        rows: int | None = None,
        layers: Sequence[int] = (),
        visible: torch.Tensor | None = None,
    ) -> Forward:
        """One forward over ids (n,), appended to the cache.

        `rows`: how many of the last logit rows to compute (all when not given). `layers`: indices into transformers'
        `hidden_states` (0 the embeddings, -1 the last, after the norm). `visible`, for a tree: (n, k) bools, which of
        the last k tokens, the n new ones at the end, each row sees, itself too; all see what is before these, and a
        row's position is the number of tokens it sees before itself. Returns logits (rows, vocab_size).
        """
        mask = None
        if visible is not None:
            before = cache.length + ids.shape[0] - visible.shape[1]
            mask = torch.nn.functional.pad(visible, (before, 0), value=True)
        if self._fused is not None:
            self._fused.reach(cache.length + ids.shape[0])
            logits, hidden = (self._compiled or self._fused)(ids, cache, rows, layers, mask)
        else:
            logits, hidden = self._transformers_forward(ids, cache, rows, layers, mask)
        cache.grew(ids.shape[0])
        return Forward(logits[:, : self.vocab_size], hidden)

    def _transformers_forward(
        self, ids: torch.Tensor, cache: KVCache, rows: int | None, layers: Sequence[int], mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        options: dict[str, Any] = {self._cache_keyword: cache.cache, "use_cache": True}
        if mask is not None:  # added to the scores: eager attention knows no other kind
            hidden_by = torch.zeros(mask.shape, dtype=self.dtype, device=mask.device)
            hidden_by.masked_fill_(~mask, torch.finfo(self.dtype).min)
            options |= {"attention_mask": hidden_by[None, None], "position_ids": (mask.sum(-1) - 1).unsqueeze(0)}
        if rows is not None and self._keeps_logits:
            options["logits_to_keep"] = rows
        if layers:
            options["output_hidden_states"] = True
        output = self.model(input_ids=ids.unsqueeze(0), **options)
        hidden = {layer: output.hidden_states[layer][0] for layer in layers}
        return output.logits[0] if rows is None else output.logits[0, -rows:], hidden

    def encode(self, prompt: str, chat: bool = False) -> list[int]:
        """Token ids of a prompt, through the chat template when asked. Raises `InputError` for an empty prompt."""
        if not prompt.strip():
            raise InputError("the prompt is empty; give at least one word to continue from")
        if not chat:
            return list(self.tokenizer(prompt).input_ids)
        if not getattr(self.tokenizer, "chat_template", None):
            raise InputError(f"{self.name} has no chat template; leave --chat out or choose an instruct model")
        turns = [{"role": "user", "content": prompt}]
        text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids, special tokens left out."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def token_text(self, token: int) -> str:
        """One token as text; its vocabulary entry where it is only a part of a character."""
        text = self.tokenizer.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return self.tokenizer.convert_ids_to_tokens(token) if "\ufffd" in text or not text else text

    def describe(self) -> dict[str, Any]:
        """The model's entry in a trace's manifest."""
        return {
            "name": self.name,
            "revision": self.revision,
            "dtype": str(self.dtype).removeprefix("torch."),
            "quantisation": quantisation_of(self.model),
            "forward": "transformers" if self._fused is None else "fused",
            "engine": self.engine,
            "compiled": [] if self._compiled is None else [asdict(cost) for cost in self._compiled.programs.costs],
            "products": self._describe_products(),
            "parameters": self.parameters,
            "vocab_size": self.vocab_size,
            "max_context": self.max_context,
        }

    def _describe_products(self) -> dict[str, Any] | None:
        """None where torch's own are used, without a copy of a weight."""
        by_torch = self._calibration is None and not any(product.packed_bytes for product in self.products)
        return None if by_torch else describe_products(self.products)

    def generation_sampling(self) -> dict[str, Any]:
        """What the model's own generation config says of sampling: only the settings it sets."""
        config = self.model.generation_config
        found = {setting.name: getattr(config, setting.name, None) for setting in fields(SamplingSettings)}
        if config.do_sample is False:
            found["temperature"] = 0.0
        return {name: value for name, value in found.items() if value is not None}


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        ids = getattr(source, "eos_token_id", None)
        if ids is not None:
            return tuple(ids) if isinstance(ids, (list, tuple)) else (int(ids),)
    return ()
