"""Intervals cover what they should, are reproducible, and are absent where there is too little to tell."""

import numpy as np
import pytest

from specworkbench.analysis import Estimate
from specworkbench.analysis.estimate import median, ratio_of_medians, ratio_of_totals, resamples, wilson


def test_an_estimate_unpacks_to_value_low_high():
    value, low, high = Estimate(1.5, 1.0, 2.0, 7)
    assert (value, low, high) == (1.5, 1.0, 2.0)


def test_units_divide_all_three_and_an_unmeasured_unit_leaves_nothing():
    assert Estimate(4.0, 2.0, None, 3).over(2.0) == Estimate(2.0, 1.0, None, 3)
    assert Estimate(4.0, 2.0, 6.0, 3).over(None) == Estimate(None, None, None, 3)


def test_nothing_observed_gives_nothing():
    nothing = Estimate(None, None, None, 0)
    assert wilson(0, 0) == median(np.array([])) == ratio_of_totals(np.zeros(3), np.zeros(3)) == nothing
    assert ratio_of_totals(np.zeros(0), np.zeros(0)) == nothing


def test_wilson_is_the_textbook_interval():
    """15 of 20: 0.5313 to 0.8881."""
    assert tuple(wilson(15, 20)) == pytest.approx((0.75, 0.5313, 0.8881), abs=1e-4)
    assert wilson(5, 5).high == 1 and 0 < wilson(5, 5).low < 1


def test_median_lies_between_order_statistics_that_cover_it():
    assert median(np.arange(5)) == Estimate(2.0, None, None, 5)
    assert median(np.arange(6)) == Estimate(2.5, 0.0, 5.0, 6)
    rng = np.random.default_rng(1)
    estimates = [median(rng.exponential(size=25)) for _ in range(400)]
    covered = np.mean([one.low <= np.log(2) <= one.high for one in estimates])
    assert 0.93 < covered <= 1


def test_a_ratio_of_medians_covers_the_ratio_and_is_reproducible():
    rng = np.random.default_rng(2)
    pairs = [(2 * rng.exponential(size=25), rng.exponential(size=25)) for _ in range(200)]
    estimates = [ratio_of_medians(*pair) for pair in pairs]
    assert estimates[0].value == pytest.approx(np.median(pairs[0][0]) / np.median(pairs[0][1])) and estimates[0].n == 25
    assert estimates[0] == ratio_of_medians(*pairs[0])
    assert 0.9 < np.mean([one.low <= 2 <= one.high for one in estimates]) <= 1


def test_what_drifts_together_does_not_widen_a_ratio_of_medians():
    drift = np.random.default_rng(3).uniform(1, 3, size=40)
    together, apart = ratio_of_medians(2 * drift, drift), ratio_of_medians(2 * drift, drift[::-1])
    assert (together.low, together.high) == pytest.approx((2, 2))
    assert apart.low < 1.9 and apart.high > 2.1


def test_few_pairs_have_a_ratio_of_medians_without_interval():
    assert ratio_of_medians(np.arange(1.0, 6), np.ones(5)) == Estimate(3.0, None, None, 5)
    assert ratio_of_medians(np.zeros(0), np.zeros(0)) == Estimate(None, None, None, 0)


def test_the_bootstrap_is_reproducible_and_resamples_whole_clusters():
    numerator, denominator = np.array([3.0, 5.0, 9.0, 1.0]), np.array([4.0, 6.0, 9.0, 4.0])
    one, other = (ratio_of_totals(numerator, denominator) for _ in range(2))
    assert one == other
    assert one.value == pytest.approx(18 / 23) and one.n == 23
    assert one.low < one.value < one.high
    assert (resamples(4).sum(axis=1) == 4).all()


def test_one_cluster_has_no_interval():
    assert ratio_of_totals(np.array([3.0]), np.array([4.0])) == Estimate(0.75, None, None, 4)
    assert ratio_of_totals(np.array([3.0, 0.0]), np.array([4.0, 0.0])) == Estimate(0.75, None, None, 4)


def test_clusters_that_differ_widen_the_interval():
    """The same total from clusters that agree, and from clusters that are all or nothing."""
    size = np.full(20, 10.0)
    alike = ratio_of_totals(np.full(20, 5.0), size)
    apart = ratio_of_totals(np.tile([0.0, 10.0], 10), size)
    assert alike.value == apart.value == 0.5
    assert alike.high - alike.low < 1e-12 < 0.3 < apart.high - apart.low


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(300):
        shares = rng.beta(8, 4, size=30)
        accepted = rng.binomial(40, shares)
        one = ratio_of_totals(accepted.astype(float), np.full(30, 40.0))
        covered.append(one.low <= 8 / 12 <= one.high)
    assert 0.9 < np.mean(covered) < 0.98
