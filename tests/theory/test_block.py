"""Block verification of one block: P(tau >= i) is b_i, and the output follows the target."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError
from tests.theory.rows import random_rows

EXACT = 1e-12
VOCAB = 3


def lengths_of(rows, draft):
    """P(tau = 0..gamma) of one draft, by the functions of this module, with b of each position."""
    gamma = len(draft)
    p, q = (np.array([rows(draft[:place])[which] for place in range(gamma)]) for which in (0, 1))
    kept = theory.block_kept([p[i, draft[i]] / q[i, draft[i]] for i in range(gamma)])
    residual = theory.block_residual(kept[:-1], p[1:], q[1:])
    return theory.block_lengths(theory.block_thresholds(kept, residual)), kept, q


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_i_guesses_are_kept_with_b_of_i_whatever_the_guesses_before(seed, gamma):
    """Given x_1..x_i and over what the proposer draws after them."""
    rows = random_rows(seed, VOCAB)
    reached, chances, of_prefix = {}, {}, {}
    for draft in np.ndindex(*[VOCAB] * gamma):
        lengths, kept, q = lengths_of(rows, draft)
        chance = np.prod(q[np.arange(gamma), draft])
        for i in range(1, gamma + 1):
            prefix = draft[:i]
            reached[prefix] = reached.get(prefix, 0) + chance * lengths[i:].sum()
            chances[prefix] = chances.get(prefix, 0) + chance
            of_prefix[prefix] = kept[i - 1]
    for prefix, kept in of_prefix.items():
        assert reached[prefix] == pytest.approx(chances[prefix] * kept, abs=EXACT)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=6))
def test_the_lengths_of_a_block_are_a_distribution_and_b_never_rises(ratios):
    kept = theory.block_kept(ratios)
    assert ((np.diff(kept) <= 0).all() and ((kept >= 0) & (kept <= 1)).all()) or max(ratios) > 1
    lengths = theory.block_lengths(theory.block_thresholds(kept, np.full(len(ratios) - 1, 0.3)))
    assert lengths.sum() == pytest.approx(1, abs=EXACT) and lengths.shape == (len(ratios) + 1,)


def test_a_later_likely_guess_makes_up_for_an_earlier_unlikely_one():
    assert theory.block_kept([0.5, 1.6, 2.0]).tolist() == [0.5, 0.8, 1.0]
    assert theory.block_kept([[0.5, 4.0], [2.0, 0.5]]).tolist() == [[0.5, 1.0], [1.0, 0.5]]


def test_thresholds_follow_the_formula_and_are_zero_where_nothing_is_left():
    assert theory.block_thresholds([0.5, 0.8], [0.25]) == pytest.approx([1 / 3, 0.8])
    assert theory.block_thresholds([1.0, 1.0], [0.0]).tolist() == [0, 1]
    assert theory.block_residual(1.0, [0.2, 0.8], [0.2, 0.8]) == 0
    assert theory.block_residual(0.5, [0.2, 0.8], [0.9, 0.1]) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.block_kept([-0.1]), "ratios is -0.1; it is a ratio of two probabilities"),
        (lambda: theory.block_thresholds([0.5, 0.5], [0.1, 0.1]), "the last position has no residual"),
        (lambda: theory.block_lengths([1.5]), "thresholds is 1.5; it is a probability"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
