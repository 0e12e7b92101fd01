"""The grid of a report: nothing twice, plain beside every proposer, nobody always first."""

from collections import Counter
from itertools import pairwise

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.plan import Configuration, Plan, drafts_for
from tests.experiments.toys import PROMPTS


def plan(**options):
    return Plan(**{"target": "t", "drafts": ("a", "b"), "prompts": PROMPTS, "gammas": (2, 4)} | options)


def test_every_prompt_meets_every_configuration_once():
    cells = Counter((cell.prompt.id, cell.configuration) for cell in plan().cells())
    assert set(cells.values()) == {1}
    assert len(cells) == len(PROMPTS) * 2 * (1 + 3 * 2)


def test_plain_decoding_does_not_depend_on_gamma():
    plain = [found for found in plan().configurations() if found.proposer == "none"]
    assert [(found.gamma, found.temperature) for found in plain] == [(None, 0.0), (None, 1.0)]


def test_the_cells_of_a_prompt_and_a_temperature_follow_each_other():
    groups = [(cell.number, cell.configuration.temperature) for cell in plan().cells()]
    changes = sum(before != after for before, after in pairwise(groups))
    assert changes + 1 == len(set(groups))


def test_every_configuration_comes_first_equally_often():
    prompts = PROMPTS * 7
    grid = plan(prompts=prompts, temperatures=(1.0,), gammas=(4,))
    first = Counter(next(c.configuration for c in grid.cells() if c.number == i) for i in range(4))
    assert set(first.values()) == {1}


def test_repeated_gammas_temperatures_and_drafts_count_once():
    assert len(plan(gammas=(2, 2), temperatures=(1.0, 1.0)).configurations()) == 1 + 3
    assert drafts_for("anything", ["a", "b", "a"]) == ("a", "b")


def test_the_embedded_target_has_its_drafts_and_others_none():
    assert drafts_for("embedded", None) == ("embedded/draft-m", "embedded/draft-s")
    assert drafts_for("somebody/model", None) == ()


def test_a_label_names_proposer_and_draft():
    assert Configuration("draft_model", "embedded/draft-s", 4, 1.0).label == "draft_model:embedded/draft-s"
    assert Configuration("ngram", None, 4, 0.0).name == "ngram gamma 4 temperature 0"


@pytest.mark.parametrize("empty", ["prompts", "gammas", "temperatures"])
def test_an_empty_grid_is_refused(empty):
    with pytest.raises(InputError, match=f"at least one of its {empty}"):
        plan(**{empty: ()})
