"""Settings written twice agree: row by row in numpy here, block by block in the engine."""

import numpy as np
import pytest
import torch

from specworkbench.engine.sampling import Sampler, SamplingSettings
from specworkbench.equivalence.numerics import processed

CASES = [
    SamplingSettings(),
    SamplingSettings(temperature=0),
    SamplingSettings(temperature=0.6, top_k=5),
    SamplingSettings(top_p=0.8),
    SamplingSettings(min_p=0.1, temperature=1.7),
    SamplingSettings(top_k=12, top_p=0.9, min_p=0.02, repetition_penalty=1.4),
    SamplingSettings(temperature=0, repetition_penalty=3.0),
]


def block(seed, tied=False):
    """Logits (4, 30) of a block of three guesses, the tokens before it and in it."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((4, 30))
    return np.round(logits) if tied else logits, rng.integers(0, 30, 6).tolist(), rng.integers(0, 30, 3).tolist()


def differences(settings, tied=False, frozen=False):
    found = []
    for seed in range(20):
        logits, context, guesses = block(seed, tied)
        seen = torch.zeros(30, dtype=torch.bool)
        seen[context] = True
        engine = Sampler(settings)(torch.from_numpy(logits), seen, torch.tensor(guesses)).numpy()
        ours = [processed(row, context + guesses[: 0 if frozen else j], settings) for j, row in enumerate(logits)]
        found.append(np.abs(engine - np.stack(ours)).max())
    return max(found)


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_the_row_is_the_samplers(settings):
    assert differences(settings) < 1e-12


@pytest.mark.parametrize("settings", [case for case in CASES if case.top_p == 1.0], ids=str)
def test_and_so_where_logits_are_tied(settings):
    assert differences(settings, tied=True) < 1e-12


def test_a_penalty_that_does_not_see_the_block_is_another_row():
    assert differences(CASES[-2], frozen=True) > 1e-2


def test_it_leaves_the_logits_alone():
    logits, context, _ = block(0)
    before = logits[0].copy()
    processed(logits[0], context, CASES[-2])
    assert np.array_equal(logits[0], before)
