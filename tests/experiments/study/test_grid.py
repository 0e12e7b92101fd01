"""A study: every combination once, each value of its kind, every mistake a sentence with its key."""

from dataclasses import fields
from itertools import pairwise

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study.grid import AXES, Study, StudyCell, chosen, named


def test_cells_are_every_combination_once_with_those_of_the_same_models_together():
    study = Study(proposer=["ngram", "suffix"], target=["a/b", "c/d"], gamma=[1, 2, 1], dtype=["float32", "float64"])
    cells = study.cells()
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2
    models = [cell.models for cell in cells]
    assert len(list(dict.fromkeys(models))) == sum(a != b for a, b in pairwise(models)) + 1
    assert study.varying == ["target", "dtype", "proposer", "gamma"]
    assert study.name_of(cells[0]) == "target a/b, dtype float32, proposer ngram, gamma 1"


def test_axes_settings_and_cells_have_the_same_names():
    names = [field.name for field in fields(Study)]
    study = Study(proposer="ngram")
    assert list(StudyCell.__dataclass_fields__) == list(AXES) and set(AXES) <= set(names)
    assert sorted([*AXES, *study.settings()]) == sorted(names)
    assert study.axes()["gamma"] == (4,) and study.name_of(study.cells()[0]) == "the only cell"


def test_one_value_is_an_axis_and_whole_numbers_are_numbers():
    study = Study(proposer="ngram", temperature=[0, 1, 0.0], gamma=2)
    assert study.temperature == (0.0, 1.0) and all(type(value) is float for value in study.temperature)
    assert study.gamma == (2,) and Study.of({"proposer": ["ngram"], "temperature": [0, 1], "gamma": 2}) == study


def test_of_values_only_the_target_and_those_not_at_their_default_are_told():
    cell = Study(proposer="ngram", gamma=2).cells()[0]
    values = {name: getattr(cell, name) for name in AXES}
    assert named(chosen(values)) == "target embedded, proposer ngram, gamma 2"


@pytest.mark.parametrize(
    "values, says",
    [
        ({"gamma": []}, "gamma is an empty list"),
        ({"gamma": "four"}, "gamma is 'four'; it takes a whole number, or a list"),
        ({"gamma": [1, 2.5]}, "gamma is 2.5"),
        ({"gamma": [True]}, "gamma is True"),
        ({"gamma": [0]}, "gamma is 0; it must be at least 1"),
        ({"temperature": ["hot"]}, "temperature is 'hot'; it takes a number"),
        ({"temperature": [float("nan")]}, "temperature is nan"),
        ({"proposer": [3]}, "proposer is 3; it takes a text"),
        ({"target": [""]}, "target is an empty text"),
        ({"dtype": "float8"}, "dtype is 'float8'; choose one of default, float32"),
        ({"engine": ["lazy"]}, "engine is 'lazy'; choose one of eager, compiled"),
        ({"quantisation": "int4"}, "quantisation is 'int4'.*choose one of none, int8"),
        ({"batch": [1, 8]}, r"batch is \[1, 8\]; one sequence is decoded at a time"),
        ({"ignore_eos": 1}, "ignore_eos is 1; it takes true or false$"),
        ({"per_bucket": -1}, "per_bucket is -1"),
        ({"chat": True, "prompt_length": [0, 64]}, "cutting would break the template"),
        ({"gama": [1]}, "no key 'gama'; did you mean gamma?"),
        ({"frobnicate": 1}, "no key 'frobnicate'; there are proposer, target"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_key(values, says):
    with pytest.raises(InputError, match=says):
        Study.of({"proposer": ["ngram"]} | values)


def test_a_study_needs_a_proposer():
    with pytest.raises(InputError, match="the key proposer is missing"):
        Study.of({"gamma": [1]})
