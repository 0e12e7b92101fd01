"""Bounds: what they promise is kept, what a run could have seen is found, Holm's example by hand."""

import numpy as np
import pytest
from scipy import stats

from specworkbench.equivalence.statistics import (
    cells_test,
    detectable_by_e_process,
    detectable_tv,
    equivalence,
    holm,
    partition_tv,
    tv_bound,
)
from specworkbench.equivalence.statistics.bounds import non_centrality
from specworkbench.errors import InputError
from tests.equivalence.statistics.rows import evidence_from_rows
from tests.equivalence.statistics.samplers import RIGHT, WRONG, Bench, random_pairs


@pytest.fixture(scope="module")
def bench():
    return Bench(*random_pairs())


# ---------------------------------------------------------------- bounds


def test_the_bound_by_hand():
    assert tv_bound(0.01, 5000, 0.001) == pytest.approx(0.01 + np.sqrt(np.log(1000) / 10_000))
    assert tv_bound(0.0, 0, 0.01) == 1.0 and tv_bound(0.5, 3, 0.01) == 1.0


@pytest.mark.parametrize("partition", ["cells", "overweight"])
def test_the_bound_is_exceeded_no_more_often_than_the_level(bench, partition):
    """100 runs at level .1: the true TV is above the bound in at most 10 on average; Hoeffding gives far fewer."""
    wrong = WRONG["ratio x1.25"]
    truth = bench.tv(wrong, partition)
    assert truth > 0.03
    exceeded = 0
    for seed in range(100):
        evidence = bench.evidence(wrong, 1000, np.random.default_rng(seed))
        n = len(evidence) if partition == "cells" else int(evidence.guided.sum())
        exceeded += truth > tv_bound(partition_tv(evidence, partition), n, 0.1)
    assert exceeded <= 17


def test_the_tv_of_a_partition_by_hand():
    """Two tokens, rows (.5, .3, .2) and q = (.2, .3, .5): cell shares against declared shares, and A = {2}."""
    p, q = np.array([[0.5, 0.3, 0.2]] * 2), np.array([[0.2, 0.3, 0.5]] * 2)
    evidence = evidence_from_rows(p, q, [0, 2])
    assert partition_tv(evidence, "overweight") == pytest.approx(0.5 - 0.2)
    assert partition_tv(evidence, "cells") == pytest.approx((0.0 + 0.3 + 0.3) / 2)
    assert np.isnan(partition_tv(evidence[:0], "cells")) and np.isnan(partition_tv(evidence[:0], "overweight"))
    with pytest.raises(InputError, match="no partition 'words'"):
        partition_tv(evidence, "words")


def test_a_right_sampler_is_shown_to_be_equivalent_and_a_wrong_one_is_not(bench):
    right = bench.evidence(RIGHT, 8000, np.random.default_rng(0))
    wrong = bench.evidence(WRONG["accept always"], 8000, np.random.default_rng(0))
    found = equivalence(right, 0.05, 0.001)
    assert found.equivalent and found.bound < 0.05 and found.p_value < 0.001
    assert found.bounds["cells"] == found.bound and found.bounds["overweight"] < 0.06
    assert not equivalence(wrong, 0.05, 0.001).equivalent
    assert equivalence(wrong, 0.05, 0.001).p_value == 1.0
    few = equivalence(right[:500], 0.05, 0.001)
    assert not few.equivalent, "too few tokens to show it"


def test_a_bias_as_large_as_the_margin_is_called_equivalent_no_more_often_than_the_level(bench):
    wrong = WRONG["ratio x1.25"]
    margin = bench.tv(wrong, "overweight")
    called = [
        equivalence(bench.evidence(wrong, 1500, np.random.default_rng(seed)), margin, 0.1, "overweight").equivalent
        for seed in range(100)
    ]
    assert sum(called) <= 17


def test_its_p_value_is_the_smallest_level_that_shows_it(bench):
    evidence = bench.evidence(RIGHT, 8000, np.random.default_rng(0))
    p_value = equivalence(evidence, 0.05, 0.001).p_value
    assert equivalence(evidence, 0.05, p_value * 1.01).equivalent
    assert not equivalence(evidence, 0.05, p_value * 0.99).equivalent


def test_without_tokens_nothing_is_shown(bench):
    evidence = bench.evidence(RIGHT, 10, np.random.default_rng(0))
    found = equivalence(evidence[:0], 0.1, 0.01)
    assert not found.applies and not found.equivalent and found.bound == 1.0
    unguided = equivalence(evidence[~evidence.guided], 0.1, 0.01, "overweight")
    assert not unguided.applies


# ---------------------------------------------------------------- what could have been seen


@pytest.mark.parametrize("cells, expected", [(10, 34), (125, 85), (1000, 212)])
def test_the_non_centrality_has_one_degree_of_freedom_less_than_cells(cells, expected):
    assert round(non_centrality(cells - 1, 0.001, 0.9)) == expected
    assert detectable_tv(10_000, cells, 0.001) == pytest.approx(0.5 * np.sqrt(expected / 10_000), rel=0.01)
    assert detectable_tv(0, cells, 0.001) == 1.0 and detectable_tv(1, cells, 0.001) == 1.0


def test_a_bias_of_the_detectable_size_is_found_with_the_promised_power():
    """Chi-square over 8 cells: a law at the detectable TV, moved between equal halves, is rejected 9 times in 10."""
    rng, n, level = np.random.default_rng(0), 2000, 0.01
    tv = detectable_tv(n, 8, level)
    law = np.full(8, 1 / 8) + np.repeat([tv / 4, -tv / 4], 4)
    counts = rng.multinomial(n, law, size=1000)
    power = np.mean(stats.chisquare(counts, np.full((1000, 8), n / 8), axis=1).pvalue < level)
    assert 0.87 < power < 0.93


def test_what_the_e_process_could_see():
    """statistics of the ideal alternative: TV .05 about 1,400 tokens, TV .01 about 35,000."""
    assert detectable_by_e_process(1400, 0.001) == pytest.approx(0.05, rel=0.02)
    assert detectable_by_e_process(35_000, 0.001) == pytest.approx(0.01, rel=0.02)
    assert detectable_by_e_process(1400, 0.001, weight=0.1) > detectable_by_e_process(1400, 0.001)
    assert detectable_by_e_process(0, 0.001) == 1.0


def test_cells_see_the_size_they_say(bench):
    """A fault with a TV over the cells well above the detectable one is found, and one well below is not."""
    truth = bench.tv(WRONG["resample from p"], "cells")
    enough = next(n for n in range(100, 20_000, 100) if detectable_tv(n, 8, 0.001) < truth)
    found = [
        cells_test(bench.evidence(WRONG["resample from p"], enough, np.random.default_rng(seed))).p_value < 0.001
        for seed in range(40)
    ]
    assert np.mean(found) > 0.8


# ---------------------------------------------------------------- Holm


def test_holm_by_hand():
    """.005 x 4, .01 x 3, .03 x 2, .04 x 1 and never falling."""
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}, 0.05)
    assert list(adjusted) == ["a", "b", "c", "d"]
    assert list(adjusted.values()) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert {name for name, value in adjusted.items() if value <= 0.05} == {"a", "d"}


def test_holm_at_its_edges():
    assert holm({}, 0.05) == {}
    assert holm({"one": 0.2}, 0.05) == {"one": 0.2}
    assert holm({"one": 0.0, "two": 0.9, "three": 0.8}, 0.05) == {"one": 0.0, "two": 1.0, "three": 1.0}
    with pytest.raises(InputError, match="the p-value of one is nan"):
        holm({"one": float("nan")}, 0.05)


def test_holm_keeps_the_level_of_the_family():
    """5 true hypotheses with dependent p-values, 2,000 families at .05: any rejection in at most 5 of 100."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(2000, 1)) + rng.normal(size=(2000, 5))
    values = stats.norm.sf(shared / np.sqrt(2))
    wrong = [min(holm({str(i): v for i, v in enumerate(row)}, 0.05).values()) <= 0.05 for row in values]
    assert np.mean(wrong) < 0.065


@pytest.mark.parametrize("call", [lambda: tv_bound(0, 5, 0), lambda: holm({}, 2), lambda: detectable_tv(5, 1, 0.1)])
def test_unfit_arguments_are_told_in_a_sentence(call):
    with pytest.raises(InputError, match=r"level is|cells is"):
        call()
