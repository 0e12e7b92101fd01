"""E[N] from survival: it needs no independence, and is Eq. 1 where there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError

COST = st.floats(0, 3)


@given(st.floats(0, 1), st.integers(0, 30))
def test_powers_of_alpha_give_the_iid_formula(alpha, gamma):
    survival = alpha ** np.arange(1, gamma + 1)
    assert theory.expected_tokens_survival(survival) == pytest.approx(theory.expected_tokens(alpha, gamma), rel=1e-12)


def test_mean_length_is_recovered_under_dependence():
    """Rounds all or nothing: as dependent as can be."""
    lengths = np.array([4, 0, 0, 4, 4])
    survival = [(lengths >= j).mean() for j in range(1, 5)]
    assert theory.expected_tokens_survival(survival) == pytest.approx(1 + lengths.mean())


def test_the_last_axis_is_summed():
    assert theory.expected_tokens_survival([[0.5, 0.25], [1, 1]]).tolist() == [1.75, 3]
    assert theory.expected_tokens_survival([]) == 1


@given(st.floats(0, 1), st.integers(0, 12), COST, st.floats(0.5, 4), COST)
def test_with_powers_of_alpha_speedup_and_best_gamma_are_the_iid_ones(alpha, gamma, c, verify_cost, overhead):
    survival = alpha ** np.arange(1, gamma + 1)
    costs = {"verify_cost": verify_cost, "overhead": overhead}
    assert theory.speedup_survival(survival, c, **costs) == pytest.approx(theory.speedup(alpha, gamma, c, **costs))
    costs = {"verify_costs": verify_cost, "overhead": overhead}
    best = theory.optimal_gamma_survival(survival, c, **costs), theory.optimal_gamma(alpha, c, max_gamma=gamma, **costs)
    gains = [1.0, *(theory.speedup(alpha, g, c, verify_cost=verify_cost, overhead=overhead) for g in range(1, 13))]
    assert gains[best[0]] == pytest.approx(gains[best[1]], rel=1e-9)


def test_survival_that_falls_late_wants_more_guesses_than_its_mean_acceptance():
    """Rounds all or nothing keep their fourth guess as often as their first."""
    survival, c = [0.5, 0.5, 0.5, 0.5], 0.12
    alpha = 0.8  # accepted / examined: 4 of 5 examined positions
    assert theory.optimal_gamma_survival(survival, c) == 4
    assert theory.speedup_survival(survival, c) == pytest.approx(3 / 1.48)
    assert theory.speedup(alpha, 4, c) > theory.speedup_survival(survival, c)


def test_survival_is_the_product_of_the_acceptances_before():
    assert theory.survival_from_acceptance([0.9, 0.5, 0.2]).tolist() == pytest.approx([0.9, 0.45, 0.09])
    assert theory.survival_from_acceptance(np.full((2, 3), 0.5)).tolist() == [[0.5, 0.25, 0.125]] * 2
    assert theory.survival_from_acceptance([]).tolist() == []


def test_costs_broadcast_against_many_survivals():
    survival, c = np.array([[0.9, 0.8], [0.3, 0.1], [0.0, 0.0]]), np.array([0.1, 0.1, 0.0])
    assert theory.optimal_gamma_survival(survival, c).tolist() == [2, 1, 0]
    assert theory.optimal_gamma_survival(survival[0], [0.1, 0.95]).tolist() == [2, 0]
    assert theory.speedup_survival(survival, c).shape == (3,)
    assert type(theory.optimal_gamma_survival([0.9], 0.1)) is int and theory.optimal_gamma_survival([], 0.1) == 0


def test_a_table_of_v_that_ends_too_early_is_told_in_a_sentence():
    with pytest.raises(InputError, match=r"v\(3\) is asked for"):
        theory.optimal_gamma_survival([0.9, 0.8], 0.1, verify_costs=[1, 1.1])


@pytest.mark.parametrize(("survival", "sentence"), [(0.5, "must be a list"), ([0.5, 1.5], "survival is 1.5")])
def test_no_survival_is_told_in_a_sentence(survival, sentence):
    with pytest.raises(InputError, match=sentence):
        theory.expected_tokens_survival(survival)
