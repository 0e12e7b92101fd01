"""Several candidates for one position: limits, order of the schemes, and the bound against all sets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError
from tests.theory.rows import pairs

CLOSE = 1e-9
SCHEMES = {
    "independent": theory.independent_acceptance,
    "distinct": theory.distinct_acceptance,
    "k-seq": theory.k_seq_acceptance,
    "bound": theory.transport_bound,
}
K = st.integers(1, 4)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(pairs())
def test_one_drawn_candidate_is_accepted_with_the_overlap(scheme, pair):
    assert SCHEMES[scheme](*pair, 1) == pytest.approx(theory.overlap(*pair), abs=CLOSE)


@settings(max_examples=60, deadline=None)
@given(pairs(4), st.integers(1, 3))
def test_more_candidates_are_accepted_no_less_often_and_it_stays_a_probability(pair, k):
    for scheme in (*SCHEMES.values(), theory.certain_acceptance):
        fewer, more = scheme(*pair, k), scheme(*pair, k + 1)
        assert -CLOSE <= fewer <= more + CLOSE and more <= 1 + CLOSE


@given(pairs(), K)
def test_no_rule_for_independent_candidates_passes_the_optimal_transport(pair, k):
    bound = theory.transport_bound(*pair, k)
    assert theory.independent_acceptance(*pair, k) <= bound + CLOSE
    assert (1 - (1 - 1 / k) ** k) * bound - CLOSE <= theory.k_seq_acceptance(*pair, k) <= bound + CLOSE


@given(pairs(), K)
def test_the_bound_is_the_least_over_all_sets(pair, k):
    p, q = pair
    sets = np.array(list(product([0, 1], repeat=len(p))))
    assert theory.transport_bound(p, q, k) == pytest.approx(min(1, (sets @ p + 1 - (sets @ q) ** k).min()), abs=CLOSE)


def transport_by_linear_program(p, q, k):
    """The greatest probability that x is among the candidates, over all couplings of x ~ p with k draws from q."""
    from scipy.optimize import linprog

    draws = list(product(range(len(p)), repeat=k))
    chance = np.array([np.prod(q[list(draw)]) for draw in draws])
    inside = np.array([[x in draw for x in range(len(p))] for draw in draws], dtype=float)
    rows = np.kron(np.eye(len(draws)), np.ones(len(p)))
    columns = np.kron(np.ones(len(draws)), np.eye(len(p)))
    found = linprog(-inside.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([chance, p]))
    return -found.fun


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_bound_is_the_optimal_transport_itself(k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(3), size=2)
        assert theory.transport_bound(p, q, k) == pytest.approx(transport_by_linear_program(p, q, k), abs=1e-7)


@given(pairs(4))
def test_all_tokens_as_candidates_are_accepted_for_certain(pair):
    p, q = pair
    assert theory.certain_acceptance(p, q, len(p)) == pytest.approx(1)
    if (q > 0).all():
        assert theory.distinct_acceptance(p, q, len(p)) == pytest.approx(1, abs=CLOSE)


@given(pairs(), K)
def test_k_seq_solves_its_equation_and_rebuilds_p(pair, k):
    p, q = pair
    rho = theory.k_seq_rho(p, q, k)
    beta, accepted = theory.k_seq_beta(p, q, rho), theory.k_seq_acceptance(p, q, k)
    assert 1 <= rho <= k and accepted == pytest.approx(rho * beta, abs=CLOSE)
    if beta > 0 and accepted < 1 - 1e-6:
        residual = theory.k_seq_residual(p, q, k)
        emitted = accepted * np.minimum(q, p / rho) / beta + (1 - accepted) * residual
        assert emitted == pytest.approx(p, abs=1e-7) and residual.sum() == pytest.approx(1, abs=1e-6)


def test_candidates_that_cannot_be_accepted_leave_p():
    assert theory.k_seq_residual([1, 0], [0, 1], 3).tolist() == [1, 0]
    assert theory.independent_acceptance([1, 0], [0, 1], 3) == theory.distinct_acceptance([1, 0], [0, 1], 3) == 0


def test_known_values():
    """q uniform over two, p certain: one of k independent draws is the right one with 1 - 2^-k."""
    p, q = [1.0, 0.0], [0.5, 0.5]
    assert theory.transport_bound(p, q, 3) == pytest.approx(7 / 8)
    assert theory.independent_acceptance(p, q, 3) == pytest.approx(7 / 8)
    assert theory.distinct_acceptance(p, q, 2) == pytest.approx(1)
    assert theory.certain_acceptance([0.1, 0.6, 0.3], [0.4, 0.2, 0.4], 2) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.independent_acceptance([1, 0], [0, 1], 0), "k is 0; it is a number of guesses"),
        (lambda: theory.transport_bound([0.5, 0.4], [0, 1], 2), "p sums to 0.9"),
        (lambda: theory.certain_acceptance([0.5, 0.5], [0.5, 0.25, 0.25], 2), "over the same tokens"),
        (lambda: theory.k_seq_beta([1, 0], [1, 0], 0), "rho is 0; it must be more than 0"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
