"""Prompts from JSON Lines files, one object a line, in any of the formats of `workloads.formats`."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError
from specworkbench.paths import prompts_dir
from specworkbench.workloads.formats import fields_of, kind_of

SHIPPED = ("embedded", "general")
"""The sets that come with the package: for the embedded family, and for real instruct models."""


@dataclass(frozen=True)
class Prompt:
    """One prompt: its text, the kind of work it stands for (bucket), and its language as a code such as en or zh.

    language is empty where a public question file does not say it; sub_category: SPEED-Bench's, else empty;
    later_turns: so many further questions of a conversation were left out.

    >>> Prompt("mine-0", "code", "def mean(values):").bucket
    'code'
    """

    id: str
    bucket: str
    text: str
    language: str = "en"
    sub_category: str = ""
    later_turns: int = 0


def load_prompts(
    source: str | os.PathLike = "embedded",
    *,
    buckets: str | Iterable[str] | None = None,
    per_bucket: int | None = None,
) -> list[Prompt]:
    """The prompts of a shipped set ("embedded", "general") or of a JSON Lines file, in the order of the file.

    The file's rows may be this project's, Spec-Bench's, SPEED-Bench's or plain ones (see `workloads.formats`), all of
    one kind. Of a conversation the first turn is taken, and `Prompt.later_turns` says how many follow; both projects
    ask those too, each after the model's own answers. `buckets` keeps only those named; `per_bucket` keeps the first
    so many of each bucket.

    Raises InputError, with a sentence, for a file that cannot be read, a line that is no JSON object, of no known
    format or of another than the first, a key that is missing or no text, an empty prompt, an id used twice, an unknown
    bucket, and per_bucket below 1.

    >>> [prompt.id for prompt in load_prompts("embedded", buckets="prose", per_bucket=2)]
    ['prose-01', 'prose-02']
    """
    path = _locate(source)
    prompts = _parse(_read(path), path)
    if buckets is not None:
        prompts = _only(prompts, [buckets] if isinstance(buckets, str) else list(buckets), path)
    if per_bucket is not None:
        prompts = _first(prompts, per_bucket)
    return prompts


def shipped_for(target: str) -> str:
    """The shipped set that suits the target of that name.

    >>> shipped_for("embedded"), shipped_for("Qwen/Qwen2.5-Coder-1.5B")
    ('embedded', 'general')
    """
    return "embedded" if target.startswith("embedded") else "general"


def buckets_of(prompts: Iterable[Prompt]) -> list[str]:
    """The buckets of these prompts, each once, in the order in which they first appear.

    >>> buckets_of(load_prompts("embedded"))
    ['code', 'prose', 'structured']
    """
    return list(dict.fromkeys(prompt.bucket for prompt in prompts))


def _locate(source: str | os.PathLike) -> Path:
    return prompts_dir() / f"{source}.jsonl" if source in SHIPPED else Path(os.path.expanduser(source))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"There is no prompt file {str(path)!r}: give the path of a JSON Lines file, "
            f"or the name of a shipped set ({', '.join(SHIPPED)})."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"Prompt file {str(path)!r} is not UTF-8 (byte {error.start} cannot be read): save it as UTF-8."
        ) from error
    except OSError as error:
        raise InputError(
            f"Prompt file {str(path)!r} cannot be read ({error.strerror}): give a JSON Lines file that you may read."
        ) from error


def _parse(text: str, path: Path) -> list[Prompt]:
    """The prompts of a file's text. Lines end at a newline only: U+2028 and form feeds may stand in a prompt."""
    prompts: list[Prompt] = []
    line_of: dict[str, int] = {}
    first = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"Line {number} of {str(path)!r}"
        row = _object(line, where)
        kind = kind_of(row, where)
        first = first or kind
        if kind != first:
            raise InputError(f"{where} is {kind}, the lines before it are {first}: give each format a file of its own.")
        prompt = Prompt(**fields_of(row, kind, where, number, path.stem))
        if prompt.id in line_of:
            raise InputError(
                f"Line {number} of {str(path)!r} has the id {prompt.id!r} of line {line_of[prompt.id]}: "
                "every prompt needs an id of its own."
            )
        line_of[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise InputError(f"Prompt file {str(path)!r} holds no prompt: write one JSON object a line.")
    return prompts


def _object(line: str, where: str) -> dict[str, Any]:
    """The object of one line; `where` names the line in the sentence of an InputError."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is no JSON ({error.msg}, column {error.colno}): write one JSON object a line."
        ) from error
    if not isinstance(row, dict):
        raise InputError(f"{where} is no JSON object but {row!r:.40}: write {{...}} with id, bucket and prompt.")
    return row


def _only(prompts: list[Prompt], buckets: list[str], path: Path) -> list[Prompt]:
    known = buckets_of(prompts)
    unknown = [bucket for bucket in buckets if bucket not in known]
    if unknown:
        raise InputError(f"Unknown bucket {unknown[0]!r}: {str(path)!r} has {', '.join(known)}.")
    return [prompt for prompt in prompts if prompt.bucket in buckets]


def _first(prompts: list[Prompt], per_bucket: int) -> list[Prompt]:
    if per_bucket < 1:
        raise InputError(
            f"per_bucket is {per_bucket}, but at least one prompt of each bucket is needed: give 1 or more."
        )
    taken = dict.fromkeys(buckets_of(prompts), 0)
    kept = []
    for prompt in prompts:
        if taken[prompt.bucket] < per_bucket:
            taken[prompt.bucket] += 1
            kept.append(prompt)
    return kept
