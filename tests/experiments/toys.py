"""Toy models as Hugging Face folders, prompts for them, and JSON as strict as the standard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specworkbench.workloads import Prompt
from tests.engine.toys import toy_model

PROMPTS = (
    Prompt("one/1", "letters", "abcabc"),
    Prompt("one-1", "letters", "hello"),
    Prompt("two", "<b>[red]", "zzz"),
)


def save_toys(root: Path) -> Path:
    """`target` and `draft` of one vocabulary, `other` of another, in folders below `root`."""
    models = {
        "target": toy_model(26, layers=2, context=160),
        "draft": toy_model(26, seed=1, layers=1, context=160),
        "other": toy_model(12, seed=2, layers=1, context=160),
    }
    for name, model in models.items():
        model.model.save_pretrained(root / name)
        model.tokenizer.save_pretrained(root / name)
    return root


def write_prompts(path: Path, prompts=PROMPTS) -> Path:
    lines = [json.dumps({"id": prompt.id, "bucket": prompt.bucket, "prompt": prompt.text}) for prompt in prompts]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def strict_json(text: str) -> Any:
    """The one object that the text holds and nothing else; NaN and Infinity are refused."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
