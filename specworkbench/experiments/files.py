"""What an experiment writes: JSON without NaN, files whole or not at all, names that any file system takes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import uuid
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError


def to_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON in ASCII; a number that is not finite becomes null."""
    return json.dumps(_finite(value), allow_nan=False, indent=indent)


def write_whole(path: Path, text: str) -> Path:
    """Write the text (UTF-8) whole or not at all; the path. Raises `InputError` where it cannot be written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
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
