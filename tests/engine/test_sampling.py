"""Processing follows transformers, in rows of a block as in single steps, for target and draft alike."""

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from specworkbench.engine.sampling import MinimumLength, Sampler, SamplingSettings, seen_in_rows
from specworkbench.errors import InputError

SETTINGS = [
    SamplingSettings(),
    SamplingSettings(temperature=0.7),
    SamplingSettings(top_k=3),
    SamplingSettings(top_p=0.6),
    SamplingSettings(min_p=0.2),
    SamplingSettings(repetition_penalty=1.4),
    SamplingSettings(temperature=1.3, top_k=6, top_p=0.8, min_p=0.05, repetition_penalty=0.8),
]


def transformers_row(
    logits: torch.Tensor, before: list[int], settings: SamplingSettings, minimum=(0, 0), eos=()
) -> torch.Tensor:
    """The distribution that transformers' own processors leave of one row. minimum: prompt length and new tokens."""
    steps = LogitsProcessorList()
    if settings.repetition_penalty != 1:
        steps.append(RepetitionPenaltyLogitsProcessor(settings.repetition_penalty))
    if eos:
        steps.append(MinNewTokensLengthLogitsProcessor(*minimum, list(eos)))
    if settings.temperature != 1:
        steps.append(TemperatureLogitsWarper(settings.temperature))
    if settings.top_k:
        steps.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1:
        steps.append(TopPLogitsWarper(settings.top_p))
    if settings.min_p:
        steps.append(MinPLogitsWarper(settings.min_p))
    return steps(torch.tensor([before]), logits.unsqueeze(0).clone()).softmax(-1)[0]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_row_of_a_block_is_what_transformers_gives_step_by_step(settings):
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4, 10, generator=generator, dtype=torch.float64) * 2
    context, block = [1, 4, 4], [2, 7, 2]
    seen = torch.zeros(10, dtype=torch.bool).index_fill(0, torch.tensor(context), True)
    rows = Sampler(settings)(logits, seen, torch.tensor(block))
    expected = [transformers_row(logits[i], context + block[:i], settings) for i in range(4)]
    assert torch.allclose(rows, torch.stack(expected), atol=1e-14)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("least", range(7))
def test_a_minimum_length_holds_in_every_row_of_a_block_as_transformers_has_it(settings, least):
    """With one token out, in the rows of a block at once, and in each by itself, which is told what is ahead of it."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(4, 10, generator=generator, dtype=torch.float64) * 2
    prompt, block, eos = [1, 4, 4], [2, 7, 2], (3, 8)
    context = [*prompt, 5]
    seen = torch.zeros(10, dtype=torch.bool).index_fill(0, torch.tensor(context), True)
    sampler = Sampler(settings, minimum=MinimumLength(eos, 10, least - 1))
    expected = [
        transformers_row(logits[i], context + block[:i], settings, (len(prompt), least), eos) for i in range(4)
    ]
    assert torch.allclose(sampler(logits, seen, torch.tensor(block)), torch.stack(expected), atol=1e-14)
    before = seen_in_rows(seen, torch.tensor(block), 4)
    alone = [sampler(logits[i : i + 1], before[i : i + 1], ahead=i) for i in range(4)]
    assert torch.allclose(torch.cat(alone), torch.stack(expected), atol=1e-14)
    order = torch.tensor([2, 0, 3, 1])
    turned = sampler(logits[order], before[order], ahead=order)
    assert torch.allclose(turned, torch.stack(expected)[order], atol=1e-14)


def test_temperature_zero_puts_all_mass_on_the_lowest_of_equal_logits():
    rows = Sampler(SamplingSettings(temperature=0))(torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]))
    assert rows.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_nan_logit_makes_its_row_nan(temperature):
    rows = Sampler(SamplingSettings(temperature=temperature))(torch.tensor([[1.0, torch.nan], [1.0, 2.0]]))
    assert rows.isnan().any(-1).tolist() == [True, False]


def test_ties_at_the_top_k_border_are_kept():
    rows = Sampler(SamplingSettings(top_k=2))(torch.tensor([[2.0, 1.0, 1.0, 0.0]]))
    assert (rows[0] > 0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    "field, value",
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("min_p", 2.0),
        ("repetition_penalty", 0.0),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value_and_limit(field, value):
    with pytest.raises(InputError, match=rf"{field} is .*must be"):
        SamplingSettings(**{field: value})
