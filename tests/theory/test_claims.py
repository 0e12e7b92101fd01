"""The shortcut is kept as a claim: it is not the formula, and where the two agree is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError


def test_the_shortcut_charges_a_target_step_a_guess():
    assert theory.shortcut_speedup(4, 2.5, 0.1) == pytest.approx(1 / 1.7)
    assert theory.shortcut_speedup(4, 2.5, 0.1) < 1 < 2.5 / theory.round_cost(4, 0.1)


@given(st.floats(0, 1))
def test_it_agrees_with_the_formula_for_one_guess_that_costs_nothing(alpha):
    tokens = theory.expected_tokens(alpha, 1)
    assert theory.shortcut_speedup(1, tokens, 0) == pytest.approx(theory.speedup(alpha, 1, 0))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.shortcut_speedup(0, 2, 0.1), "gamma is 0; it is a number of guesses"),
        (lambda: theory.shortcut_speedup(4, 0.5, 0.1), "accept_length is 0.5; it is in tokens per round"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
