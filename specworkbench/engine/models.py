"""One name in, a ready model out: the embedded family, a hub id, a local folder, a GGUF file."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig

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
from specworkbench.errors import InputError
from specworkbench.paths import EMBEDDED, embedded_dir, embedded_folder, head_kind, is_embedded, read_config

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
            "forward": "transformers" if self._fused is None else "fused",
            "engine": self.engine,
            "compiled": [] if self._compiled is None else [asdict(cost) for cost in self._compiled.programs.costs],
            "products": None if self._calibration is None else describe_products(self.products),
            "parameters": self.parameters,
            "vocab_size": self.vocab_size,
            "max_context": self.max_context,
        }

    def generation_sampling(self) -> dict[str, Any]:
        """What the model's own generation config says of sampling: only the settings it sets."""
        config = self.model.generation_config
        names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
        found = {name: getattr(config, name, None) for name in names}
        if config.do_sample is False:
            found["temperature"] = 0.0
        return {name: value for name, value in found.items() if value is not None}


def load_model(
    name: str,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    fused: bool = True,
    engine: str = "eager",
    products: bool = True,
) -> LanguageModel:
    """Load a model by name: `embedded`, `embedded/draft-s`, a hub id, a local Hugging Face folder or a GGUF file.

    dtype: float32, bfloat16, float16 or float64; by default float32 on the CPU and the checkpoint's own elsewhere.
    device: cuda, mps or cpu; the best there is by default. device_map: "auto" spreads a model over all GPUs.
    fused: forward through `engine.fused` where that knows the architecture (on the CPU); False: through transformers.
    engine: eager, or compiled: steps of fixed shape run as compiled programs (CPU) or captured graphs (GPU).
    products: on the CPU, products of few rows by the forms that are the fastest on this machine, which the first load
    finds out (`engine.calibration`), with packed copies of weights where they pay; False: as torch computes them.
    Raises `InputError` for a name, folder, dtype, device or engine that cannot be used.
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}; choose one of {', '.join(ENGINES)}")
    chosen = _device(device)
    source, options = _locate(name, revision)
    _refuse_head(name, source, options)
    options["trust_remote_code"] = trust_remote_code
    options_model = options | {"dtype": _dtype(dtype, chosen)}
    if device_map is not None:
        options_model["device_map"] = device_map
    try:
        config = AutoConfig.from_pretrained(source, **options)
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        model = AutoModelForCausalLM.from_pretrained(source, **options_model)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise InputError(f"cannot load the model {name!r}: {_first_line(error)}") from error
    if device_map is None:
        model = model.to(chosen)
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{name!r} is an encoder-decoder model; the workbench decodes decoder-only models")
    revision = revision or getattr(config, "_commit_hash", None)
    loaded = LanguageModel(model, tokenizer, name, revision, fused=fused, products=products)
    if engine == "compiled":
        loaded.compile()
    return loaded


def load_pair(
    target: str = EMBEDDED, draft: str = f"{EMBEDDED}/draft-m", **options: Any
) -> tuple[LanguageModel, LanguageModel]:
    """A target and a draft with the same vocabulary, loaded with the same options as `load_model`."""
    pair = load_model(target, **options), load_model(draft, **options)
    check_same_vocabulary(*pair)
    return pair


def check_same_vocabulary(target: LanguageModel, draft: LanguageModel) -> None:
    """Compare the two vocabularies token by token; padding rows of the output matrices do not count.

    Raises `InputError` naming the first difference.
    """
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    if ours == theirs:
        return
    by_id, other = ({i: text for text, i in vocab.items()} for vocab in (ours, theirs))
    first = min(i for i in by_id.keys() | other.keys() if by_id.get(i) != other.get(i))
    raise InputError(
        f"{draft.name} has another vocabulary than {target.name} ({len(theirs)} and {len(ours)} tokens; the first "
        f"difference is id {first}: {other.get(first)!r} against {by_id.get(first)!r}); the proposer draft_model needs "
        "the same one, the proposer other_vocabulary works with any pair"
    )


def embedded_names() -> list[str]:
    """Names of the models shipped with the workbench, the target first. Heads are none."""
    folders = [path.parent for path in sorted(embedded_dir().glob("*/config.json"))]
    drafts = [folder.name for folder in folders if folder.name != "target" and not head_kind(read_config(folder))]
    return [EMBEDDED, *(f"{EMBEDDED}/{draft}" for draft in drafts)]


def _locate(name: str, revision: str | None) -> tuple[str, dict[str, Any]]:
    """Where `from_pretrained` finds the model, and with which options."""
    if is_embedded(name):
        folder = embedded_folder(name)
        if folder is None:
            raise InputError(f"there is no embedded model {name!r}; there are {', '.join(embedded_names())}")
        return str(folder), {"local_files_only": True}
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if path.exists():
            return str(path.parent), {"gguf_file": path.name}
        repository, _, file = name.rpartition("/")
        if repository.count("/") != 1:
            raise InputError(f"there is no GGUF file {name!r}; on the hub it would be OWNER/REPOSITORY/FILE.gguf")
        return repository, {"gguf_file": file, "revision": revision}
    if path.is_dir():
        if not (path / "config.json").exists():
            raise InputError(f"the folder {name!r} is no Hugging Face model: it has no config.json")
        return str(path), {"local_files_only": True}
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise InputError(f"there is no model folder {name!r}")
    return name, {"revision": revision}


def _refuse_head(name: str, source: str, options: dict[str, Any]) -> None:
    """Raises `InputError` for weights that are a head: transformers would read some of them as a model."""
    config: dict[str, Any] = {}
    if "gguf_file" not in options:
        with contextlib.suppress(OSError, ValueError):  # whoever loads it says what is wrong
            config, _ = PreTrainedConfig.get_config_dict(source, **options)
    if kind := head_kind(config):
        raise InputError(f"{name!r} is no model but a head, to be used as --proposer {kind} --draft {name}")


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(best)
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {str(device)!r} cannot be used here: {_first_line(error)}") from error
    return chosen


def _dtype(dtype: str | torch.dtype | None, device: torch.device) -> str | torch.dtype:
    if dtype is None:
        return torch.float32 if device.type == "cpu" else "auto"
    if isinstance(dtype, torch.dtype):
        return dtype
    known = ("float64", "float32", "bfloat16", "float16")
    if dtype not in known:
        raise InputError(f"the dtype {dtype!r} is not known; choose one of {', '.join(known)}")
    return getattr(torch, dtype)


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        ids = getattr(source, "eos_token_id", None)
        if ids is not None:
            return tuple(ids) if isinstance(ids, (list, tuple)) else (int(ids),)
    return ()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
