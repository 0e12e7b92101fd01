"""Break-even is where the speedup is 1; one more guess pays where the speedup rises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError

ALPHA = st.floats(0, 1)
GAMMA = st.integers(1, 20)
COST = st.floats(0, 3)
VERIFY = st.floats(0.5, 4)


@given(ALPHA, GAMMA, VERIFY, COST)
def test_at_the_break_even_c_the_speedup_is_one(alpha, gamma, verify_cost, overhead):
    costs = {"verify_cost": verify_cost, "overhead": overhead}
    c = theory.break_even_c(alpha, gamma, **costs)
    if c >= 0:
        assert theory.speedup(alpha, gamma, c, **costs) == pytest.approx(1)
    else:
        assert theory.speedup(alpha, gamma, 0, **costs) < 1


@given(GAMMA, COST, VERIFY, COST)
def test_at_the_break_even_alpha_the_speedup_is_one(gamma, c, verify_cost, overhead):
    costs = {"verify_cost": verify_cost, "overhead": overhead}
    alpha = theory.break_even_alpha(gamma, c, **costs)
    steps = theory.round_cost(gamma, c, **costs)
    if np.isnan(alpha):
        assert steps > gamma + 1
    elif alpha == 0:
        assert steps <= 1 + 1e-12
    else:
        assert theory.speedup(alpha, gamma, c, **costs) == pytest.approx(1)
        assert theory.speedup(alpha * 0.99, gamma, c, **costs) < 1


@given(ALPHA, GAMMA)
def test_the_two_break_evens_are_each_others_inverse(alpha, gamma):
    c = theory.break_even_c(alpha, gamma)
    assert theory.expected_tokens(theory.break_even_alpha(gamma, c), gamma) == pytest.approx(1 + gamma * c)


def test_with_one_guess_break_even_is_alpha_equal_to_c():
    c = np.array([0.0, 0.05, 0.5, 1.0])
    assert theory.break_even_alpha(1, c) == pytest.approx(c)
    assert theory.break_even_c(c, 1) == pytest.approx(c)
    assert np.isnan(theory.break_even_alpha(3, 1.01))


@given(st.floats(0, 0.999))
def test_the_least_alpha_is_c(c):
    """Corollary 3.9."""
    assert theory.least_alpha(c, max_gamma=12) == pytest.approx(c, abs=1e-12)


def test_the_least_alpha_with_costs_is_where_the_best_gamma_leaves_zero():
    v, c, overhead = [1, 1.4, 1.5, 1.6, 1.65, 1.7, 1.75, 1.8, 1.9], 0.05, 0.1
    least = theory.least_alpha(c, verify_costs=v, overhead=overhead)
    assert 0.4 < least < theory.break_even_alpha(1, c, verify_cost=1.4, overhead=overhead)
    costs = {"verify_costs": v, "overhead": overhead}
    assert theory.optimal_gamma(least - 1e-6, c, **costs) == 0 < theory.optimal_gamma(least + 1e-6, c, **costs)
    assert np.isnan(theory.least_alpha(1.2))


@given(ALPHA, COST)
def test_one_guess_gives_just_what_is_guaranteed(alpha, c):
    bound = theory.guaranteed_speedup(alpha, c)
    assert bound == pytest.approx(theory.speedup(alpha, 1, c))
    if alpha > c:
        assert theory.speedup(alpha, theory.optimal_gamma(alpha, c), c) >= bound * (1 - 1e-12)


@given(ALPHA, st.integers(0, 20), COST, COST, st.floats(0, 1))
def test_the_gain_of_one_more_is_the_difference_of_the_speedups(alpha, gamma, c, overhead, slope):
    gain = theory.gain_of_one_more(alpha, gamma, c, verify_costs=lambda n: 1 + slope * (n - 1), overhead=overhead)
    before, after = (
        theory.speedup(alpha, g, c, verify_cost=1 + slope * g, overhead=overhead) for g in (gamma, gamma + 1)
    )
    assert gain == pytest.approx(after - before, abs=1e-12)


@given(st.floats(0.01, 0.99), st.integers(0, 20), st.floats(0.001, 2))
def test_one_more_pays_iff_its_survival_outweighs_its_cost(alpha, gamma, c):
    """alpha^(gamma + 1) (gamma c + 1) > c E[N](gamma)."""
    won, paid = alpha ** (gamma + 1) * (gamma * c + 1), c * theory.expected_tokens(alpha, gamma)
    if abs(won - paid) > 1e-9:
        assert (theory.gain_of_one_more(alpha, gamma, c) > 0) == (won > paid)


def test_arrays_broadcast_and_scalars_stay_scalars():
    gamma, c = np.arange(1, 5)[:, None], np.array([0.0, 0.1, 0.2])
    table = theory.break_even_alpha(gamma, c, verify_cost=1.2)
    assert table.shape == (4, 3) and table[2, 1] == theory.break_even_alpha(3, 0.1, verify_cost=1.2)
    assert theory.break_even_c([0.5, 0.9], gamma).shape == (4, 2)
    assert theory.gain_of_one_more(0.8, gamma, c, verify_costs=[1, 1.1, 1.2, 1.3, 1.4, 1.5]).shape == (4, 3)
    assert theory.least_alpha(c).shape == (3,) and type(theory.least_alpha(0.1)) is float
    assert type(theory.break_even_alpha(3, 0.1)) is type(theory.gain_of_one_more(0.5, 2, 0.1)) is float


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.break_even_c(0.5, 0), "gamma is 0; it is a number of guesses"),
        (lambda: theory.break_even_alpha(0, 0.1), "gamma is 0; it is a number of guesses"),
        (lambda: theory.break_even_alpha(2, -0.1), "c is -0.1; it is a cost"),
        (lambda: theory.gain_of_one_more(0.5, 1, 0.1, verify_costs=[1, 1.1]), r"v\(3\) is asked for"),
        (lambda: theory.guaranteed_speedup(1.5, 0), "alpha is 1.5; it is a probability"),
        (lambda: theory.least_alpha("cheap"), "c is 'cheap'; it must be a number"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
