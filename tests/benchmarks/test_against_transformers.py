"""transformers' side is transformers' own, with fair settings."""

from dataclasses import replace

import pytest
import torch

from benchmarks.against_transformers import Pair, share, theirs, untouched
from benchmarks.settings import SETTINGS
from specworkbench.engine import load_model
from specworkbench.engine.proposers import NgramProposer

SETTING = replace(SETTINGS["embedded"], max_new_tokens=6, per_bucket=1)
PROMPT = SETTING.load_prompts()[0]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair(SETTING)


class Watched:
    """A model that keeps what `generate` was asked."""

    def generate(self, ids, generation_config, assistant_model, **options):
        self.config, self.assistant = generation_config, assistant_model
        return torch.cat([ids, ids[:, :1]], dim=1)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_contender_gives_the_tokens_asked_for(pair, temperature):
    contenders, ratios = pair.contenders(temperature)
    assert {name: run(PROMPT, 1) for name, run in contenders.items()} == dict.fromkeys(contenders, 6)
    assert {ratio.over for ratio in ratios} | {ratio.under for ratio in ratios} == set(contenders)


def test_prompt_lookup_is_asked_for_as_many_tokens_by_ngrams_as_long_as_ours(pair):
    model = Watched()
    theirs(pair.target, model, SETTING.decoding(1.0), chat=False, lookup=True)(PROMPT, 0)
    assert model.config.prompt_lookup_num_tokens == SETTING.gamma
    assert model.config.max_matching_ngram_size == NgramProposer().max_n
    assert NgramProposer().min_n == 1  # transformers always goes down to one


def test_sampling_is_the_settings_and_nothing_of_the_checkpoint(pair):
    model = Watched()
    theirs(pair.target, model, SETTING.decoding(1.0), chat=False)(PROMPT, 0)
    config = model.config
    assert (config.do_sample, config.temperature, config.top_k, config.eos_token_id) == (True, 1.0, 0, None)
    assert all(value is None for value in (pair.theirs.generation_config.top_k, pair.theirs.generation_config.top_p))


def test_the_assistant_guesses_gamma_tokens_whatever_their_probability(pair):
    assistant, model = Watched(), Watched()
    theirs(pair.target, model, SETTING.decoding(0.0), chat=False, draft=assistant)(PROMPT, 0)
    config = assistant.generation_config
    assert model.assistant is assistant
    assert (config.num_assistant_tokens, config.num_assistant_tokens_schedule) == (SETTING.gamma, "constant")
    assert config.assistant_confidence_threshold == 0.0


def test_shared_weights_lie_in_one_place_and_change_no_logit():
    ours = load_model("embedded", device="cpu")
    model = untouched(ours, share_weights=False)
    ids = torch.tensor([[5, 6, 7]])
    with torch.inference_mode():
        before = model(ids).logits
        share(model, ours.model)
        after = model(ids).logits
    lies_at = {name: parameter.data_ptr() for name, parameter in ours.model.named_parameters()}
    assert all(parameter.data_ptr() == lies_at[name] for name, parameter in model.named_parameters())
    assert torch.equal(before, after)


def test_a_weight_that_differs_is_not_shared():
    one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    kept = one.weight.detach().clone()
    share(one, other)
    assert torch.equal(one.weight, kept)
