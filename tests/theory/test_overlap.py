"""alpha from rows, and the martingale test of acceptance."""

import numpy as np
import pytest
from hypothesis import given

from specworkbench import theory
from specworkbench.errors import InputError
from specworkbench.theory.one_position import one_position
from tests.theory.rows import pairs


@given(pairs())
def test_overlap_is_one_less_the_total_variation_and_what_the_rule_accepts(pair):
    p, q = pair
    assert theory.overlap(p, q) == pytest.approx(1 - np.abs(p - q).sum() / 2)
    assert theory.overlap(p, q) == theory.overlap(q, p) == pytest.approx(one_position(p, q).acceptance)


def test_alpha_is_the_mean_of_the_rows_overlaps():
    p, q = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.25, 0.75])
    assert theory.overlap(p, q).tolist() == [0.75, 0.25]
    assert theory.alpha_from_rows(p, q) == 0.5 and theory.overlap(p[0], p[0]) == 1


def reached(rng, rounds, beta):
    """Positions that rounds of four get to, with what they accept: the betas of a round hang together."""
    betas, flags = [], []
    for _ in range(rounds):
        level = rng.uniform(0.2, 0.9)
        for _ in range(4):
            betas.append(min(1, level * rng.uniform(0.5, 1)))
            flags.append(rng.random() < beta(betas[-1]))
            if not flags[-1]:
                break
    return flags, betas


def test_acceptance_of_reached_positions_is_a_martingale_whatever_hangs_together():
    rng = np.random.default_rng(0)
    z = np.array([theory.acceptance_z(*reached(rng, 60, lambda beta: beta)) for _ in range(400)])
    assert abs(z.mean()) < 4 / 20 and 0.8 < z.std() < 1.2


def test_a_sampler_that_accepts_too_often_is_seen():
    rng = np.random.default_rng(0)
    assert theory.acceptance_z(*reached(rng, 2000, lambda beta: beta + 0.1 * (1 - beta))) > 4
    assert theory.acceptance_z([True, True], [1, 1]) == 0
    assert theory.acceptance_z([True, True], [1, 0]) == np.inf and theory.acceptance_z([0], [1]) == -np.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.overlap([0.5, 0.4], [0.5, 0.5]), "p sums to 0.9; it must sum to 1"),
        (lambda: theory.overlap([0.5, 0.5], [0.5, 0.25, 0.25]), "over the same tokens"),
        (lambda: theory.overlap(0.5, [1.0]), r"p has shape \(\); it must be a row"),
        (lambda: theory.overlap([1.2, -0.2], [1, 0]), "it is a probability"),
        (lambda: theory.alpha_from_rows(np.empty((0, 2)), np.empty((0, 2))), "have no rows"),
        (lambda: theory.acceptance_z([1, 0], [0.5]), "give one of each a position"),
    ],
)
def test_what_is_no_row_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
