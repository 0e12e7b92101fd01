"""Uniforms depend on their key alone, and a draw follows its row."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specworkbench.engine.rng import STREAMS, Streams, UniformChooser, inverse_cdf, uniforms

ALMOST_ONE = 1.0 - 2.0**-53


def test_uniforms_are_a_function_of_their_key():
    assert np.array_equal(uniforms(3, 2, 7, 5), uniforms(3, 2, 7, 5))


def test_a_longer_round_begins_with_the_same_uniforms():
    assert np.array_equal(uniforms(3, 0, 1, 9)[:4], uniforms(3, 0, 1, 4))


def test_no_two_keys_share_a_uniform():
    drawn = np.concatenate(
        [
            uniforms(seed, sequence, index, 9).ravel()
            for seed in range(3)
            for sequence in range(4)
            for index in range(30)
        ]
    )
    assert len(np.unique(drawn)) == len(drawn)


def test_negative_looking_and_huge_seeds_are_distinct():
    assert not np.array_equal(uniforms(2**63, 0, 0, 1), uniforms(1, 0, 0, 1))


@pytest.mark.parametrize("u", [0.0, 1e-300, 0.25, 0.5, ALMOST_ONE])
def test_an_entry_of_weight_zero_is_never_drawn(u):
    rows = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0], [0.0, 0.0, 3.0, 0.0, 0.0]], dtype=torch.float64)
    drawn = inverse_cdf(rows, torch.tensor([u, u], dtype=torch.float64))
    assert rows.gather(-1, drawn.unsqueeze(-1)).gt(0).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda w: sum(w) > 0), st.floats(0, ALMOST_ONE))
def test_inverse_cdf_inverts_the_cdf(weights, u):
    row = torch.tensor([weights], dtype=torch.float64)
    drawn = int(inverse_cdf(row, torch.tensor([u], dtype=torch.float64)))
    cdf = np.cumsum(np.array(weights))
    below = cdf[drawn - 1] if drawn else 0.0
    total, slack = cdf[-1], 1e-12
    assert weights[drawn] > 0
    assert below / total <= u + slack and u < cdf[drawn] / total + slack


def test_draws_follow_their_row():
    row = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    u = torch.from_numpy(uniforms(0, 0, 0, 40_000)[:, STREAMS.index("bonus")])
    counts = torch.bincount(inverse_cdf(row.expand(40_000, 4), u), minlength=4).double() / 40_000
    assert torch.allclose(counts, row[0], atol=0.01)


def test_accept_is_strict_so_that_probability_zero_is_never_accepted():
    chooser = UniformChooser(torch.zeros(2, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    assert chooser.accept(torch.tensor([0.0, 1e-9], dtype=torch.float64)).tolist() == [False, True]


def test_the_verifiers_uniforms_are_those_of_their_streams():
    streams = Streams(5, torch.device("cpu"), torch.float64)
    _, drafted = streams.for_proposer(1, 2, 3)
    _, used = streams.for_verifier(1, 2, 3, drafted)
    draft, accept, residual, bonus = uniforms(5, 1, 2, 4).T
    assert np.array_equal(used.draft.numpy(), draft[:3])
    assert np.array_equal(used.accept.numpy(), accept[:3])
    assert np.array_equal(used.drawn.numpy(), [*residual[:3], bonus[3]])


def test_a_short_proposal_reads_the_bonus_of_its_own_end():
    streams = Streams(5, torch.device("cpu"), torch.float64)
    _, drafted = streams.for_proposer(1, 2, 3)
    _, used = streams.for_verifier(1, 2, 0, drafted)
    assert used.accept.numel() == 0
    assert used.drawn.tolist() == [uniforms(5, 1, 2, 1)[0, STREAMS.index("bonus")]]


def test_uniforms_in_float32_stay_below_one():
    streams = Streams(0, torch.device("cpu"), torch.float32)
    assert streams._to_device(np.array([ALMOST_ONE])).item() < 1.0
