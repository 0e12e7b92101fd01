"""What an experiment writes: JSON without NaN, files whole or not at all, names that any file system takes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from specworkbench.files import whole_file

__all__ = ["to_json", "write_whole", "file_name"]


def to_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON in ASCII; a number that is not finite becomes null.

    >>> to_json({"alpha": float("nan"), "gamma": 4})
    '{"alpha": null, "gamma": 4}'
    """
    return json.dumps(_finite(value), allow_nan=False, indent=indent)


def write_whole(path: Path, text: str, what: str = "the report") -> Path:
    """Write the text (UTF-8) whole or not at all; the path. Raises `InputError` where it cannot be written.

    what: its name in that sentence.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     print(write_whole(Path(folder) / "table.csv", "gamma,4", "the table").read_text())
    gamma,4
    """
    with whole_file(path, what) as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))
    return path


def file_name(number: int, text: str) -> str:
    """A file name of letters, digits and `._-`: two of different numbers never meet, whatever their texts.

    >>> file_name(3, "draft_model:embedded/draft-m gamma 4")
    '003-draft_model-embedded-draft-m-gamma-4'
    """
    return f"{number:03d}-" + re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:80].strip(".-")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
