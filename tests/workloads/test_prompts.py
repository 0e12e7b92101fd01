"""Prompts: what the shipped sets hold, how a selection is made, and the sentence for each kind of bad file."""

import json
from collections import Counter
from pathlib import Path

import pytest

from specworkbench import paths
from specworkbench.errors import InputError
from specworkbench.workloads import SHIPPED, Prompt, buckets_of, load_prompts

GENERAL_BUCKETS = ["chat", "coding", "math", "summarisation", "rewriting", "translation", "question_answering"]
EMBEDDED_BUCKETS = ["code", "prose", "structured"]
GOOD = {"id": "a", "bucket": "mail", "prompt": "Write a reply."}


def written(folder: Path, *entries: dict | str) -> Path:
    """A prompt file with these lines; a dict is written as JSON, a string as it is."""
    path = folder / "mine.jsonl"
    lines = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refusal(path: str | Path, **selection) -> str:
    with pytest.raises(InputError) as caught:
        load_prompts(path, **selection)
    return str(caught.value)


# ---------------------------------------------------------------- the shipped sets


def test_embedded_has_twelve_prompts_of_each_of_its_buckets():
    assert Counter(prompt.bucket for prompt in load_prompts()) == dict.fromkeys(EMBEDDED_BUCKETS, 12)


def test_general_has_eight_prompts_of_each_bucket_and_language():
    counts = Counter((prompt.bucket, prompt.language) for prompt in load_prompts("general"))
    assert counts == {(bucket, language): 8 for bucket in GENERAL_BUCKETS for language in ("en", "zh")}


@pytest.mark.parametrize("name", SHIPPED)
def test_no_shipped_prompt_occurs_twice(name):
    texts = [prompt.text for prompt in load_prompts(name)]
    assert len(set(texts)) == len(texts)


def test_general_has_exactly_four_keys_a_line_and_unescaped_text():
    text = (paths.prompts_dir() / "general.jsonl").read_text(encoding="utf-8")
    assert "\\u" not in text
    assert all(list(json.loads(line)) == ["id", "bucket", "language", "prompt"] for line in text.splitlines())


def test_general_prompts_are_in_the_language_they_name():
    for prompt in load_prompts("general", buckets=[bucket for bucket in GENERAL_BUCKETS if bucket != "translation"]):
        chinese = sum("\u4e00" <= character <= "\u9fff" for character in prompt.text)
        assert (chinese > 0) == (prompt.language == "zh"), prompt.id


@pytest.mark.parametrize("bucket", ["summarisation", "rewriting", "question_answering"])
def test_general_prompts_about_a_passage_carry_it(bucket):
    for prompt in load_prompts("general", buckets=bucket):
        length = len(prompt.text.split()) if prompt.language == "en" else len(prompt.text)
        assert length >= (100 if prompt.language == "en" else 200), prompt.id


def test_two_general_prompts_per_bucket_are_one_of_each_language():
    prompts = load_prompts("general", per_bucket=2)
    assert Counter(prompt.language for prompt in prompts) == {"en": 7, "zh": 7}


# ---------------------------------------------------------------- reading and selecting


def test_language_defaults_to_english_and_other_keys_are_ignored(tmp_path):
    path = written(tmp_path, GOOD | {"author": "me", "score": 3})
    assert load_prompts(path) == [Prompt(id="a", bucket="mail", text="Write a reply.", language="en")]


def test_text_is_kept_as_it_is_with_its_spaces_and_line_separators(tmp_path):
    text = "  def f():\r\n\treturn '\u2028\x0c中文'\n"
    assert load_prompts(written(tmp_path, GOOD | {"prompt": text}))[0].text == text


def test_blank_lines_and_a_byte_order_mark_are_skipped(tmp_path):
    path = written(tmp_path, "\ufeff", GOOD, "", "  ", GOOD | {"id": "b"})
    assert [prompt.id for prompt in load_prompts(str(path))] == ["a", "b"]


def test_selection_keeps_the_order_of_the_file_and_the_first_of_each_bucket(tmp_path):
    entries = [GOOD | {"id": f"{bucket}{number}", "bucket": bucket} for number in range(3) for bucket in "xyz"]
    path = written(tmp_path, *entries)
    chosen = load_prompts(path, buckets=["z", "x"], per_bucket=2)
    assert [prompt.id for prompt in chosen] == ["x0", "z0", "x1", "z1"]


def test_buckets_of_lists_each_bucket_once_in_order_of_appearance():
    assert buckets_of(load_prompts("general")) == GENERAL_BUCKETS
    assert buckets_of([]) == []


# ---------------------------------------------------------------- bad input


def test_a_missing_file_is_told_with_the_names_of_the_shipped_sets(tmp_path):
    sentence = refusal(tmp_path / "none.jsonl")
    assert "none.jsonl" in sentence and "embedded, general" in sentence


def test_a_folder_and_a_foreign_file_are_refused(tmp_path):
    assert "cannot be read" in refusal(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusal(tmp_path / "binary")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "b", ', ("Line 3", "no JSON")),
        ("[1, 2]", ("Line 3", "no JSON object", "[1, 2]")),
        ({"id": "b", "prompt": "x"}, ("Line 3", "no bucket")),
        ({"id": "b"}, ("Line 3", "no bucket and no prompt")),
        (GOOD | {"id": "b", "prompt": " \n"}, ("Line 3", "empty prompt")),
        (GOOD | {"id": ""}, ("Line 3", "empty id")),
        (GOOD | {"id": 7}, ("Line 3", "id 7", "no text")),
        (GOOD | {"id": "b", "language": None}, ("Line 3", "language None", "no text")),
        (GOOD, ("Line 3", "'a'", "line 1")),
    ],
)
def test_a_faulty_line_is_refused_with_its_number_and_what_is_wrong(tmp_path, line, words):
    sentence = refusal(written(tmp_path, GOOD, "", line))
    assert all(word in sentence for word in words), sentence
    assert sentence.endswith(".")


def test_a_file_without_prompts_is_refused(tmp_path):
    assert "holds no prompt" in refusal(written(tmp_path, ""))


def test_an_unknown_bucket_is_refused_with_the_known_ones():
    sentence = refusal("general", buckets=["chat", "poetry"])
    assert "'poetry'" in sentence and ", ".join(GENERAL_BUCKETS) in sentence


def test_per_bucket_below_one_is_refused():
    assert "per_bucket is 0" in refusal("general", per_bucket=0)


# ---------------------------------------------------------------- where things lie


def test_data_inside_an_installed_package_comes_before_that_of_a_checkout(tmp_path, monkeypatch):
    package = tmp_path / "specworkbench"
    (package / "_data").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(paths, "PACKAGE", package)
    assert paths.data_dir() == package / "_data"
    (package / "_data").rmdir()
    assert paths.data_dir() == tmp_path / "data"


def test_missing_data_is_told_with_both_places(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "specworkbench")
    with pytest.raises(InputError, match="_data"):
        load_prompts("general")


def test_models_dir_follows_the_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECWORKBENCH_MODELS", str(tmp_path))
    assert paths.models_dir() == tmp_path
    monkeypatch.delenv("SPECWORKBENCH_MODELS")
    assert paths.models_dir() == Path.home() / ".cache" / "specworkbench" / "models"
