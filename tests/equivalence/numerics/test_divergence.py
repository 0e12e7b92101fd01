"""The first difference of two greedy texts is called rounding or bias by the margin of the logits there."""

import math
from functools import lru_cache

import pytest
import torch

from specworkbench.engine import SamplingSettings
from specworkbench.engine.verifiers.greedy import GreedyVerifier
from specworkbench.equivalence.law import fresh_row
from specworkbench.equivalence.numerics import first_divergence, fresh_logits, logit_noise, plain, same_shape
from specworkbench.equivalence.setup import run
from specworkbench.equivalence.toys import toy_model
from specworkbench.errors import InputError
from tests.equivalence.numerics.cases import PENALISED, embedded_setups

GREEDY = SamplingSettings(temperature=0)


class AcceptAlways(GreedyVerifier):
    def accept_probs(self, proposal, p, q):
        return torch.ones(proposal.size, dtype=p.dtype)


def judged(setup, other):
    """The divergence of the greedy texts of two setups of one prompt."""
    texts = [run(one, one.streams(0)) for one in (setup, other)]
    return first_divergence(*texts, setup.target, setup.prompt, sampling=setup.settings.sampling)


@lru_cache
def greedy_setups(dtype, length=20):
    return embedded_setups(3, dtype, dtype != "bfloat16", GREEDY, length)


def test_accepting_always_is_bias():
    for setup in greedy_setups("float32"):
        found = judged(plain(setup), setup.but(verifier=AcceptAlways()))
        assert found.judgement == "bias" and found.margin > 100 * found.allowance > 0
        assert "bias" in found.sentence and found.plain != found.speculative


def test_correct_code_never_diverges_by_bias():
    for setup in greedy_setups("float32"):
        assert judged(plain(setup), setup) is None
    found = [judged(plain(setup), setup) for setup in greedy_setups("bfloat16")]
    assert {None if one is None else one.judgement for one in found} <= {None, "rounding"}


def nearly_tied():
    """A target in float32 whose two best tokens have output rows that differ by a rounding: either may win."""
    target = toy_model(6, width=64, layers=2, sharpness=3.0)
    target.model.float()
    with torch.no_grad():
        head = target.model.lm_head.weight
        head[1] = head[0]
        head[1, ::2] *= 1 + 1e-7
    return type(target)(target.model, target.tokenizer, "nearly tied")


def test_a_difference_of_a_rounding_is_called_rounding():
    target = nearly_tied()
    prompt = next(
        (a, b, c) for a in range(6) for b in range(6) for c in range(6)
        if fresh_logits(target, (a, b, c), 1)[0].argmax() in (0, 1)
    )  # fmt: skip
    noise = logit_noise(target, [*prompt, 0, 1, 2, 3, 0, 1, 2, 3], 8, 5)
    found = first_divergence([0, 2], [1, 2], target, prompt, noise)
    assert found.judgement == "rounding" and found.margin <= found.allowance
    assert first_divergence([0, 2], [4, 2], target, prompt, noise).judgement == "bias"


def test_the_margin_is_that_of_the_logits_after_the_common_text():
    target, prompt = toy_model(6), (0, 1, 2)
    found = first_divergence([3, 1, 2, 5], [3, 1, 4, 5], target, prompt, 0.0)
    logits = fresh_logits(target, (*prompt, 3, 1), 1)[0]
    assert (found.position, found.plain, found.speculative) == (2, 2, 4)
    assert found.margin == pytest.approx(logits.max() - min(logits[2], logits[4])) and found.judgement == "bias"
    assert first_divergence([3, 1, 2], [3, 1, 4], target, prompt, found.margin / 2).judgement == "rounding"


def test_a_penalty_takes_part_in_the_choice():
    target, prompt = toy_model(6), (0, 1, 2)
    row = fresh_row(target, prompt, SamplingSettings(repetition_penalty=PENALISED.repetition_penalty))
    first, second = row.argsort(descending=True)[:2].tolist()
    found = first_divergence([first], [second], target, prompt, 0.0, sampling=PENALISED)
    assert found.margin == pytest.approx(float(row[first].log() - row[second].log()))


def test_equal_texts_do_not_diverge():
    assert first_divergence([1, 2], (1, 2), toy_model(4), (0,)) is None


@pytest.mark.parametrize("pair", [([1, 2], [1]), ([1], [1, 2])])
def test_a_text_that_ends_before_the_other_is_bias(pair):
    found = first_divergence(*pair, toy_model(4), (0,))
    assert found.judgement == "bias" and math.isnan(found.margin) and "ends after 1" in found.sentence


def test_a_negative_noise_is_refused():
    with pytest.raises(InputError, match="at least 0"):
        first_divergence([1], [2], toy_model(4), (0,), -1.0)


def test_the_noise_of_a_dtype_is_measured():
    setup = greedy_setups("float32")[0]
    tokens = [*setup.prompt, *setup.prompt[:8]]
    noise = {dtype: logit_noise(greedy_setups(dtype)[0].target, tokens, 8, 5) for dtype in ("bfloat16", "float32")}
    assert 0 < noise["float32"] < 1e-3 < noise["bfloat16"] < 1


def test_the_same_shape_baseline_is_compared_likewise():
    for setup in greedy_setups("bfloat16"):
        found = judged(same_shape(setup), setup)
        assert found is None or found.judgement == "rounding"
