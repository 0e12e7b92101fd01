"""Chi-square over declared cells and over whole outputs: false alarms, power, pooling beforehand, the support."""

import numpy as np
import pytest
from scipy import stats

from specworkbench.equivalence.statistics import cells_test, law_test
from specworkbench.equivalence.statistics.cells import pooling
from specworkbench.errors import InputError
from tests.equivalence.statistics.rows import evidence_from_rows
from tests.equivalence.statistics.samplers import RIGHT, WRONG, Bench, draw, random_pairs

BENCHES = {"spread": {}, "peaked": {"spread": 6.0, "difference": 2.0, "seed": 3}}


@pytest.fixture(scope="module")
def benches():
    return {name: Bench(*random_pairs(**settings)) for name, settings in BENCHES.items()}


def p_values(bench, sampler, tokens, runs):
    return np.array([
        cells_test(bench.evidence(sampler, tokens, np.random.default_rng(seed))).p_value for seed in range(runs)
    ])  # fmt: skip


# ---------------------------------------------------------------- cells that rows declare


@pytest.mark.parametrize("rows", BENCHES)
def test_p_values_of_a_right_sampler_are_uniform(benches, rows):
    values = p_values(benches[rows], RIGHT, 1000, 300)
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert np.sum(values < 0.01) <= 9  # 3 are expected; 10 or more have probability .001


def test_where_the_row_is_always_the_same_it_is_pearsons_chi_square():
    p, q = random_pairs(1, 50, seed=2)
    tokens = draw(np.repeat(p, 400, axis=0), np.random.default_rng(0))
    evidence = evidence_from_rows(np.repeat(p, 400, axis=0), np.repeat(q, 400, axis=0), tokens)
    expected = evidence.cell_probs.sum(axis=0)
    large = expected >= 5
    fold = [*np.flatnonzero(large)]
    observed = np.bincount(evidence.cell, minlength=8)
    counts, means = observed[fold], expected[fold]
    if (rest := expected[~large].sum()) >= 5:
        counts, means = [*counts, observed[~large].sum()], [*means, rest]
    found = cells_test(evidence)
    assert found.statistic == pytest.approx(stats.chisquare(counts, means).statistic)
    assert found.p_value == pytest.approx(stats.chisquare(counts, means).pvalue)


def test_faults_are_found(benches):
    for fault in ("resample from p", "accept always", "residual |p - q|", "residual q - p"):
        assert (p_values(benches["spread"], WRONG[fault], 2000, 10) < 0.001).all(), fault
    assert (p_values(benches["spread"], WRONG["temperature on the bonus"], 6000, 10) < 0.001).all()


def test_all_but_certain_rows_raise_no_false_alarm():
    """Half the rows give all but 5e-4 to one cell, half to another: both are filled, yet little is random."""
    p = np.where(np.arange(50) == 0, 1 - 5e-4, 5e-4 / 49) * np.ones((400, 1))
    surer = np.where(np.arange(50) == 0, 1 - 1e-4, 1e-4 / 49)
    q = np.where(np.arange(400)[:, None] % 2, p, surer)
    assert set(evidence_from_rows(p, q, np.zeros(400, int)).cell) == {0, 4}
    alarms = []
    for seed in range(200):
        found = cells_test(evidence_from_rows(p, q, draw(p, np.random.default_rng(seed))))
        alarms.append(found.applies and found.p_value < 0.01)
    assert sum(alarms) <= 7


def test_no_token_a_certain_row_and_an_outsider():
    p, q = np.eye(4)[[0, 1, 2]], np.full((3, 4), 0.25)
    assert not cells_test(evidence_from_rows(p, q, [0, 1, 2])[:0]).applies
    certain = cells_test(evidence_from_rows(p, q, [0, 1, 2]))
    assert not certain.applies and "fewer than two cells" in certain.detail
    outside = cells_test(evidence_from_rows(p, q, [0, 1, 3]))
    assert outside.p_value == 0.0 and "1 tokens lie outside" in outside.detail


# ---------------------------------------------------------------- pooling


@pytest.mark.parametrize(
    "expected, sizes",
    [
        ([10, 20, 30], [1, 1, 1]),
        ([10, 3, 20, 4], [1, 1, 2]),
        ([10, 3, 20, 1], [1, 3]),
        ([1, 2, 1], [3]),
        ([5, 0], [2]),
    ],
)
def test_small_cells_make_one_pool_or_join_the_smallest(expected, sizes):
    pools = pooling(np.array(expected, float))
    assert sorted(pools.sum(axis=0)) == sizes
    assert (pools.sum(axis=1) == 1).all()
    assert sum(expected) < 5 or (np.array(expected) @ pools >= 5).all()


# ---------------------------------------------------------------- an exact law


def geometric_law(outputs=30, ratio=0.75):
    weights = ratio ** np.arange(outputs)
    return {(i, i + 1): float(weight) for i, weight in enumerate(weights / weights.sum())}


def sampled(law, n, seed):
    keys = list(law)
    chosen = np.random.default_rng(seed).choice(len(keys), size=n, p=list(law.values()))
    return {keys[i]: int(count) for i, count in enumerate(np.bincount(chosen, minlength=len(keys))) if count}


@pytest.mark.parametrize("statistic", ["chi-square", "G"])
def test_samples_of_the_law_are_not_rejected(statistic):
    law = geometric_law()
    values = np.array([law_test(sampled(law, 500, seed), law, statistic).p_value for seed in range(300)])
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert np.sum(values < 0.01) <= 9


@pytest.mark.parametrize("statistic", ["chi-square", "G"])
def test_samples_of_another_law_are_rejected(statistic):
    for seed in range(10):
        counts = sampled(geometric_law(ratio=0.8), 3000, seed)
        assert law_test(counts, geometric_law(), statistic).p_value < 0.001


def test_cells_are_pooled_from_the_law_and_not_from_the_counts():
    law = geometric_law()
    found = {law_test(sampled(law, 500, seed), law).detail for seed in range(20)}
    assert found == {"13 cells of 30 after pooling; nothing outside the support"}


def test_one_output_outside_the_support_has_p_value_zero():
    law = {**geometric_law(), (9, 9): 0.0}
    counts = sampled(geometric_law(), 5000, 0)
    assert law_test(counts, law).p_value > 0.001
    assert law_test({**counts, (9, 9): 1}, law).p_value == 0.0
    assert law_test({**counts, (1, 2, 3): 1}, law).p_value == 0.0


def test_too_few_samples_and_unfit_laws():
    law = geometric_law()
    assert not law_test({}, law).applies
    assert not law_test({(0, 1): 3}, law).applies
    assert not law_test({(0,): 100}, {(0,): 1.0}).applies
    with pytest.raises(InputError, match=r"sums to 0\.5"):
        law_test({}, {(0,): 0.5})
    with pytest.raises(InputError, match="no statistic 'F'"):
        law_test({}, law, "F")
