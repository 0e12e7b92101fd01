"""The shipped prompts: twelve a bucket, of the promised length, cut from held-out text."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not installed (the extra 'engine')")

from transformers import AutoTokenizer

from specworkbench.training import corpus
from specworkbench.training.prompts import LONGEST, PER_BUCKET, SHORTEST, cut, make_prompts

DATA = Path(__file__).parents[2] / "data"
RECORDS = [json.loads(line) for line in (DATA / "prompts/embedded.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(DATA / "models/embedded/target")


@pytest.fixture(scope="module")
def heldout() -> corpus.Corpus:
    generated = corpus.generated_documents("heldout", corpus.HELDOUT_GENERATED)
    return corpus.Corpus(tuple(corpus.library_documents(only_heldout=True) + generated))


def test_there_are_twelve_a_bucket_with_ids_of_their_own():
    expected = [f"{bucket}-{i:02d}" for bucket in corpus.BUCKETS for i in range(1, PER_BUCKET + 1)]
    assert [record["id"] for record in RECORDS] == expected
    assert all(record["id"].startswith(record["bucket"] + "-") for record in RECORDS)
    assert len({record["prompt"] for record in RECORDS}) == len(RECORDS)


def test_every_prompt_has_60_to_160_tokens_and_ends_at_the_end_of_a_line(tokenizer):
    for record in RECORDS:
        assert SHORTEST <= len(tokenizer(record["prompt"])["input_ids"]) <= LONGEST, record["id"]
        assert record["prompt"].endswith("\n"), record["id"]


def test_every_prompt_is_cut_from_a_held_out_text(heldout):
    made_with = json.loads((DATA / "models/embedded/evaluation.json").read_text())["training"]["python"]
    if platform.python_version() != made_with:
        pytest.skip(f"the prompts quote the library of Python {made_with}; this is {platform.python_version()}")
    texts = {bucket: heldout.texts(bucket, heldout=True) for bucket in corpus.BUCKETS}
    for record in RECORDS:
        assert any(record["prompt"] in text for text in texts[record["bucket"]]), record["id"]


def test_no_prompt_is_in_a_training_text():
    trained = [text for name, text in corpus.library_files().items() if not corpus.is_heldout(name)]
    trained += [t for n, t in corpus.topics().items() if not corpus.is_heldout("topic " + n, corpus.HELDOUT_TOPICS)]
    trained += [doc.text for doc in corpus.generated_documents("train", 1000)]
    for record in RECORDS:
        assert not any(record["prompt"] in text for text in trained), record["id"]


def test_cutting_is_deterministic_and_gives_nothing_where_the_text_is_too_short(tokenizer):
    import random

    text = "".join(f"def function_{i}(value):\n    return value + {i}\n\n\n" for i in range(40))
    pieces = [cut(text, "code", tokenizer, random.Random(3)) for _ in range(2)]
    assert pieces[0] == pieces[1] and pieces[0] in text
    assert cut("short\ntext\n", "code", tokenizer, random.Random(3)) is None


def test_too_little_held_out_text_is_refused_with_a_sentence(tokenizer):
    with pytest.raises(ValueError, match="Only 0 of 12 prompts"):
        make_prompts(corpus.Corpus(()), tokenizer)
