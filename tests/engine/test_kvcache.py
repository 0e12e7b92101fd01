"""After any rollback the next row equals that of a fresh forward."""

import pytest
import torch
from transformers import (
    Lfm2Config,
    Lfm2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from specworkbench.engine import SamplingSettings, decode, make_proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.errors import InputError
from tests.engine.toys import toy_model, toy_tokenizer

SMALL = {
    "vocab_size": 7, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": None,
    "pad_token_id": None,
}  # fmt: skip


def wrap(model) -> LanguageModel:
    return LanguageModel(model.double(), toy_tokenizer(7), "toy")


def windowed() -> LanguageModel:
    """Every layer sees the last 4 tokens only."""
    torch.manual_seed(0)
    return wrap(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)))


def convolutional() -> LanguageModel:
    """Short convolutions beside attention: state that the library can rewind."""
    torch.manual_seed(0)
    return wrap(Lfm2ForCausalLM(Lfm2Config(**SMALL, layer_types=["conv", "full_attention"])))


def recurrent() -> LanguageModel:
    """Gated delta-net layers: state that cannot be rewound."""
    torch.manual_seed(0)
    config = Qwen3NextConfig(
        **SMALL, head_dim=8, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=1,
        linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8, mlp_only_layers=[0, 1],
    )  # fmt: skip
    return wrap(Qwen3NextForCausalLM(config))


def fresh_row(model: LanguageModel, tokens: list[int]) -> torch.Tensor:
    return model.forward(torch.tensor(tokens), model.new_cache(), rows=1).logits[0]


@pytest.mark.parametrize("build", [lambda: toy_model(7), windowed, convolutional])
@pytest.mark.parametrize("prompt", [1, 3, 6])
@pytest.mark.parametrize("back", [0, 1, 3, 4])
def test_the_row_after_a_rollback_is_that_of_a_fresh_forward(build, prompt, back):
    model = build()
    tokens = [(3 * i + 1) % 7 for i in range(prompt)]
    cache = model.new_cache()
    model.forward(torch.tensor(tokens), cache)
    cache.rollback(0)
    for _ in range(3):
        model.forward(torch.tensor([5, 2, 6, 0]), cache)
        cache.rollback(back)
        tokens += [5, 2, 6, 0][: 4 - back]
        row = model.forward(torch.tensor([4]), cache).logits[0]
        cache.rollback(0)
        tokens += [4]
        assert cache.length == len(tokens)
        assert torch.allclose(row, fresh_row(model, tokens), atol=1e-10)


def test_a_recurrent_state_is_refused_with_a_sentence():
    model = recurrent()
    cache = model.new_cache()
    model.forward(torch.tensor([1, 2, 3]), cache)
    assert not cache.can_rollback
    with pytest.raises(InputError, match="recurrent state"):
        cache.rollback(1)


def test_a_recurrent_target_decodes_plainly_and_refuses_a_proposer_before_the_first_round():
    model = recurrent()
    assert len(decode("abc", target=model, max_new_tokens=6).token_ids) == 6
    rounds = []
    with pytest.raises(InputError, match="recurrent state"):
        decode("abcabc", target=model, proposer=make_proposer("ngram"), on_round=rounds.append)
    assert rounds == []


@pytest.mark.parametrize("build", [windowed, convolutional])
def test_caches_that_the_library_rewinds_speculate_as_they_decode_plainly(build):
    options = dict(target=build(), max_new_tokens=24, sampling=SamplingSettings(temperature=0))
    plain = decode("abcabc", **options)
    assert decode("abcabc", proposer=make_proposer("ngram"), gamma=4, **options).token_ids == plain.token_ids


def test_no_more_can_be_taken_back_than_is_there():
    model = toy_model(5)
    cache = model.new_cache()
    model.forward(torch.tensor([1, 2]), cache)
    with pytest.raises(ValueError, match="3 of 2"):
        cache.rollback(3)


def test_bytes_are_those_of_keys_and_values():
    model = toy_model(5, layers=2, width=16)
    cache = model.new_cache()
    assert cache.nbytes == 0
    model.forward(torch.tensor([1, 2, 3]), cache)
    assert cache.nbytes == 2 * 2 * 3 * 8 * 8  # layers, keys and values, tokens, head width, bytes
