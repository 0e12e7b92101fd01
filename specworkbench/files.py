"""Files whole or not at all: what traces, reports and checkpoints are written through."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from specworkbench.errors import InputError

__all__ = ["whole_file"]


@contextlib.contextmanager
def whole_file(path: Path, what: str) -> Iterator[BinaryIO]:
    """A binary file to write in the `with` block: under a temporary name beside `path`, renamed at the end.

    Folders on the way are made. When the block fails, `path` is as it was and nothing else is left. what: its name in
    the sentence of the `InputError` raised where the file cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "new" / "figures.bin", "the figures") as file:
    ...         _ = file.write(b"12")
    ...     print((Path(folder) / "new" / "figures.bin").read_bytes())
    b'12'
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {what} to {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
