"""Setups on which rows are compared: a small random Llama in float64, and the embedded pair in any dtype."""

from functools import lru_cache

import torch

from specworkbench.engine import DecodeSettings, SamplingSettings, load_pair, make_verifier
from specworkbench.engine.loop import Sequence
from specworkbench.engine.proposers import DraftModelProposer
from specworkbench.equivalence.mutants import MUTANTS
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import toy_model
from specworkbench.workloads import load_prompts

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
PENALISED = SamplingSettings(repetition_penalty=1.3)


class ShiftedRows(Sequence):
    """Every row of a block but the first is the one before it."""

    def _target_rows(self, last, proposal):
        rows = super()._target_rows(last, proposal)
        return torch.cat([rows[:1], rows[:-1]])


FAULTS = {
    "rejected_token_stays": ("cache", BY_NAME["rejected_token_stays"].apply, SamplingSettings()),
    "last_accepted_lost": ("cache", BY_NAME["last_accepted_lost"].apply, SamplingSettings()),
    "penalties_frozen": ("rows", BY_NAME["penalties_frozen"].apply, PENALISED),
    "rows_shifted": ("rows", lambda setup: setup.but(sequence=ShiftedRows), SamplingSettings()),
}
"""Name to the verdict, the fault, and the sampling under which it shows."""


def setup_of(target, draft, prompt, *, sampling=None, gamma=4, length=24) -> Setup:
    settings = DecodeSettings(gamma, length, sampling or SamplingSettings(), ignore_eos=True)
    proposer = DraftModelProposer(draft)
    return Setup(target, tuple(prompt), settings, proposer, make_verifier(None, settings.sampling, proposer))


def toy_setup(sampling=None, vocab=6, **options) -> Setup:
    """A random Llama in float64 and another as its draft."""
    target, draft = (toy_model(vocab, seed=seed, layers=2, sharpness=3.0) for seed in (0, 1))
    return setup_of(target, draft, (0, 1, 2, 0, 1), sampling=sampling, **{"gamma": 3} | options)


@lru_cache
def embedded_pair(dtype="float32", fused=True):
    return load_pair(dtype=dtype, device="cpu", fused=fused)


def embedded_setups(count=2, dtype="float32", fused=True, sampling=None, length=20) -> list[Setup]:
    """The first shipped prompts of the embedded target with its draft."""
    target, draft = embedded_pair(dtype, fused)
    prompts = [target.encode(prompt.text)[-40:] for prompt in load_prompts("embedded")[:count]]
    return [setup_of(target, draft, prompt, sampling=sampling, length=length) for prompt in prompts]
