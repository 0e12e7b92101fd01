"""The i.i.d. formulas: the paper's printed tables, limits, monotony, and the best gamma against all others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError

PROBABILITY = st.floats(0, 1)
GAMMA = st.integers(0, 40)
COST = st.floats(0, 3)

TABLE_1 = [  # Leviathan et al. 2023, Table 1 (c = 0): alpha, gamma, operations factor, speedup
    (0.6, 2, 1.53, 1.96),
    (0.7, 3, 1.58, 2.53),
    (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69),
    (0.9, 2, 1.11, 2.71),
    (0.9, 10, 1.60, 6.86),
]
TABLES_2_AND_4 = [  # Leviathan et al. 2023: gamma, alpha, c, expected speedup; alpha and c rounded to two digits
    (7, 0.75, 0.02, 3.2),
    (7, 0.80, 0.04, 3.3),
    (7, 0.82, 0.11, 2.5),
    (7, 0.62, 0.02, 2.3),
    (5, 0.68, 0.04, 2.4),
    (3, 0.71, 0.11, 2.0),
    (5, 0.65, 0.02, 2.4),
    (5, 0.73, 0.04, 2.6),
    (3, 0.74, 0.11, 2.0),
    (5, 0.53, 0.02, 1.9),
    (3, 0.55, 0.04, 1.8),
    (3, 0.56, 0.11, 1.6),
]


@pytest.mark.parametrize(("alpha", "gamma", "operations", "speedup"), TABLE_1)
def test_table_1_is_reproduced_to_its_digits(alpha, gamma, operations, speedup):
    assert round(theory.operations_factor(alpha, gamma, 0), 2) == operations
    assert round(theory.speedup(alpha, gamma, 0), 2) == speedup


@pytest.mark.parametrize(("gamma", "alpha", "c", "printed"), TABLES_2_AND_4)
def test_tables_2_and_4_lie_in_the_interval_their_rounding_allows(gamma, alpha, c, printed):
    slowest = theory.speedup(alpha - 0.005, gamma, c + 0.005)
    fastest = theory.speedup(alpha + 0.005, gamma, c - 0.005)
    assert slowest - 0.05 <= printed <= fastest + 0.05
    assert slowest < theory.speedup(alpha, gamma, c) < fastest


def test_limits_are_exact():
    gamma = np.arange(65)
    assert (theory.expected_tokens(1, gamma) == gamma + 1).all()
    assert (theory.expected_tokens(0, gamma) == 1).all()
    assert (theory.expected_tokens(np.linspace(0, 1, 101), 0) == 1).all()
    assert theory.speedup(0.7, 0, 0.3) == 1
    assert theory.operations_factor(1, 4, 0.1) == pytest.approx(1.08, rel=1e-15)


@given(PROBABILITY, GAMMA)
def test_expected_tokens_is_the_geometric_sum(alpha, gamma):
    assert theory.expected_tokens(alpha, gamma) == pytest.approx(sum(alpha**i for i in range(gamma + 1)), rel=1e-12)


@given(st.floats(1e-17, 1e-6), GAMMA)
def test_expected_tokens_keeps_its_digits_near_alpha_one(miss, gamma):
    alpha = 1 - miss
    assert theory.expected_tokens(alpha, gamma) == pytest.approx(sum(alpha**i for i in range(gamma + 1)), rel=1e-13)


@given(PROBABILITY, PROBABILITY, GAMMA)
def test_expected_tokens_rises_with_alpha_and_gamma_within_its_bounds(one, other, gamma):
    low, high = sorted((one, other))
    assert theory.expected_tokens(low, gamma) <= theory.expected_tokens(high, gamma) * (1 + 1e-14)
    assert theory.expected_tokens(low, gamma) <= theory.expected_tokens(low, gamma + 1) * (1 + 1e-14)
    limit = gamma + 1 if high == 1 else min(gamma + 1, 1 / (1 - high))
    assert 1 <= theory.expected_tokens(high, gamma) <= limit * (1 + 1e-14)


@given(PROBABILITY, GAMMA, COST, COST)
def test_speedup_falls_with_every_cost(alpha, gamma, c, more):
    best = theory.speedup(alpha, gamma, c)
    assert theory.speedup(alpha, gamma, c + more) <= best
    assert theory.speedup(alpha, gamma, c, verify_cost=1 + more) <= best
    assert theory.speedup(alpha, gamma, c, overhead=more) <= best


@given(PROBABILITY, COST)
def test_optimal_gamma_is_the_smallest_best_of_all(alpha, c):
    chosen = theory.optimal_gamma(alpha, c, max_gamma=20)
    gains = [theory.speedup(alpha, gamma, c) for gamma in range(21)]
    assert gains[chosen] >= max(gains) * (1 - 1e-11)
    assert all(gain < gains[chosen] for gain in gains[:chosen])


@given(PROBABILITY, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["function", "table"]))
def test_with_costs_the_best_gamma_is_the_best_of_all_and_zero_is_plain_decoding(alpha, c, overhead, slope, shape):
    table = [1 + slope * n for n in range(16)]
    costs = {"function": lambda n: table[n - 1], "table": table}[shape]
    chosen = theory.optimal_gamma(alpha, c, verify_costs=costs, overhead=overhead, max_gamma=15)
    gains = [1.0, *(theory.speedup(alpha, g, c, verify_cost=table[g], overhead=overhead) for g in range(1, 16))]
    assert gains[chosen] >= max(gains) * (1 - 1e-11)
    assert all(gain < gains[chosen] for gain in gains[:chosen])


def test_a_step_in_the_cost_of_verifying_sets_the_best_gamma():
    """A kernel that takes four rows at once: the fifth row costs as much as all before."""
    assert theory.optimal_gamma(0.8, 0.02, verify_costs=[1, 1, 1, 1, 2, 2, 2, 2]) == 3
    assert theory.optimal_gamma(0.3, 0.02, verify_costs=lambda n: 2.0) == 0


def test_overhead_is_shared_by_the_guesses_of_a_round():
    """It takes longer rounds to pay for it, or none: E[N] is at most 1 / (1 - alpha)."""
    assert theory.optimal_gamma([0.3, 0.9], 0.02).tolist() == [3, 19]
    assert theory.optimal_gamma([0.3, 0.9], 0.02, overhead=0.5).tolist() == [0, 22]


@given(PROBABILITY, COST)
def test_speculation_pays_exactly_where_alpha_exceeds_c(alpha, c):
    """Corollary 3.9, and its bound on what is gained."""
    best = theory.optimal_gamma(alpha, c)
    if alpha > c + 1e-9:
        assert best >= 1
        assert theory.speedup(alpha, best, c) >= (1 + alpha) / (1 + c) * (1 - 1e-12)
    elif alpha < c - 1e-9:
        assert best == 0


@given(st.floats(0.01, 0.99), st.floats(0.001, 2))
def test_one_more_token_pays_iff_its_gain_exceeds_its_cost(alpha, c):
    """gamma + 1 beats gamma iff alpha^(gamma + 1) (gamma c + 1) > c E[N]."""
    gamma = np.arange(12)
    tokens = theory.expected_tokens(alpha, gamma)
    margin = alpha ** (gamma + 1) * (gamma * c + 1) - c * tokens
    gain = theory.speedup(alpha, gamma + 1, c) - theory.speedup(alpha, gamma, c)
    clear = np.abs(margin) > 1e-9
    assert ((gain > 0) == (margin > 0))[clear].all()


def test_alpha_from_counts_maximises_the_likelihood_of_rounds_cut_at_the_first_rejection():
    rng = np.random.default_rng(0)
    flags = rng.random((20_000, 4)) < 0.7
    accepted = np.cumprod(flags, axis=1).sum(axis=1)
    rejected = (accepted < 4).sum()
    assert theory.alpha_from_counts(accepted.sum(), rejected) == pytest.approx(0.7, abs=0.01)
    assert accepted.sum() / flags.size < 0.5  # accepted / proposed is no estimate of alpha
    assert np.isnan(theory.alpha_from_counts(0, 0))


def test_arrays_broadcast_and_scalars_stay_scalars():
    alpha, gamma, c = np.array([0.5, 0.8, 1.0]), np.arange(1, 5)[:, None], 0.1
    table = theory.speedup(alpha, gamma, c)
    assert table.shape == (4, 3)
    assert table[2, 1] == theory.speedup(0.8, 3, 0.1)
    assert theory.optimal_gamma(alpha, c).tolist() == [theory.optimal_gamma(a, c) for a in alpha]
    assert theory.operations_factor(alpha, 3, [[0.0], [0.1]]).shape == (2, 3)
    assert type(theory.expected_tokens(0.5, 4)) is float
    assert type(theory.optimal_gamma(0.5, 0.1)) is int


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.expected_tokens(1.2, 4), "alpha is 1.2; it is a probability"),
        (lambda: theory.expected_tokens([0.5, -0.1], 4), "alpha is -0.1; it is a probability"),
        (lambda: theory.expected_tokens(float("nan"), 4), "alpha is nan"),
        (lambda: theory.expected_tokens(None, 4), "alpha is nan"),
        (lambda: theory.expected_tokens("much", 4), "alpha is 'much'; it must be a number"),
        (lambda: theory.expected_tokens(0.5, -1), "gamma is -1; it is a number of tokens"),
        (lambda: theory.speedup(0.5, 1.5, 0.1), "gamma is 1.5; it is a number of tokens"),
        (lambda: theory.speedup(0.5, 1, -0.1), "c is -0.1; it is a cost"),
        (lambda: theory.speedup(0.5, 1, 0.1, verify_cost=0), "verify_cost is 0; it is a cost"),
        (lambda: theory.speedup(0.5, 1, 0.1, overhead=-1), "overhead is -1; it is a cost"),
        (lambda: theory.optimal_gamma(0.5, 0.1, max_gamma=-1), "max_gamma is -1"),
        (lambda: theory.optimal_gamma(0.5, 0.1, overhead=-1), "overhead is -1; it is a cost"),
        (lambda: theory.optimal_gamma(0.5, 0.1, verify_costs=[1, 1.1], max_gamma=4), r"v\(5\) is asked for"),
        (lambda: theory.operations_factor(0.5, 2, float("inf")), "c_hat is inf"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
