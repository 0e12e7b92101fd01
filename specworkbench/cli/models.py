"""`specworkbench models`: the names that --target and --draft take."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from specworkbench import paths
from specworkbench.cli.options import Json
from specworkbench.cli.screen import printable
from specworkbench.paths import EMBEDDED, embedded_dir, head_kind, models_dir, read_config

OTHERS = """Other models, by name:
  a hub id          OWNER/NAME, such as HuggingFaceTB/SmolLM2-135M (--revision picks a commit, tag or branch)
  a local folder    a path with config.json, tokenizer.json and the weights
  a GGUF file       a path to FILE.gguf, or OWNER/REPOSITORY/FILE.gguf on the hub"""


@dataclass(frozen=True)
class Listed:
    """What can be named: parameters and context (tokens) are None where its files do not say.

    head: the proposer whose head it is, to be named by --draft only; None for a model of its own.
    """

    name: str
    parameters: int | None
    context: int | None
    head: str | None = None


def models(as_json: Json = False) -> None:
    """List the embedded models, the local ones, the heads among them, and how to name any other."""
    found = {"embedded": embedded_models(), "local": local_models()}
    listed = {place: [entry for entry in entries if not entry.head] for place, entries in found.items()}
    listed["heads"] = [entry for entries in found.values() for entry in entries if entry.head]
    if as_json:
        print(json.dumps({kind: [asdict(entry) for entry in entries] for kind, entries in listed.items()}))
        return
    print("Embedded models (no network needed):")
    _print(listed["embedded"])
    print(f"\nLocal models in {printable(str(models_dir()))} (set SPECWORKBENCH_MODELS to look elsewhere):")
    _print(listed["local"])
    print("\nHeads, which guess from the hidden states of the target that they were trained on:")
    _print(listed["heads"])
    print(f"\n{OTHERS}")


def embedded_models() -> list[Listed]:
    """The shipped family with its heads, the target first."""
    folders = sorted(path.parent for path in embedded_dir().glob("*/config.json"))
    folders.sort(key=lambda folder: folder.name != "target")
    return [_listed(f, EMBEDDED if f.name == "target" else f"{EMBEDDED}/{f.name}") for f in folders]


def local_models() -> list[Listed]:
    """What lies in `models_dir()`."""
    return [_listed(path, str(path)) for path in paths.local_models()]


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
    config = read_config(path)
    context = config.get("max_position_embeddings")
    return Listed(
        name,
        parameters_of(path, config.get("tie_word_embeddings") is True),
        context if isinstance(context, int) else None,
        head_kind(config),
    )


def _print(found: list[Listed]) -> None:
    if not found:
        print("  none")
    width = max((len(entry.name) for entry in found), default=0)
    for entry in found:
        parameters = "" if entry.parameters is None else f"{entry.parameters / 1e6:9.2f} M parameters"
        context = "" if entry.context is None else f"   context {entry.context}"
        usage = f"   --proposer {entry.head} --draft {entry.name}" if entry.head else ""
        print(f"  {printable(entry.name):{width}}{parameters}{context}{printable(usage)}".rstrip())
