"""Text to train a head or a draft on: the embedded corpus, or files of the user's; a part is held out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specworkbench.engine import LanguageModel
from specworkbench.errors import InputError
from specworkbench.paths import EMBEDDED
from specworkbench.training.corpus import collect, share_of
from specworkbench.training.mixture import SHARES, Mixture, encode_corpus, encode_documents

__all__ = ["Text", "read_text"]

HELDOUT_SHARE = 0.05  # of documents


@dataclass(frozen=True)
class Text:
    """Windows to train on and windows held out, both by number; source: what it was made of.

    >>> mixture = Mixture({"text": np.arange(100)}, shares=(1.0,))
    >>> Text(mixture, mixture, "numbers").windows(length=8)
    10
    """

    train: Mixture
    heldout: Mixture
    source: str

    def windows(self, length: int) -> int:
        """How many windows of `length` tokens one pass over the training text has."""
        return min(
            int((len(stream) // length - 2) / share)
            for stream, share in zip(self.train.streams.values(), self.train.shares, strict=True)
        )


def read_text(data: list[str], target: LanguageModel, length: int) -> Text:
    """The text of `data`: 'embedded', or files and folders of text (.txt, .md, .py, ...), or JSON Lines with "text".

    Raises `InputError` for a file that cannot be read, or too little text for windows of `length` tokens.

    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.engine import load_model
    >>> with TemporaryDirectory() as folder:
    ...     for number in range(40):
    ...         _ = (Path(folder) / f"{number}.txt").write_text(f"text number {number}, " * 40)
    ...     text = read_text([folder], load_model("embedded"), length=16)
    >>> text.train.batch(0, 2, 16).shape
    (2, 17)
    """
    end = target.eos_ids[0] if target.eos_ids else None
    if data == [EMBEDDED]:
        corpus = collect()
        streams = [encode_corpus(target.tokenizer, corpus, heldout, end) for heldout in (False, True)]
        return Text(*(Mixture(part, seed=1, shares=SHARES) for part in streams), source=EMBEDDED)
    documents = [text for name in data for text in _documents(Path(name).expanduser())]
    heldout = [text for text in documents if share_of(text) < HELDOUT_SHARE] or documents[-1:]
    train = [text for text in documents if text not in set(heldout)]
    order = np.random.default_rng(0).permutation(len(train))
    parts = [encode_documents(target.tokenizer, texts, end) for texts in ([train[i] for i in order], heldout)]
    for part, side in zip(parts, ("to train on", "held out"), strict=True):
        if len(part) < 3 * length + 1:
            raise InputError(
                f"{', '.join(data)}: {len(part)} tokens of text {side}; at least {3 * length + 1} are needed for "
                f"windows of {length} tokens: give more text, or a smaller --length"
            )
    return Text(*(Mixture({"text": part}, seed=1, shares=(1.0,)) for part in parts), source=", ".join(data))


def _documents(path: Path) -> list[str]:
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith(".")]
        return [text for file in files for text in _documents(file)]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the text {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix not in (".jsonl", ".ndjson"):
        return [text] if text.strip() else []
    lines = enumerate(text.split("\n"), start=1)
    return [_text_of(line, f"line {number} of {str(path)!r}") for number, line in lines if line.strip()]


def _text_of(line: str, where: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where} is no JSON: {error}") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
        raise InputError(f'{where} has no "text": write one JSON object with a text a line')
    return entry["text"]
