"""Where the data shipped with the package lies, where real models are kept, and which folders hold heads."""

import json
import os
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError

__all__ = [
    "data_dir", "models_dir", "local_models", "cache_dir", "embedded_dir", "is_embedded", "embedded_folder",
    "read_config", "head_kind", "claims_dir", "traces_dir", "prompts_dir",
]  # fmt: skip

PACKAGE = Path(__file__).resolve().parent
MODELS_VARIABLE = "SPECWORKBENCH_MODELS"
CACHE_VARIABLE = "SPECWORKBENCH_CACHE"
EMBEDDED = "embedded"
"""The name of the embedded target; the others of its family are called embedded/NAME."""


def data_dir() -> Path:
    """The folder with models, prompts, traces, claims: inside an installed wheel, else at the root of a checkout.

    Raises InputError when there is neither.

    >>> sorted(folder.name for folder in data_dir().iterdir() if folder.is_dir())
    ['claims', 'models', 'prompts', 'traces']
    """
    installed, checkout = PACKAGE / "_data", PACKAGE.parent / "data"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(
        f"The data of specworkbench is missing: neither {installed} nor {checkout} is a folder; "
        "install the wheel again, or run from a complete checkout."
    )


def models_dir() -> Path:
    """The folder of the real models: $SPECWORKBENCH_MODELS, else ~/.cache/specworkbench/models. It may not exist.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, SPECWORKBENCH_MODELS="/models"):
    ...     print(models_dir())
    /models
    """
    return Path(os.environ.get(MODELS_VARIABLE) or "~/.cache/specworkbench/models").expanduser()


def local_models() -> list[Path]:
    """Hugging Face folders and GGUF files in `models_dir()`, models and heads alike, by path.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, SPECWORKBENCH_MODELS="/nowhere"):
    ...     print(local_models())
    []
    """
    root = models_dir()
    folders = [path.parent for pattern in ("*/config.json", "*/*/config.json") for path in root.glob(pattern)]
    return sorted({*folders, *(path for pattern in ("*.gguf", "*/*.gguf") for path in root.glob(pattern))})


def cache_dir() -> Path:
    """The folder of what can be made anew: $SPECWORKBENCH_CACHE, else ~/.cache/specworkbench. It may not exist.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, SPECWORKBENCH_CACHE="/cache"):
    ...     print(cache_dir())
    /cache
    """
    return Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/specworkbench").expanduser()


def embedded_dir() -> Path:
    """The folder of the embedded family. Raises InputError when the shipped data is missing.

    >>> (embedded_dir() / "target" / "config.json").is_file()
    True
    """
    return data_dir() / "models" / "embedded"


HEAD_MARK = "specworkbench_head"
"""The key that this project adds to the public configuration of a head it writes: its kind."""


def is_embedded(name: str) -> bool:
    """Whether the name is one of the embedded family's, be it there or not.

    >>> is_embedded("embedded/draft-s"), is_embedded("Qwen/Qwen2.5-Coder-1.5B")
    (True, False)
    """
    return name == EMBEDDED or name.startswith(f"{EMBEDDED}/")


def embedded_folder(name: str) -> Path | None:
    """The folder of a model or head of the embedded family by its name; None where there is none such.

    >>> embedded_folder("embedded/draft-s").name, embedded_folder("embedded/draft-xxl")
    ('draft-s', None)
    """
    folder = embedded_dir() / (name.partition("/")[2] or "target")
    return folder if is_embedded(name) and (folder / "config.json").exists() else None


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a model's folder; empty where it cannot be read.

    >>> read_config(embedded_folder("embedded"))["model_type"], read_config(Path("/nowhere"))
    ('llama', {})
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def head_kind(config: dict[str, Any]) -> str | None:
    """Which proposer the weights with this config.json are a head for; None where they are a model of their own.

    The marks: this project's own (`HEAD_MARK`); `medusa_num_heads` (FasterDecoding/Medusa); an architecture
    with the name in its own, such as LlamaForCausalLMEagle3 (SafeAILab/EAGLE), Eagle3Speculator or MedusaModel.

    >>> head_kind(read_config(embedded_folder("embedded/eagle"))), head_kind(read_config(embedded_folder("embedded")))
    ('eagle', None)
    """
    if head := config.get(HEAD_MARK):
        return str(head)
    if "medusa_num_heads" in config:
        return "medusa"
    architectures = str(config.get("architectures")).lower()
    return next((kind for kind in ("eagle", "medusa") if kind in architectures), None)


def claims_dir() -> Path:
    """The folder of the shipped results on the claims, by target. Raises `InputError` when shipped data is missing.

    >>> (claims_dir() / "embedded").is_dir()
    True
    """
    return data_dir() / "claims"


def traces_dir() -> Path:
    """Folder of the traces that notebooks and examples open on.

    >>> (traces_dir() / "quickstart.trace").is_file()
    True
    """
    return data_dir() / "traces"


def prompts_dir() -> Path:
    """The folder of the shipped prompt files. Raises InputError when the shipped data is missing.

    >>> sorted(file.name for file in prompts_dir().glob("*.jsonl"))
    ['embedded.jsonl', 'general.jsonl']
    """
    return data_dir() / "prompts"
