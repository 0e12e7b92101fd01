"""The tokenizer decodes every text to itself and adds nothing."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("tokenizers", reason="tokenizers is not installed (the extra 'engine')")

from transformers import AutoTokenizer

from specworkbench.training import structured
from specworkbench.training.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, train_tokenizer

TEXTS = [structured.document("train", i)[1] for i in range(40)]
ODD = [
    "", " ", "\n", "\n\n\n  \t x", "a  b   c    ", "tab\tand\r\nreturn\r", "naïve “quotes” → 中文 🙂 \u200b",
    "\x00\x01\x7f", "def f(x):\n\n    return x  \n\n\n", "0123456789 3.14 1e-9", "".join(map(chr, range(32, 0x250))),
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=400)


def test_every_text_decodes_to_itself(tokenizer):
    for text in ODD + TEXTS[:5]:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_random_characters_decode_to_themselves(tokenizer):
    rng = random.Random(0)
    for _ in range(50):
        text = "".join(chr(rng.choice([rng.randrange(128), rng.randrange(0x3000), 0x1F600])) for _ in range(40))
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_no_special_token_is_added_and_one_token_is_begin_end_and_padding(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert END_OF_TEXT_ID not in loaded("plain text")["input_ids"]
    assert loaded(END_OF_TEXT)["input_ids"] == [END_OF_TEXT_ID]
    assert loaded.eos_token_id == loaded.bos_token_id == loaded.pad_token_id == END_OF_TEXT_ID
    assert len(loaded) == 400
