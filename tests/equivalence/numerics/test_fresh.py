"""Fresh rows are the rows of the engine's rounds, of chains and of trees, in every shape."""

import numpy as np
import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.numerics import fresh_logits, fresh_rows
from specworkbench.equivalence.toys import toy_model
from specworkbench.equivalence.tree_toys import KINDS
from tests.equivalence.numerics.cases import PENALISED, toy_setup

EXACT = 1e-12


def largest(setup, **options):
    """The largest difference of a probability over all rows of all rounds of a sequence."""
    sequence, found = setup.start(setup.streams(2)), []
    tokens = list(setup.prompt)
    for step in decode_rounds(sequence):
        proposal = step.proposal
        parents = None if proposal.parents is None else proposal.parents.tolist()
        rows = fresh_rows(
            tokens, proposal.tokens.tolist(), setup.target, setup.settings.sampling, parents=parents, **options
        )
        assert rows.shape == tuple(step.target_probs.shape)
        found.append(np.abs(rows - step.target_probs.numpy()).max())
        tokens += step.emitted
    assert len(found) > 5
    return max(found)


@pytest.mark.parametrize("shape", ["full", "single", 4])
@pytest.mark.parametrize("sampling", [None, PENALISED, SamplingSettings(top_p=0.7)], ids=str)
def test_they_are_the_rows_of_a_round_of_a_chain(sampling, shape):
    assert largest(toy_setup(sampling), shape=shape) < EXACT
    assert largest(toy_setup(sampling), shape=shape, prefill=4) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_rows_of_a_round_of_a_tree(kind):
    setup = toy_setup(PENALISED)
    proposer = KINDS[kind](setup.proposer.draft)
    setup = setup.but(proposer=proposer, verifier=make_verifier(None, PENALISED, proposer))
    assert largest(setup) < EXACT


def test_another_context_gives_other_rows():
    target = toy_model(5)
    rows = [fresh_rows(context, [1, 2], target, SamplingSettings()) for context in ([0, 1, 2], [0, 2, 2])]
    assert np.abs(rows[0] - rows[1]).max() > 1e-2


@pytest.mark.parametrize("shape", ["full", "single", 5, 64])
def test_a_text_as_long_as_the_context_can_be_forwarded_in_every_shape(shape):
    target = toy_model(5, context=20)
    tokens = [0, 1, 2, 3] * 5
    whole = fresh_logits(target, tokens, 12)
    assert np.abs(fresh_logits(target, tokens, 12, shape, prefill=3) - whole).max() < EXACT
    assert whole.shape == (12, 5)
