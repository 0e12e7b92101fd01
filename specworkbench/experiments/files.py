"""What an experiment writes: JSON without NaN, files whole or not at all, names that any file system takes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from specworkbench.files import whole_file


def to_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON in ASCII; a number that is not finite becomes null."""
    return json.dumps(_finite(value), allow_nan=False, indent=indent)


def write_whole(path: Path, text: str, what: str = "the report") -> Path:
    """Write the text (UTF-8) whole or not at all; the path. Raises `InputError` where it cannot be written."""
    with whole_file(path, what) as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))
    return path


def file_name(number: int, text: str) -> str:
    """A file name of letters, digits and `._-`: two of different numbers never meet, whatever their texts."""
    return f"{number:03d}-" + re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:80].strip(".-")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
