"""E[N] from survival: it needs no independence, and is Eq. 1 where there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError


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


@pytest.mark.parametrize(("survival", "sentence"), [(0.5, "must be a list"), ([0.5, 1.5], "survival is 1.5")])
def test_no_survival_is_told_in_a_sentence(survival, sentence):
    with pytest.raises(InputError, match=sentence):
        theory.expected_tokens_survival(survival)
