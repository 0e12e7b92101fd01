"""Rows of public question files become prompts; of a conversation the first turn; what is no question is told."""

import json

import pytest

from specworkbench.errors import InputError
from specworkbench.workloads import Prompt, load_prompts
from specworkbench.workloads.formats import UNPREPARED

SPEC = {"question_id": 81, "category": "writing", "turns": ["Write a haiku.", "Now in prose."], "reference": ["x"]}
SPEED = {"question_id": "0f" * 16, "category": "rag", "sub_category": "chat", "turns": ["Who?", "Why?", "When?"]}
PREPARED = {
    "question_id": "0e" * 16,
    "category": "math",
    "messages": [{"role": "user", "content": "1 + 1?"}, {"role": "user", "content": "And 2?"}],
}


def written(folder, *rows):
    path = folder / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def refusal(folder, *rows):
    with pytest.raises(InputError) as caught:
        load_prompts(written(folder, *rows))
    return str(caught.value)


def test_a_spec_bench_row_is_its_first_turn_in_the_bucket_of_its_category(tmp_path):
    rows = (SPEC, {"question_id": 161, "category": "translation", "turns": ["Translate: Hallo"]})
    assert load_prompts(written(tmp_path, *rows)) == [
        Prompt("81", "writing", "Write a haiku.", "", later_turns=1),
        Prompt("161", "translation", "Translate: Hallo", ""),
    ]


def test_speed_bench_rows_keep_their_sub_category_prepared_or_not(tmp_path):
    assert load_prompts(written(tmp_path, SPEED, SPEED | {"question_id": "b", "sub_category": None}, PREPARED)) == [
        Prompt("0f" * 16, "rag", "Who?", "", "chat", 2),
        Prompt("b", "rag", "Who?", "", "", 2),
        Prompt("0e" * 16, "math", "1 + 1?", "", "", 1),
    ]


def test_plain_rows_are_numbered_by_line_and_named_by_file(tmp_path):
    said = [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}]
    rows = ({"prompt": "a"}, {"text": "b", "score": 1}, {"messages": said})
    assert load_prompts(written(tmp_path, *rows)) == [
        Prompt("1", "mine", "a", ""),
        Prompt("2", "mine", "b", ""),
        Prompt("3", "mine", "c", "", later_turns=1),
    ]


def test_buckets_and_their_first_prompts_are_chosen_as_from_any_file(tmp_path):
    rows = [SPEC | {"question_id": n, "category": category} for n, category in enumerate(["qa", "rag", "qa", "qa"])]
    assert [prompt.id for prompt in load_prompts(written(tmp_path, *rows), buckets="qa", per_bucket=2)] == ["0", "2"]


@pytest.mark.parametrize("other", [SPEED, {"prompt": "a"}, {"id": "a", "bucket": "b", "prompt": "c"}])
def test_formats_are_not_mixed_in_a_file(tmp_path, other):
    sentence = refusal(tmp_path, SPEC, other)
    assert "Line 2" in sentence and "of Spec-Bench" in sentence and "a file of its own" in sentence


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"question": "x", "answer": "y"}, ("'question', 'answer'", "Spec-Bench's", "SPEED-Bench's", "plain {prompt}")),
        ({}, ("its keys are none",)),
        ({"question_id": 1, "turns": ["a"]}, ("no category", "of Spec-Bench needs question_id, category and turns")),
        ({"category": "qa", "turns": ["a"]}, ("no question_id",)),
        (SPEED | {"turns": None}, ("the turns None", "list of texts")),
        ({k: v for k, v in SPEED.items() if k != "turns"}, ("no turns", "of SPEED-Bench")),
        (SPEC | {"turns": []}, ("the turns []",)),
        (SPEC | {"turns": "Write"}, ("the turns 'Write'",)),
        (SPEC | {"turns": [" "]}, ("empty first turn",)),
        (SPEC | {"turns": [3]}, ("the first turn 3", "no text")),
        (SPEC | {"question_id": True}, ("the question_id True",)),
        (SPEC | {"question_id": 1.5}, ("the question_id 1.5",)),
        (SPEC | {"category": ""}, ("empty category",)),
        (SPEED | {"sub_category": 4}, ("the sub_category 4",)),
        (SPEED | {"turns": [UNPREPARED]}, ("prepare_data.py",)),
        ({"messages": []}, ("messages that are no list",)),
        ({"messages": [{"role": "user"}]}, ("messages that are no list",)),
        ({"messages": [{"role": "system", "content": "Be brief."}]}, ("role 'system'", "in front of the user's")),
        ({"messages": [{"role": "user", "content": ["a"]}]}, ("the first message ['a']",)),
        ({"text": ""}, ("empty text",)),
    ],
)
def test_a_row_that_is_no_question_is_refused_with_what_is_wrong(tmp_path, row, words):
    sentence = refusal(tmp_path, row)
    assert all(word in sentence for word in ("Line 1", *words)), sentence
    assert sentence.endswith(".")


def test_a_question_asked_twice_is_refused(tmp_path):
    assert "id '81' of line 1" in refusal(tmp_path, SPEC, SPEC)
