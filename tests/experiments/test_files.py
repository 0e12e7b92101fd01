"""Files whole or not at all, JSON without NaN, names that any file system takes."""

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.files import file_name, to_json, write_whole
from tests.experiments.toys import strict_json


def test_what_is_not_finite_becomes_null():
    value = {"a": [float("nan"), float("inf"), 1.5], "b": {"c": -float("inf")}, "d": (1, None, "é")}
    assert strict_json(to_json(value)) == {"a": [None, None, 1.5], "b": {"c": None}, "d": [1, None, "é"]}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "deep" / "file.txt", "old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match="No space left"):
        write_whole(path, "new")
    assert [file.name for file in path.parent.iterdir()] == ["file.txt"]
    assert path.read_text() == "old"


def test_a_folder_below_a_file_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write"):
        write_whole(tmp_path / "file" / "report.json", "x")


@pytest.mark.parametrize("text", ["../../etc", "a/b:c*", "", "長い名前", "." * 300, "x" * 300])
def test_a_file_name_is_safe_short_and_starts_with_its_number(text):
    name = file_name(7, text)
    assert name.startswith("007-") and len(name) <= 84
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_texts_that_look_alike_once_safe_do_not_meet():
    assert file_name(0, "a/b") != file_name(1, "a-b")
