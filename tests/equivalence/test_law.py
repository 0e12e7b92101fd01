"""The yardstick itself: the product law, and the distance between laws."""

import pytest
import torch

from specworkbench.engine import SamplingSettings
from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.sampling import Sampler
from specworkbench.equivalence.closed_forms import survival
from specworkbench.equivalence.law import (
    accepted_law,
    decode_law_memoised,
    first_tokens,
    largest_difference,
    product_law,
    total_variation,
)
from specworkbench.equivalence.toys import SporadicDraft, TableModel, table_setup


def test_the_product_law_is_the_product_of_the_rows():
    target = TableModel(4, seed=3)
    law = product_law(target, (0, 1), DecodeSettings(max_new_tokens=2))
    first, second = (target.model.row(prefix).softmax(-1) for prefix in ((0, 1), (0, 1, 3)))
    assert len(law) == 16
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)
    assert law[3, 2] == pytest.approx(float(first[3] * second[2]), abs=1e-15)


def test_padding_rows_are_never_drawn():
    target = TableModel(4, seed=3, rows=7)
    law = product_law(target, (0, 1), DecodeSettings(max_new_tokens=2))
    assert total_variation(law, product_law(TableModel(4, seed=3), (0, 1), DecodeSettings(max_new_tokens=2))) == 0


def test_it_ends_at_eos_at_the_limit_at_a_stop_string_and_at_the_contexts_end():
    target = TableModel(4, eos=(1, 3))
    law = product_law(target, (0,), DecodeSettings(max_new_tokens=3))
    assert {output[-1] in (1, 3) for output in law if len(output) < 3} == {True}
    assert not any(token in (1, 3) for output in law for token in output[:-1])
    ignoring = product_law(target, (0,), DecodeSettings(max_new_tokens=3, ignore_eos=True))
    assert {len(output) for output in ignoring} == {3}
    stopping = product_law(TableModel(4), (0,), DecodeSettings(max_new_tokens=3, stop=("ca",)))
    assert (2, 0) in stopping and not any(output[:2] == (2, 0) and len(output) > 2 for output in stopping)
    short = product_law(TableModel(4, context=3), (0,), DecodeSettings(gamma=1, max_new_tokens=3))
    assert {len(output) for output in short} == {2}


def test_it_penalises_prompt_and_output_alike():
    target, sampling = TableModel(4), SamplingSettings(repetition_penalty=2.0)
    law = product_law(target, (2,), DecodeSettings(max_new_tokens=2, sampling=sampling))
    seen = torch.tensor([True, False, True, False])
    row = Sampler(sampling)(target.model.row((2, 0)).unsqueeze(0), seen)[0]
    assert law[0, 1] / first_tokens(law)[(0,)] == pytest.approx(float(row[1]), abs=1e-15)


def test_distances_between_laws():
    one, other = {(0,): 0.5, (1,): 0.5}, {(1,): 0.25, (2,): 0.75}
    assert total_variation(one, other) == 0.75
    assert largest_difference(one, other) == 0.75
    assert total_variation(one, one) == 0.0
    assert first_tokens({(0, 1): 0.25, (0, 2): 0.5, (1,): 0.25}) == {(0,): 0.75, (1,): 0.25}


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"draft_sampling": SamplingSettings(temperature=2.0, top_k=3)},
        {"sampling": SamplingSettings(temperature=0.7, top_p=0.8), "draft_sampling": SamplingSettings()},
    ],
    ids=["plain", "draft of its own", "cut target"],
)
def test_the_expected_accepted_length_is_the_sum_of_survivals(gamma, sampling):
    """E[accepted] of the enumerated real code = S_1 + ... + S_gamma, S_j = sum of prod min(p, q) by fresh forwards."""
    setup = table_setup(1, vocab=4, length=4, gamma=gamma, **sampling)
    law = accepted_law(setup)
    reached = survival(setup.target, setup.proposer.draft, setup.prompt, setup.settings)
    assert sum(law) == pytest.approx(1.0, abs=1e-14)
    assert [sum(law[j:]) for j in range(1, gamma + 1)] == pytest.approx(reached, abs=1e-14)
    assert sum(j * share for j, share in enumerate(law)) == pytest.approx(sum(reached), abs=1e-14)


def test_the_memoised_law_is_a_law():
    law = decode_law_memoised(table_setup(0, vocab=4, proposer=SporadicDraft))
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-14)
