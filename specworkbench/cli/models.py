"""`specworkbench models`: the names that --target and --draft take."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specworkbench.cli.options import Json
from specworkbench.cli.screen import printable
from specworkbench.paths import embedded_dir, models_dir

OTHERS = """Other models, by name:
  a hub id          OWNER/NAME, such as HuggingFaceTB/SmolLM2-135M (--revision picks a commit, tag or branch)
  a local folder    a path with config.json, tokenizer.json and the weights
  a GGUF file       a path to FILE.gguf, or OWNER/REPOSITORY/FILE.gguf on the hub"""


@dataclass(frozen=True)
class Listed:
    """A model that can be named: parameters and context (tokens) are None where its files do not say."""

    name: str
    parameters: int | None
    context: int | None


def models(as_json: Json = False) -> None:
    """List the embedded models, the local ones, and how to name any other."""
    embedded, local = embedded_models(), local_models()
    if as_json:
        listed = {"embedded": embedded, "local": local}
        print(json.dumps({kind: [asdict(model) for model in found] for kind, found in listed.items()}))
        return
    print("Embedded models (no network needed):")
    _print(embedded)
    print(f"\nLocal models in {printable(str(models_dir()))} (set SPECWORKBENCH_MODELS to look elsewhere):")
    _print(local)
    print(f"\n{OTHERS}")


def embedded_models() -> list[Listed]:
    """The shipped family, the target first."""
    folders = sorted(path.parent for path in embedded_dir().glob("*/config.json"))
    folders.sort(key=lambda folder: folder.name != "target")
    return [_listed(f, "embedded" if f.name == "target" else f"embedded/{f.name}") for f in folders]


def local_models() -> list[Listed]:
    """Hugging Face folders and GGUF files in `models_dir()`, by path."""
    root = models_dir()
    folders = [path.parent for pattern in ("*/config.json", "*/*/config.json") for path in root.glob(pattern)]
    files = [path for pattern in ("*.gguf", "*/*.gguf") for path in root.glob(pattern)]
    return [_listed(path, str(path)) for path in sorted({*folders, *files})]


def parameters_of(folder: Path, tied: bool = False) -> int | None:
    """Parameters in a folder's safetensors files, counted from their headers; None where there are none to read.

    tied: whether the output matrix is the embedding's, and so does not count where a file holds it twice.
    """
    total = 0
    for file in folder.glob("*.safetensors"):
        try:
            with open(file, "rb") as weights:
                header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
            shapes = {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
            total += sum(math.prod(shape) for name, shape in shapes.items() if not (tied and name == "lm_head.weight"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError):
            return None
    return total or None


def _listed(path: Path, name: str) -> Listed:
    config = _config(path / "config.json")
    context = config.get("max_position_embeddings")
    return Listed(
        name,
        parameters_of(path, config.get("tie_word_embeddings") is True),
        context if isinstance(context, int) else None,
    )


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _print(found: list[Listed]) -> None:
    if not found:
        print("  none")
    width = max((len(model.name) for model in found), default=0)
    for model in found:
        parameters = "" if model.parameters is None else f"{model.parameters / 1e6:9.2f} M parameters"
        context = "" if model.context is None else f"   context {model.context}"
        print(f"  {printable(model.name):{width}}{parameters}{context}".rstrip())
