"""Prompts for the embedded family, cut deterministically from held-out text."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from specworkbench.training.corpus import BUCKETS, Corpus, Document

__all__ = ["cut", "write_prompts"]

PER_BUCKET = 12
SHORTEST, LONGEST = 60, 160  # tokens
BOUNDARIES = {  # where a prompt may begin, beside the document's start
    "code": re.compile(r"(?m)^(?=(?:@|class |def |async def |import |from ))"),
    "prose": re.compile(r"(?m)(?<=\n\n)(?=[A-Z`])"),
    "structured": re.compile(r"(?!)"),
}
ROOM = {"code": 150, "prose": 100, "structured": 80}  # tokens of the document that follow the prompt, at least


def cut(text: str, bucket: str, tokenizer, rng: random.Random) -> str | None:
    """A piece of 60 to 160 tokens from a natural beginning to the end of a line before a line with text, or None.

    >>> import inspect
    >>> from specworkbench.engine import load_model
    >>> text = inspect.getsource(random)
    >>> piece = cut(text, "code", load_model("embedded").tokenizer, random.Random(0))
    >>> piece in text, piece.count("def ") > 0 or piece.count("import ") > 0
    (True, True)
    """
    starts = [0] + [match.start() for match in BOUNDARIES[bucket].finditer(text)]
    rng.shuffle(starts)
    wanted = rng.randrange(SHORTEST + 15, LONGEST - 30)
    for start in starts:
        if len(tokenizer(text[start : start + 4000])["input_ids"]) < wanted + ROOM[bucket]:
            continue
        for match in re.finditer(r"\n(?=[^\n])", text[start:]):
            piece = text[start : start + match.end()]
            size = len(tokenizer(piece)["input_ids"])
            if size > LONGEST:
                break
            if size >= wanted:
                return piece
    return None


def _candidates(documents: list[Document], bucket: str) -> list[Document]:
    """Documents in the order in which they are tried: generated kinds in turn, others shuffled by a fixed seed."""
    if bucket == "structured":
        return documents
    shuffled = sorted(documents, key=lambda doc: doc.name)
    random.Random(f"prompts {bucket}").shuffle(shuffled)
    if bucket == "prose":  # topics and docstrings in turn
        kinds = [[d for d in shuffled if d.name.startswith("topic ") == wanted] for wanted in (True, False)]
        shuffled = [doc for i in range(max(map(len, kinds))) for kind in kinds for doc in kind[i : i + 1]]
    return shuffled


def make_prompts(corpus: Corpus, tokenizer) -> list[dict[str, str]]:
    """PER_BUCKET records {id, bucket, prompt} a bucket, from as many documents as possible."""
    records = []
    for bucket in BUCKETS:
        documents = _candidates([doc for doc in corpus.documents if doc.bucket == bucket and doc.heldout], bucket)
        found: list[str] = []
        for turn in range(6):  # a document may serve again where there are fewer than twelve
            for doc in documents:
                if len(found) < PER_BUCKET:
                    piece = cut(doc.text, bucket, tokenizer, random.Random(f"{turn} {doc.name}"))
                    if piece and not any(piece in other or other in piece for other in found):
                        found.append(piece)
        if len(found) < PER_BUCKET:
            raise ValueError(
                f"Only {len(found)} of {PER_BUCKET} prompts fit into this Python's held-out {bucket} documents."
            )
        records += [{"id": f"{bucket}-{i + 1:02d}", "bucket": bucket, "prompt": piece} for i, piece in enumerate(found)]
    return records


def write_prompts(records: list[dict[str, str]], file: Path) -> None:
    """JSON Lines.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_prompts([{"id": "code-01", "bucket": "code", "prompt": "import os"}], Path(folder) / "prompts.jsonl")
    ...     print((Path(folder) / "prompts.jsonl").read_text().strip())
    {"id": "code-01", "bucket": "code", "prompt": "import os"}
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
