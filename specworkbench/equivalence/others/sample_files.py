"""Outputs of any engine: lists of token ids with the group of each, and the files they are read from and written to."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError
from specworkbench.files import whole_file

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """Outputs, and the group (the prompt) of each.

    >>> Samples([(5, 7), (5, 8), (6, 6)], ["first", "first", "second"]).groups.count("first")
    2
    """

    outputs: list[Tokens]
    groups: list[str]


def read_samples(path: str | Path) -> Samples:
    """Outputs from a file of JSON lines.

    A line is {"prompt": index or name, "token_ids": [...]}, or a request with several outputs, as vLLM's objects and
    answers of its server with `return_token_ids` are when written down: {"prompt_token_ids": [...], "outputs" or
    "choices": [{"token_ids": [...]}, ...]}. Its group is `prompt`, or else `prompt_token_ids`; where a line has
    neither, it is one group with all others of that kind. Raises `InputError` with the line that is none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "theirs.jsonl"
    ...     _ = path.write_text('{"prompt_token_ids": [3, 4], "outputs": [{"token_ids": [5]}, {"token_ids": [7]}]}')
    ...     read_samples(path)
    Samples(outputs=[(5,), (7,)], groups=['[3, 4]', '[3, 4]'])
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read samples from {path}: {getattr(error, 'strerror', None) or error}") from error
    outputs: list[Tokens] = []
    groups: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"line {number} of {path}"
        record = _record(line, where)
        prompt = record.get("prompt")
        group = prompt if prompt is not None else record.get("prompt_token_ids", "")
        for output in record.get("outputs") or record.get("choices") or [record]:
            if not isinstance(output, dict) or not isinstance(output.get("token_ids"), list):
                raise InputError(f"{where} has no token_ids; write a line as {{'prompt': 0, 'token_ids': [5, 7]}}")
            outputs += checked([output["token_ids"]], where)
            groups.append(group if isinstance(group, str) else json.dumps(group))
    if not outputs:
        raise InputError(f"{path} holds no samples; it must have a line of JSON for each")
    return Samples(outputs, groups)


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where} is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"{where} is no object; write a line as {{'prompt': 0, 'token_ids': [5, 7]}}")
    return record


def write_samples(path: str | Path, samples: Samples) -> None:
    """A file that `read_samples` reads. Raises `InputError` where it cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_samples(Path(folder) / "ours.jsonl", Samples([(5, 7)], ["0"]))
    ...     print(read_samples(Path(folder) / "ours.jsonl"))
    Samples(outputs=[(5, 7)], groups=['0'])
    """
    with whole_file(Path(path), "samples") as file:
        for output, group in zip(samples.outputs, samples.groups, strict=True):
            file.write((json.dumps({"prompt": group, "token_ids": list(output)}) + "\n").encode())


def checked(outputs: Any, what: str) -> list[Tokens]:
    """Lists of token ids as tuples. Raises `InputError` where they are none, saying which."""
    try:
        found = [tuple(operator.index(token) for token in output) for output in outputs]
    except TypeError as error:
        raise InputError(f"{what} is no list of lists of token ids (whole numbers): {error}") from error
    if not found:
        raise InputError(f"{what} is empty; give at least one output of each")
    return found
