"""The folder of a study: whole cells only, another study is refused, more values are welcome."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study
from specworkbench.experiments.study.store import Store
from specworkbench.experiments.study.task import task_of
from tests.experiments.study.cases import toy_row

STUDY = Study(proposer=["ngram"], gamma=[1, 2], temperature=[0, 1], per_bucket=1)
PROMPTS = {"embedded": "abc"}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "study")
    store.check(STUDY, PROMPTS)
    store.begin(STUDY, PROMPTS, [{"name": "gamma 9", "why": "too far"}])
    return store


def test_a_study_comes_back_as_it_was(store):
    assert store.study() == STUDY
    assert store.description()["left_out"] == [{"name": "gamma 9", "why": "too far"}]
    store.check(STUDY, PROMPTS)


def test_a_cell_is_there_once_its_row_is_and_whole(store):
    task = task_of(STUDY, STUDY.cells()[0])
    row = toy_row(task)
    store.write(row, {"plain.trace": b"x"})
    folder = store.folder / "cells" / task.id
    assert store.rows() == {task.id: row} and (folder / "plain.trace").read_bytes() == b"x"
    whole = (folder / "row.json").read_text()
    for damaged in (whole[:100], "", "[]", json.dumps(row | {"id": "other"}), json.dumps(row | {"status": "begun"})):
        (folder / "row.json").write_text(damaged)
        assert store.rows() == {}
    (folder / "row.json").unlink()
    assert store.rows() == {}, "traces alone are no cell"


def test_values_may_be_added_and_the_beginning_is_kept(store):
    created = store.description()["created"]
    more = replace(STUDY, gamma=(4, 1, 2), target=("embedded", "a/b"))
    store.check(more, PROMPTS | {"general": "def"})
    store.begin(more, PROMPTS | {"general": "def"}, [])
    assert store.study() == more and store.description()["created"] == created


@pytest.mark.parametrize(
    "study, prompts, says",
    [
        (replace(STUDY, gamma=(1, 4)), PROMPTS, "whose gamma is also 2; put it back.*not taken away"),
        (replace(STUDY, temperature=(0.0,)), PROMPTS, "whose temperature is also 1;"),
        (replace(STUDY, ignore_eos=True), PROMPTS, "ignore_eos = False, and this one has True"),
        (replace(STUDY, per_bucket=2), PROMPTS, "per_bucket = 1"),
        (STUDY, {"embedded": "xyz"}, "other prompts in embedded"),
    ],
)
def test_another_study_is_refused_with_the_difference(store, study, prompts, says):
    before = (store.folder / "study.json").read_bytes()
    with pytest.raises(InputError, match=says):
        store.check(study, prompts)
    assert (store.folder / "study.json").read_bytes() == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty and holds no study"):
        Store(tmp_path).check(STUDY, PROMPTS)
    with pytest.raises(InputError, match="no study in"):
        Store(tmp_path).description()
    for text in ("{", "{}", '{"version": "1", "study": {}}'):
        (tmp_path / "study.json").write_text(text)
        with pytest.raises(InputError, match="was not written by a study, or is damaged"):
            Store(tmp_path).check(STUDY, PROMPTS)
    (tmp_path / "study.json").write_text('{"version": 99, "study": {}}')
    with pytest.raises(InputError, match="newer specworkbench"):
        Store(tmp_path).check(STUDY, PROMPTS)


HOLD = """
import sys
from pathlib import Path
from specworkbench.experiments.study.store import Store
with Store(Path(sys.argv[1])).alone():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_and_a_killed_one_leaves_the_folder_free(tmp_path):
    store = Store(tmp_path / "study")
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is running a study"), store.alone():
            pass
    finally:
        other.kill()
        other.communicate()
    half = store.folder / "cells" / "abc" / ".row.json.1234.tmp"
    half.parent.mkdir(parents=True)
    half.write_text("{")
    with store.alone():
        assert not half.exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write a study to"), Store(tmp_path / "file" / "study").alone():
        pass
