"""The e-process: factors of expectation 1, few false alarms however often one looks, faults found."""

import numpy as np
import pytest

from specworkbench.equivalence.evidence import ALTERNATIVES, Evidence
from specworkbench.equivalence.statistics.e_process import OVERWEIGHT, PROCESSES, EProcess, log_factors
from specworkbench.errors import InputError
from tests.equivalence.statistics.rows import evidence_from_rows
from tests.equivalence.statistics.samplers import RIGHT, SLOTS, WRONG, Bench, random_pairs, top_k


@pytest.fixture(scope="module")
def bench():
    return Bench(*random_pairs())


def every_token(p, q, **more):
    """Evidence of every token of every row, row by row."""
    rows, vocab = p.shape
    every = np.repeat(np.arange(rows), vocab)
    return evidence_from_rows(p[every], q[every], np.tile(np.arange(vocab), rows), **more)


# ---------------------------------------------------------------- exact


def peaked():
    return random_pairs(60, 12, seed=5, spread=6.0, difference=3.0)


def tied():
    p = np.full((60, 12), 1 / 12)
    return p, p


ROWS = {"spread": lambda: random_pairs(60, 12, seed=4), "peaked": peaked, "p = q": tied}


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("rows", ROWS)
def test_every_factor_has_expectation_one(rows, guided):
    """sum over x of p(x) r(x)/p(x) = 1 for every process and every pair of rows that cover the vocabulary."""
    p, q = ROWS[rows]()
    before = np.repeat(np.roll(p, 1, axis=0), 12, axis=0)
    evidence = every_token(p, q, guided=np.full(p.size, guided), row_before=before)
    means = (p[:, :, None] * np.exp(log_factors(evidence)).reshape(*p.shape, -1)).sum(axis=1)
    assert means == pytest.approx(1.0, abs=1e-11)


def test_no_factor_has_a_larger_expectation_where_rows_are_cut():
    """Mass that an alternative puts outside the support is lost, never won."""
    p, q = random_pairs(60, 12, seed=4)
    p = top_k(p, 4)
    with np.errstate(invalid="ignore"):
        factors = p[:, :, None] * np.exp(log_factors(every_token(p, q))).reshape(*p.shape, -1)
    means = np.where(p[:, :, None] > 0, factors, 0.0).sum(axis=1)
    assert means.max() <= 1 + 1e-12
    assert means.min() < 0.9


def test_the_bets_follow_their_formulas():
    evidence = every_token(*random_pairs(5, 8))
    excess, first = evidence.in_overweight - evidence.overweight_p, len(ALTERNATIVES)
    factors = np.exp(log_factors(evidence))
    assert factors[:, first + 1] == pytest.approx(1 + 0.2 * excess)
    in_set = evidence.in_overweight == 1
    assert factors[in_set, PROCESSES.index("overweight -0.1")] == pytest.approx(0.9)
    assert PROCESSES[first:] == OVERWEIGHT


def test_a_bet_does_not_rest_on_the_rounding_of_a_certain_set():
    """p(A) = 1 by rounding, and a token outside A: no factor is beyond what 1 - p(A) = 0.01 would give."""
    evidence = every_token(*random_pairs(1, 2))[:1]
    evidence = Evidence(**{**vars(evidence), "overweight_p": np.array([1.0]), "in_overweight": np.array([0.0])})
    assert np.exp(log_factors(evidence)[:, len(ALTERNATIVES) :]).max() <= 51


# ---------------------------------------------------------------- the mean of the processes


def by_hand(evidence, slots):
    """log E after all tokens: half the mean over all tokens, half the mean over strata, each of them a mean."""
    factors = log_factors(evidence)
    strata = []
    for slot in range(1, slots + 1):
        for guided in (True, False):
            mine = factors[(evidence.slot == slot) & (evidence.guided == guided)].sum(axis=0)
            of_q = ("to q", "from q", "to over", "over")
            used = [i for i, name in enumerate(PROCESSES) if guided or not name.startswith(of_q)]
            strata.append(np.exp(mine[used]).mean())
    return np.log(np.exp(factors.sum(axis=0)).mean() / 2 + np.mean(strata) / 2)


def test_e_values_are_averaged_with_weights_fixed_beforehand(bench):
    evidence = bench.evidence(WRONG["ratio x1.25"], 200, np.random.default_rng(0))
    process = EProcess(0.01, SLOTS)
    process.update(evidence)
    assert process.log_e == pytest.approx(by_hand(evidence, SLOTS), abs=1e-9)


def test_chunks_do_not_matter(bench):
    evidence = bench.evidence(WRONG["resample from p"], 9000, np.random.default_rng(0))
    whole, parts = EProcess(0.01, SLOTS), EProcess(0.01, SLOTS)
    whole.update(evidence)
    for start in range(0, len(evidence), 7):
        parts.update(evidence[start : start + 7])
    assert parts.log_e == pytest.approx(whole.log_e)
    assert (parts.decided_at, parts.tokens) == (whole.decided_at, whole.tokens)
    assert [tokens for tokens, _ in parts.history] == [tokens for tokens, _ in whole.history]
    assert parts.largest_log_e == pytest.approx(whole.largest_log_e)
    assert parts.by_slot()["log_e"].to_numpy() == pytest.approx(whole.by_slot()["log_e"].to_numpy())


def test_it_is_decided_at_the_first_token_that_crosses(bench):
    evidence = bench.evidence(WRONG["resample from p"], 3000, np.random.default_rng(0))
    process = EProcess(0.001, SLOTS)
    process.update(evidence)
    at = process.decided_at
    before = [by_hand(evidence[:tokens], SLOTS) for tokens in range(at)]
    assert by_hand(evidence[:at], SLOTS) >= np.log(1000) > max(before)


def test_the_history_is_thinned_and_keeps_its_course(bench):
    process = EProcess(0.01, SLOTS)
    for seed in range(5):
        process.update(bench.evidence(RIGHT, 4000, np.random.default_rng(seed)))
    tokens = [point[0] for point in process.history]
    assert 256 < len(tokens) <= 1024 and tokens[0] == 0 and tokens == sorted(set(tokens))
    assert 20_000 - tokens[-1] < tokens[1]
    assert max(log_e for _, log_e in process.history) <= process.largest_log_e


# ---------------------------------------------------------------- calibration and power


def test_few_false_alarms_however_often_one_looks(bench):
    """300 right runs of 1,500 tokens at level .01: Ville allows 3 on average; 9 or more have probability .004."""
    alarms, stopped = 0, []
    for seed in range(300):
        process = EProcess(0.01, SLOTS)
        process.update(bench.evidence(RIGHT, 1500, np.random.default_rng(seed)))
        alarms += process.rejected
        log_e = dict(process.history)
        first = next((t for t, value in log_e.items() if value >= np.log(2)), max(log_e))
        stopped.append(np.exp(log_e[first]))
    assert alarms <= 8
    assert np.mean(stopped) <= 1 + 3 * np.std(stopped) / np.sqrt(len(stopped))
    assert max(stopped) > 2


LIMITS = {
    "resample from p": 1500, "raw q after top-k": 12_000, "bonus from q": 16_000, "ratio x1.1": 20_000,
    "ratio x1.25": 3000, "ratio /1.1": 20_000, "residual |p - q|": 1000, "residual q - p": 400, "accept always": 300,
    "temperature on the bonus": 2500, "top-k on the bonus": 2500,
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_faults_are_found(bench, fault):
    for seed in range(5):
        process = EProcess(0.001, SLOTS)
        process.update(bench.evidence(WRONG[fault], LIMITS[fault], np.random.default_rng(seed)))
        assert process.rejected, (fault, seed)


def test_the_slot_at_fault_is_named(bench):
    process = EProcess(0.001, SLOTS)
    process.update(bench.evidence(WRONG["top-k on the bonus"], 4000, np.random.default_rng(0)))
    table = process.by_slot().set_index(["slot", "guided"])
    assert table["log_e"].idxmax() == (SLOTS, False)
    assert table.drop((SLOTS, False))["log_e"].max() < 3
    assert table["best"][SLOTS, False].startswith("temperature 0")
    assert table["tokens"].sum() == 4000
    alternatives = process.by_alternative().set_index("alternative")
    assert list(alternatives.index) == list(PROCESSES)
    assert alternatives["slot"][alternatives["largest_in_slot"].idxmax()] == SLOTS


# ---------------------------------------------------------------- edges


def test_nothing_judged_says_nothing():
    process = EProcess(0.01, 3)
    assert (process.log_e, process.tokens, process.rejected, process.decided_at) == (0.0, 0, False, None)
    assert len(process.by_slot()) == 0
    process.update(every_token(*random_pairs(1, 2))[:0])
    assert (process.log_e, process.tokens) == (0.0, 0)


def test_a_token_outside_the_support_rejects_at_once_and_for_good():
    p, q = np.array([[0.5, 0.5, 0.0]]), np.array([[0.2, 0.3, 0.5]])
    evidence = evidence_from_rows(p[[0] * 4], q[[0] * 4], [0, 1, 2, 0], slots=[1, 1, 2, 1])
    assert (np.isposinf(log_factors(evidence)).sum(axis=1) == [0, 0, len(PROCESSES), 0]).all()
    process = EProcess(1e-9, 2)
    process.update(evidence)
    assert process.decided_at == 3 and process.log_e == np.inf
    process.update(evidence_from_rows(p, q, [0]))
    assert process.log_e == np.inf and process.rejected
    assert process.by_slot().set_index("slot")["best"][2] == "outside the support"
    assert np.isfinite(process.by_slot().set_index("slot")["log_e"][1])


def test_one_hot_rows_and_equal_rows_say_nothing():
    certain = np.eye(3)[[0, 1, 2]]
    process = EProcess(0.01, 1)
    process.update(evidence_from_rows(certain, certain, [0, 1, 2]))
    assert process.log_e == pytest.approx(0.0, abs=1e-12)


def test_a_sure_draft_against_an_unsure_target_stays_finite():
    """An alternative that gives the token nothing ends its own process; the others go on."""
    process = EProcess(0.01, 1)
    process.update(evidence_from_rows([[0.5, 0.5]], [[1.0, 0.0]], [1]))
    assert np.isfinite(process.log_e)


@pytest.mark.parametrize("level, slots", [(0.0, 3), (1.0, 3), (0.01, 0)])
def test_unfit_settings_are_told_in_a_sentence(level, slots):
    with pytest.raises(InputError, match=r"level is|slots is"):
        EProcess(level, slots)


def test_unfit_columns_are_told_in_a_sentence():
    evidence = every_token(*random_pairs(1, 3))
    with pytest.raises(InputError, match="the limit is 2"):
        EProcess(0.01, 2).update(Evidence(**{**vars(evidence), "slot": np.array([1, 2, 3])}))
    with pytest.raises(InputError, match="log_ratios holds NaN"):
        EProcess(0.01, 2).update(Evidence(**{**vars(evidence), "log_ratios": evidence.log_ratios * np.nan}))
    with pytest.raises(InputError, match="NaN at a guided token"):
        EProcess(0.01, 2).update(Evidence(**{**vars(evidence), "overweight_p": evidence.overweight_p * np.nan}))
