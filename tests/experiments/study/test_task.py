"""Tasks: an id for every cell, the same wherever and whenever, another for anything that changes what is measured."""

import json
from dataclasses import replace

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study
from specworkbench.experiments.study.task import digest, prompts_of, source_of, task_of
from tests.experiments.study.cases import tasks_of, toy_study
from tests.experiments.toys import PROMPTS


def test_ids_are_different_and_the_same_on_every_call(toys):
    study = toy_study(toys)
    ids = [task.id for task in tasks_of(study)]
    assert len(set(ids)) == 4 and ids == [task.id for task in tasks_of(study)]
    assert digest({"b": 1.0, "a": [2]}) == "27244aa41ddb", "no process, machine or order changes it"


def test_ids_do_not_depend_on_the_other_cells_nor_on_whether_traces_are_kept(toys):
    few, more = toy_study(toys, gamma=[2]), toy_study(toys, gamma=[1, 2, 3], traces=False)
    assert {task.id for task in tasks_of(few)} < {task.id for task in tasks_of(more)}


@pytest.mark.parametrize(
    "changed", [{"seed": 1}, {"ignore_eos": False}, {"temperature": 0.5}, {"per_bucket": 1}, {"products": False}]
)
def test_whatever_changes_a_measurement_changes_the_ids(toys, changed):
    study = toy_study(toys)
    before, after = ({task.id for task in tasks_of(each)} for each in (study, replace(study, **changed)))
    assert not before & after


def test_a_cell_has_the_prompts_of_its_bucket(toys):
    one, all_of_them = tasks_of(toy_study(toys, gamma=1, proposer="ngram", bucket=["letters", "all"]))
    assert one.prompts == PROMPTS[:2] and all_of_them.prompts == PROMPTS
    assert all_of_them.planned_tokens == 2 * 3 * 8
    with pytest.raises(InputError, match="Unknown bucket 'digits'"):
        tasks_of(toy_study(toys, bucket="digits"))


def test_prompts_suit_the_target_unless_they_are_named():
    study = Study(proposer="ngram")
    assert source_of(study, "embedded/draft-m") == "embedded" and source_of(study, "a/b") == "general"
    assert source_of(replace(study, prompts="general"), "embedded") == "general"


def test_other_prompts_of_the_same_name_are_other_cells(toys, tmp_path):
    def ids(text):
        path = tmp_path / "p.jsonl"
        path.write_text(json.dumps({"id": "a", "bucket": "b", "prompt": text}))
        prompts_of.cache_clear()
        study = toy_study(toys, prompts=str(path))
        return {task_of(study, cell).id for cell in study.cells()}

    assert not ids("abc") & ids("abd")
