"""One name in, a ready model out: the embedded family, a hub id, a local folder, a GGUF file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig
from transformers.utils import logging

from specworkbench.engine.models import ENGINES, LanguageModel
from specworkbench.engine.quantised import NONE, quantise
from specworkbench.errors import InputError
from specworkbench.paths import EMBEDDED, embedded_dir, embedded_folder, head_kind, is_embedded, read_config


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
    quantisation: str = NONE,
) -> LanguageModel:
    """Load a model by name: `embedded`, `embedded/draft-s`, a hub id, a local Hugging Face folder or a GGUF file.

    dtype: float32, bfloat16, float16 or float64; by default float32 on the CPU and the checkpoint's own elsewhere.
    device: cuda, mps or cpu; the best there is by default. On meta no weights are read: there are only shapes and a
    vocabulary, to see what fits together. device_map: "auto" spreads a model over all GPUs.
    fused: forward through `engine.fused` where that knows the architecture (on the CPU); False: through transformers.
    engine: eager, or compiled: steps of fixed shape run as compiled programs (CPU) or captured graphs (GPU).
    products: on the CPU, products of few rows by the forms that are the fastest on this machine, which the first load
    finds out (`engine.calibration`), with packed copies of weights where they pay; False: as torch computes them.
    quantisation: none, or int8: weights are put into int8 once they are loaded, on the CPU (`engine.quantised`); such a
    model is forwarded by transformers, whatever `fused` says.
    Raises `InputError` for a name, folder, dtype, device, engine or quantisation that cannot be used.

    >>> load_model("embedded/draft-s").parameters < load_model("embedded").parameters
    True
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
    quietly = _without_bars() if is_embedded(name) else contextlib.nullcontext()  # read before a bar is seen
    try:
        config = AutoConfig.from_pretrained(source, **options)
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        if chosen.type == "meta":
            with chosen:
                model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
        else:
            with quietly:
                model = AutoModelForCausalLM.from_pretrained(source, **options_model)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise InputError(f"cannot load the model {name!r}: {_first_line(error)}") from error
    if device_map is None:
        model = model.to(chosen)
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{name!r} is an encoder-decoder model; the workbench decodes decoder-only models")
    quantise(model, quantisation, name, chosen)
    revision = revision or getattr(config, "_commit_hash", None)
    loaded = LanguageModel(model, tokenizer, name, revision, fused=fused, products=products)
    if engine == "compiled":
        loaded.compile()
    return loaded


def quiet_transformers() -> None:
    """transformers says only what went wrong, and draws no bars while it reads weights."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """No bars in this block, for weights that are read within a blink: in a notebook a bar would stay there."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def load_pair(
    target: str = EMBEDDED, draft: str = f"{EMBEDDED}/draft-m", **options: Any
) -> tuple[LanguageModel, LanguageModel]:
    """A target and a draft with the same vocabulary, loaded with the same options as `load_model`.

    >>> target, draft = load_pair("embedded", "embedded/draft-m")
    >>> draft.vocab_size == target.vocab_size
    True
    """
    pair = load_model(target, **options), load_model(draft, **options)
    check_same_vocabulary(*pair)
    return pair


def check_same_vocabulary(target: LanguageModel, draft: LanguageModel) -> None:
    """Compare the two vocabularies token by token; padding rows of the output matrices do not count.

    Raises `InputError` naming the first difference.

    >>> target, draft = load_pair("embedded", "embedded/draft-s")
    >>> check_same_vocabulary(target, draft)
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
    """Names of the models shipped with the workbench, the target first. Heads are none.

    >>> embedded_names()
    ['embedded', 'embedded/draft-m', 'embedded/draft-s']
    """
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
        if repository.count("/") != 1 or name.startswith((".", "~", "/")):
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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
