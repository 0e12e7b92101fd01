"""Survival of chains by going through all of them: the paper's example, order of the rules, and their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError
from tests.theory.rows import pairs, random_rows

P, Q = [1 / 3, 2 / 3], [2 / 3, 1 / 3]
EXACT = 1e-12


def test_the_example_of_the_paper():
    """Sun et al. 2024: two guesses, 10/9 accepted by token, 11/9 by block."""
    rows = theory.fixed_rows(P, Q)
    assert theory.token_survival(rows, 2).sum() == pytest.approx(10 / 9, abs=EXACT)
    assert theory.block_survival(rows, 2).sum() == pytest.approx(11 / 9, abs=EXACT)


@given(pairs(), st.integers(0, 4))
def test_rows_that_depend_on_nothing_give_powers_of_the_overlap(pair, gamma):
    survival = theory.token_survival(theory.fixed_rows(*pair), gamma)
    assert survival == pytest.approx(theory.overlap(*pair) ** np.arange(1, gamma + 1), abs=EXACT)
    assert theory.expected_tokens_survival(survival) == pytest.approx(
        theory.expected_tokens(theory.overlap(*pair), gamma)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 4))
def test_block_keeps_at_least_what_token_keeps_and_no_more_than_the_overlap_of_whole_prefixes(seed, vocab, gamma):
    rows = random_rows(seed, vocab)
    token, block, most = (
        of(rows, gamma) for of in (theory.token_survival, theory.block_survival, theory.overlap_survival)
    )
    assert (token <= block + EXACT).all() and (block <= most + EXACT).all() and (np.diff(block) <= EXACT).all()
    assert token[0] == pytest.approx(block[0], abs=EXACT) and block[0] == pytest.approx(most[0], abs=EXACT)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_block_survival_is_the_mean_of_b_over_drafts(seed, gamma):
    """By the definition: drafts with their probability, b_j = min(1, b_(j-1) p/q)."""
    rows, vocab = random_rows(seed, 3), 3
    expected = np.zeros(gamma)
    for draft in np.ndindex(*[vocab] * gamma):
        before = [rows(draft[:place]) for place in range(gamma)]
        chance = np.prod([q[token] for (_, q), token in zip(before, draft, strict=True)])
        ratios = [p[token] / q[token] for (p, q), token in zip(before, draft, strict=True)]
        expected += chance * theory.block_kept(ratios)
    assert theory.block_survival(rows, gamma) == pytest.approx(expected, abs=EXACT)


def test_certain_guesses_are_kept_alike_by_block_and_by_token():
    p, q = [[0.6, 0.4], [0.3, 0.7]], [[1.0, 0.0], [0.0, 1.0]]
    rows = theory.fixed_rows(p, q)
    assert theory.token_survival(rows, 2) == pytest.approx([0.6, 0.42])
    assert theory.block_survival(rows, 2) == pytest.approx([0.6, 0.42])


def test_equal_rows_are_always_kept_and_rows_with_nothing_in_common_never():
    same, apart = theory.fixed_rows(P, P), theory.fixed_rows([1, 0], [0, 1])
    for survival in (theory.token_survival, theory.block_survival, theory.overlap_survival):
        assert survival(same, 3) == pytest.approx([1, 1, 1]) and survival(apart, 3).tolist() == [0, 0, 0]
        assert survival(same, 0).tolist() == []


def test_any_rule_of_single_positions_can_be_put_in():
    equality = theory.kept_survival(lambda guesses: np.multiply(P, Q), 2)
    assert equality.sum() == pytest.approx(52 / 81)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.token_survival(theory.fixed_rows([P], Q), 2), "there are rows for 1 positions"),
        (lambda: theory.fixed_rows([[P]], Q), "give one row, or one row a position"),
        (lambda: theory.block_survival(lambda guesses: (P, [0.5, 0.4]), 1), "q sums to 0.9"),
        (lambda: theory.token_survival(theory.fixed_rows(P, Q), -1), "gamma is -1"),
    ],
)
def test_what_cannot_be_gone_through_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
