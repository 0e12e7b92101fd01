"""The same-shape baseline samples plainly, and runs the forwards of speculative rounds."""

import pytest
import torch

from specworkbench.engine import SamplingSettings
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.numerics import SameShape, plain, same_shape
from specworkbench.equivalence.setup import run
from specworkbench.errors import InputError
from tests.equivalence.numerics.cases import PENALISED, embedded_setups, toy_setup

EXACT = 1e-12


class FillersStay(SameShape):
    """A wrong baseline: one filler is left in the cache."""

    def _roll_back(self, proposal, decision):
        self.cache.rollback(max(self._fillers - 1, 0))


def small(**options):
    return toy_setup(vocab=3, gamma=2, length=4, **options)


@pytest.mark.parametrize("sampling", [None, SamplingSettings(temperature=0.7, top_k=2), PENALISED], ids=str)
def test_its_law_is_the_targets_own(sampling):
    setup = same_shape(small(sampling=sampling))
    law, own = decode_law(setup), product_law(setup.target, setup.prompt, setup.settings)
    assert total_variation(law, own) < EXACT
    assert total_variation(decode_law(setup.but(sequence=FillersStay)), own) > 1e-3


@pytest.mark.parametrize("sampling", [None, SamplingSettings(temperature=0), PENALISED], ids=str)
def test_its_text_is_that_of_plain_decoding_with_the_same_seed(sampling):
    setup = toy_setup(sampling, length=30)
    streams = setup.streams(3)
    text = run(plain(setup), streams)
    assert run(same_shape(setup), streams) == text != run(same_shape(setup).but(sequence=FillersStay), streams)


@pytest.mark.parametrize("prompt", [5, 40])
def test_every_forward_has_the_rows_a_speculative_round_there_would_have(prompt):
    setup = toy_setup(length=30).but(prompt=(0, 1, 2, 0) * (prompt // 4) + (1,))  # the longer meets the context's end
    sizes, sequence = [], same_shape(setup).start(setup.streams(0))
    forward = setup.target.forward

    def counted(ids, *arguments, **more):
        sizes.append(len(ids))
        return forward(ids, *arguments, **more)

    sequence.prefill()
    setup.target.forward, stop = counted, None
    while stop is None:
        asked, _ = sequence._asked(sequence.settings.gamma, len(sequence.context.tokens))
        stop = sequence.round().stop_reason
        assert sizes.pop() == asked + 1
        assert sequence.cache.length == len(sequence.context.tokens) - 1
    assert len(sequence.output) == min(30, 64 - len(setup.prompt))


@pytest.mark.parametrize("fused", [True, False])
def test_its_row_is_bit_for_bit_that_of_a_speculative_round(fused):
    """The first round has the same cache: only the kernels could differ, and in plain decoding they do."""
    alike, otherwise = 0, 0
    for setup in embedded_setups(3, fused=fused):
        rows = []
        for one in (setup, same_shape(setup), plain(setup)):
            sequence = one.start(setup.streams(0))
            sequence.prefill()
            rows.append(sequence.round().target_probs[0])
        alike += torch.equal(rows[0], rows[1])
        otherwise += not torch.equal(rows[0], rows[2])
    assert (alike, otherwise > 0) == (3, True)


def test_it_refuses_a_proposer_that_proposes():
    setup = toy_setup().but(sequence=SameShape)
    with pytest.raises(InputError, match="draft_model"):
        setup.start(setup.streams(0))
