"""Outputs in files: read as they were written, whoever wrote them; a file that holds none is told."""

import json

import pytest

from specworkbench.equivalence.others import Samples, read_samples, write_samples
from specworkbench.errors import InputError


def test_samples_are_read_as_they_were_written(tmp_path):
    samples = Samples([(1, 2), (3,), ()], ["0", "0", "a prompt"])
    write_samples(tmp_path / "new" / "samples.jsonl", samples)
    assert read_samples(tmp_path / "new" / "samples.jsonl") == samples


def test_requests_with_several_outputs_are_read(tmp_path):
    lines = [
        {"prompt": 0, "token_ids": [1, 2]},
        {"prompt": None, "prompt_token_ids": [7, 8], "outputs": [{"token_ids": [1]}, {"token_ids": [2]}]},
        {"prompt_token_ids": [7, 8], "choices": [{"index": 0, "token_ids": [3], "text": "x"}]},
        {"token_ids": [4]},
    ]
    (tmp_path / "theirs.jsonl").write_text("\n\n".join(json.dumps(line) for line in lines))
    found = read_samples(tmp_path / "theirs.jsonl")
    assert found.outputs == [(1, 2), (1,), (2,), (3,), (4,)]
    assert found.groups == ["0", "[7, 8]", "[7, 8]", "[7, 8]", ""]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ('{"prompt": 0, "token_ids": [1]}\n{"prompt"', "line 2 of .* is no JSON"),
        ("[1, 2]", "line 1 of .* is no object"),
        ('{"prompt": 0, "text": "x"}', "line 1 of .* has no token_ids"),
        ('{"prompt": 0, "token_ids": [1, "a"]}', "line 1 of .* token ids"),
        ('{"prompt": 0, "outputs": [3]}', "line 1 of .* has no token_ids"),
        ("\n", "holds no samples"),
    ],
)
def test_a_file_that_holds_no_samples_is_told_in_a_sentence(tmp_path, text, sentence):
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_samples(tmp_path / "bad.jsonl")
    with pytest.raises(InputError, match="cannot read samples"):
        read_samples(tmp_path / "none.jsonl")
