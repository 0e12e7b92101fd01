"""Bits per byte on held-out text, beside xz, and short samples to look at."""

from __future__ import annotations

import lzma
import math

import numpy as np
import torch
from torch.nn import functional

from specworkbench.training.mixture import encode_documents
from specworkbench.training.tokenizer import CONTEXT, END_OF_TEXT_ID

__all__ = ["bits_per_byte", "xz_bits_per_byte", "sample", "overlap"]


@torch.inference_mode()
def bits_per_byte(model, tokenizer, texts: list[str], window: int = CONTEXT, most_tokens: int | None = None) -> float:
    """Bits a byte of `texts` (each one a document, its end counted) under the model.

    The texts are one stream, read in windows of `window` tokens that overlap by half: every token but the first
    window's is scored with at least window / 2 tokens before it. `most_tokens` reads only the stream's beginning.

    >>> from specworkbench.engine import load_model
    >>> target = load_model("embedded")
    >>> 0 < bits_per_byte(target.model, target.tokenizer, ["import os; " * 20]) < 8
    True
    """
    ids = np.concatenate([[END_OF_TEXT_ID], encode_documents(tokenizer, texts)[:most_tokens]]).astype(np.int64)
    size = len("".join(texts).encode()) if most_tokens is None else len(tokenizer.decode(ids[1:]).encode())
    nats, scored = 0.0, 1  # ids[:scored] are done (the leading END_OF_TEXT is given, not scored)
    while scored < len(ids):
        start = max(0, scored - window // 2) if scored > 1 else 0
        piece = torch.from_numpy(ids[start : start + window])
        logits = model(input_ids=piece[None, :-1], use_cache=False).logits[0].float()
        fresh = scored - start  # index in the piece of the first token not yet scored
        nats += functional.cross_entropy(logits[fresh - 1 :], piece[fresh:], reduction="sum").item()
        scored = start + len(piece)
    return nats / math.log(2) / size


def xz_bits_per_byte(texts: list[str]) -> float:
    """Bits a byte of `xz -9` on the same bytes in one file.

    >>> xz_bits_per_byte(["import os; " * 1000]) < 0.2
    True
    """
    data = "".join(texts).encode()
    return 8 * len(lzma.compress(data, preset=9)) / len(data)


@torch.inference_mode()
def sample(model, tokenizer, prompt: str, tokens: int = 80, temperature: float = 0.8, seed: int = 0) -> str:
    """A continuation of `prompt`, for the log.

    >>> from specworkbench.engine import load_model
    >>> target = load_model("embedded")
    >>> isinstance(sample(target.model, target.tokenizer, "import", tokens=4), str)
    True
    """
    generator = torch.Generator().manual_seed(seed)
    given = tokenizer(prompt)["input_ids"] or [END_OF_TEXT_ID]
    drawn: list[int] = []
    while len(drawn) < tokens and drawn[-1:] != [END_OF_TEXT_ID]:  # no cache: its keyword differs between versions
        logits = model(input_ids=torch.tensor([given + drawn]), use_cache=False).logits[0, -1].float()
        drawn.append(int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)))
    return tokenizer.decode(drawn)


@torch.inference_mode()
def overlap(target, draft, tokenizer, texts: list[str], window: int = 512, most_tokens: int = 32_768) -> float:
    """Mean over positions of sum_x min(p(x), q(x)) = 1 - TV(p, q) on given text, temperature 1.

    >>> from specworkbench.engine import load_pair
    >>> target, draft = load_pair()
    >>> 0 < overlap(target.model, draft.model, target.tokenizer, ["import os; " * 20], window=32) <= 1
    True
    """
    ids = encode_documents(tokenizer, texts)[:most_tokens].astype(np.int64)
    total = 0.0
    for start in range(0, len(ids), window):
        piece = torch.from_numpy(ids[None, start : start + window])
        p, q = (
            torch.softmax(model(input_ids=piece, use_cache=False).logits[0].float(), -1) for model in (target, draft)
        )
        total += torch.minimum(p, q).sum().item()
    return total / len(ids)
