"""The overweight and the acceptance test: their false alarms, what each sees, and what it cannot see."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from specworkbench.equivalence.statistics import acceptance_test, overweight_by_slot, overweight_test
from specworkbench.equivalence.statistics.overweight import martingale_z
from tests.equivalence.statistics.rows import evidence_from_rows
from tests.equivalence.statistics.samplers import RIGHT, SLOTS, WRONG, Bench, random_pairs

TESTS = {"overweight": overweight_test, "acceptance": acceptance_test}


@pytest.fixture(scope="module")
def bench():
    return Bench(*random_pairs())


@pytest.fixture(scope="module")
def peaked():
    return Bench(*random_pairs(spread=6.0, difference=2.0, seed=3))


def power(test, bench, sampler, level=0.001, tokens=2000, runs=40):
    found = [test(bench.evidence(sampler, tokens, np.random.default_rng(seed))) for seed in range(runs)]
    return np.mean([one.p_value < level for one in found])


def test_z_by_hand():
    """Three tokens in A with p(A) = .5, .2, .4: Z = (3 - 1.1) / sqrt(.25 + .16 + .24)."""
    z, p_value = martingale_z(np.ones(3), np.array([0.5, 0.2, 0.4]))
    assert z == pytest.approx(1.9 / np.sqrt(0.65))
    ratio = 1.9 / 0.65
    assert p_value == pytest.approx(2 * np.exp(-0.65 * ((1 + ratio) * np.log(1 + ratio) - ratio)))
    z, p_value = martingale_z(np.repeat([1.0, 0.0], [60, 40]), np.full(100, 0.5))
    assert (z, p_value) == (pytest.approx(2.0), pytest.approx(2 * stats.norm.sf(2.0)))


@pytest.mark.parametrize("rows", ["bench", "peaked"])
@pytest.mark.parametrize("test", TESTS)
def test_p_values_of_a_right_sampler_are_uniform(request, rows, test):
    bench = request.getfixturevalue(rows)
    values = [TESTS[test](bench.evidence(RIGHT, 1000, np.random.default_rng(seed))).p_value for seed in range(300)]
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert np.sum(np.array(values) < 0.01) <= 9  # 3 are expected; 10 or more have probability .001


def test_rare_events_raise_no_more_false_alarms_than_the_level():
    """One event in 1,000 of 1,000 tokens: the normal law would call 5 events (probability .004) p = 6e-5."""
    rng, probability = np.random.default_rng(0), np.full(1000, 0.001)
    values = [martingale_z((rng.random(1000) < probability).astype(float), probability)[1] for _ in range(2000)]
    assert np.sum(np.array(values) < 0.01) <= 20
    assert martingale_z(np.repeat([1.0, 0.0], [12, 988]), probability)[1] < 1e-6


def test_power_of_the_overweight_set(bench):
    assert power(overweight_test, bench, WRONG["resample from p"]) == 1.0
    assert power(overweight_test, bench, WRONG["accept always"]) == 1.0
    assert power(overweight_test, bench, WRONG["ratio x1.25"]) == 1.0
    assert 0.15 < power(overweight_test, bench, WRONG["ratio x1.1"]) < 0.6
    assert power(overweight_test, bench, WRONG["bonus from q"]) <= 0.05, "there is no q, so no set, at the bonus"


def test_its_sign_says_whether_the_draft_is_followed_too_much(bench):
    rng = np.random.default_rng(0)
    assert overweight_test(bench.evidence(WRONG["ratio x1.25"], 2000, rng)).statistic > 3
    assert overweight_test(bench.evidence(WRONG["ratio /1.1"], 20_000, rng)).statistic < -3


def test_acceptance_sees_false_acceptance_and_lost_speed_and_not_a_wrong_residual(bench):
    assert power(acceptance_test, bench, WRONG["ratio x1.25"]) == 1.0
    rng = np.random.default_rng(0)
    assert acceptance_test(bench.evidence(WRONG["accept always"], 500, rng)).statistic > 5
    assert acceptance_test(bench.evidence(WRONG["ratio /1.1"], 20_000, rng)).statistic < -5
    assert power(acceptance_test, bench, WRONG["resample from p"]) <= 0.05


def test_lost_speed_alone_is_seen_by_acceptance_only(bench):
    """A right sampler whose flags are lowered at random keeps its law and loses acceptance."""
    evidence = bench.evidence(RIGHT, 4000, np.random.default_rng(0))
    kept = np.random.default_rng(1).random(4000) < 0.9
    slower = replace(evidence, accepted=np.where(evidence.guided, evidence.accepted * kept, np.nan))
    assert acceptance_test(slower).statistic < -4 and acceptance_test(slower).p_value < 1e-4
    assert overweight_test(slower).p_value == overweight_test(evidence).p_value > 0.01


def test_by_slot_each_has_its_own_z(bench):
    right = bench.evidence(RIGHT, 6000, np.random.default_rng(0))
    wrong = bench.evidence(WRONG["accept always"], 6000, np.random.default_rng(1))
    mixed = type(right).concatenate([right[right.slot != 2], wrong[wrong.slot == 2]])
    table = overweight_by_slot(mixed).set_index("slot")
    assert list(table.index) == list(range(1, SLOTS)), "the bonus has no row q"
    assert table["z"][2] > 10 and table["p_value"].drop(2).min() > 0.001
    assert table["tokens"].sum() == mixed.guided.sum()


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("test", TESTS.values())
def test_without_a_guided_token_they_do_not_apply_and_say_why(test):
    p = np.full((3, 4), 0.25)
    for evidence in (
        evidence_from_rows(p, p, [0, 1, 2], guided=[False] * 3),
        evidence_from_rows(p, p, [0, 1, 2])[:0],
    ):
        found = test(evidence)
        assert not found.applies and found.p_value is None and found.statistic is None and found.detail


def test_equal_and_one_hot_rows_leave_nothing_to_judge():
    p = np.full((3, 4), 0.25)
    assert not overweight_test(evidence_from_rows(p, p, [0, 1, 2])).applies
    certain = np.eye(4)[[0, 1, 2]]
    assert not overweight_test(evidence_from_rows(certain, certain, [0, 1, 2], accepted=[1, 1, 1])).applies
    assert not acceptance_test(evidence_from_rows(certain, certain, [0, 1, 2], accepted=[1, 1, 1])).applies
    assert overweight_by_slot(evidence_from_rows(p, p, [0, 1, 2]))["z"].isna().all()


def test_what_cannot_happen_has_p_value_zero():
    p, q = np.array([[1.0, 0.0]] * 2), np.array([[0.5, 0.5]] * 2)
    assert overweight_test(evidence_from_rows(p, q, [1, 0])).p_value == 0.0
    certain = np.array([[1.0, 0.0]] * 2)
    assert acceptance_test(evidence_from_rows(certain, certain, [0, 0], accepted=[0, 1])).statistic == -np.inf


def test_a_rule_without_such_a_probability_is_left_to_the_other_tests():
    p, q = random_pairs(3, 4)
    assert not acceptance_test(evidence_from_rows(p, q, [0, 1, 2], expected=np.full(3, np.nan))).applies
    assert overweight_test(evidence_from_rows(p, q, [0, 1, 2])).applies
