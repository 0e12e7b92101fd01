"""What a round does in vain, against rounds that are simulated, and against the whole that its parts make up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError

RATES = st.lists(st.floats(0, 1), max_size=8).map(lambda rates: np.cumprod(rates))


@given(RATES)
def test_proposed_guesses_are_accepted_rejected_or_discarded(survival):
    rejected, discarded = theory.expected_rejected(survival), theory.expected_discarded(survival)
    assert 0 <= rejected <= 1 and discarded >= 0
    assert theory.wasted_guesses(survival) == pytest.approx(rejected + discarded)
    assert theory.wasted_guesses(survival) + theory.expected_tokens_survival(survival) - 1 == pytest.approx(
        len(survival)
    )


@given(st.floats(0, 1), st.integers(0, 12))
def test_wasted_positions_are_the_arithmetic_that_the_operations_factor_counts(alpha, gamma):
    share = theory.wasted_positions(alpha ** np.arange(1, gamma + 1))
    assert 0 <= share <= gamma / (gamma + 1) + 1e-12
    assert 1 / (1 - share) == pytest.approx(theory.operations_factor(alpha, gamma, 0))


def test_rounds_as_dependent_as_can_be_are_counted_exactly():
    """Four guesses a round, all or nothing."""
    accepted = np.array([4, 0, 0, 4, 4])
    survival = [(accepted >= j).mean() for j in range(1, 5)]
    assert theory.expected_rejected(survival) == pytest.approx(2 / 5)
    assert theory.expected_discarded(survival) == pytest.approx(2 * 3 / 5)
    assert theory.wasted_positions(survival) == pytest.approx(1 - (5 + 1 + 1 + 5 + 5) / 25)


def test_nothing_is_wasted_where_all_is_accepted_and_everything_where_nothing_is():
    assert theory.wasted_guesses([1, 1, 1]) == theory.wasted_positions([1, 1, 1]) == theory.wasted_guesses([]) == 0
    assert theory.wasted_guesses([0, 0, 0]) == 3 and theory.expected_rejected([0, 0, 0]) == 1
    assert theory.wasted_guesses([[0.5, 0.25], [1, 1]]).tolist() == [1.25, 0]


@pytest.mark.parametrize("function", ["expected_rejected", "expected_discarded", "wasted_guesses", "wasted_positions"])
def test_no_survival_is_told_in_a_sentence(function):
    with pytest.raises(InputError, match=r"survival is 0\.5; it must be a list"):
        getattr(theory, function)(0.5)
