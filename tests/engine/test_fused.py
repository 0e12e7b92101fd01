"""The fused forward computes what transformers' own forward computes, for every architecture it takes on."""

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from specworkbench.engine.fused import can_fuse
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.products import FORMS, ROWS
from tests.engine.toys import toy_tokenizer

TOLERANCE = 1e-5
"""transformers computes its norms and rotary angles in float32, whatever the model's dtype."""
SMALL = {
    "vocab_size": 7, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 600, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL)),
    "llama with biases, tied": lambda: LlamaForCausalLM(
        LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
    ),
    "llama with as many key heads": lambda: LlamaForCausalLM(LlamaConfig(**SMALL | {"num_key_value_heads": 4})),
    "llama with yarn": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, rope_parameters=YARN)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=None)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL)),
}
OTHERS = {
    "another architecture": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=16, n_layer=2, n_head=2)),
    "a sliding window": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)),
    "a sliding window in some layers": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4, max_window_layers=1)
    ),
    "positions that change with the length": lambda: LlamaForCausalLM(
        LlamaConfig(**SMALL, rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0})
    ),
    "half precision": lambda: LlamaForCausalLM(LlamaConfig(**SMALL)).bfloat16(),
    "another attention": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, attn_implementation="eager")),
}


def both(name: str) -> tuple[LanguageModel, LanguageModel]:
    """The same random model, fused and through transformers."""
    torch.manual_seed(0)
    model = MODELS[name]().double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    fused = LanguageModel(model, toy_tokenizer(7), "fused")
    assert fused.describe()["forward"] == "fused"
    return fused, LanguageModel(model, toy_tokenizer(7), "plain", fused=False)


@pytest.mark.parametrize("name", MODELS)
def test_every_forward_gives_the_rows_of_transformers(name):
    models = both(name)
    caches = [model.new_cache() for model in models]
    ids = torch.randint(0, 7, (400,), generator=torch.Generator().manual_seed(1))
    start = 0
    for n in (20, 1, 5, 1, 300, 3):  # 300 passes the first table of rotary positions
        ours, theirs = (
            model.forward(ids[start : start + n], cache, layers=(0, 2, -1))
            for model, cache in zip(models, caches, strict=True)
        )
        assert torch.allclose(ours.logits, theirs.logits, atol=TOLERANCE)
        assert ours.hidden.keys() == theirs.hidden.keys()
        assert all(torch.allclose(ours.hidden[key], theirs.hidden[key], atol=TOLERANCE) for key in ours.hidden)
        for cache in caches:
            cache.rollback(n // 2)
        start += n - n // 2


def test_only_the_rows_asked_for():
    fused, plain = both("llama")
    ids = torch.arange(6)
    ours = fused.forward(ids, fused.new_cache(), rows=2).logits
    assert ours.shape == (2, 7)
    assert torch.allclose(ours, plain.forward(ids, plain.new_cache(), rows=2).logits, atol=TOLERANCE)


@pytest.mark.parametrize("name", OTHERS)
def test_what_it_does_not_know_goes_through_transformers(name):
    model = OTHERS[name]()
    assert not can_fuse(model)
    assert LanguageModel(model, toy_tokenizer(7), "other").describe()["forward"] == "transformers"


def test_the_weights_are_held_once_and_the_model_stays_whole():
    fused, _ = both("qwen2")
    layer = fused.model.model.layers[0]
    joined = fused._fused.layers[0]
    for part, whole in ((layer.self_attn.k_proj, joined.mixed), (layer.mlp.up_proj, joined.gate_up)):
        assert part.weight.untyped_storage().data_ptr() == whole.weight.untyped_storage().data_ptr()
    fused.model(torch.arange(4).unsqueeze(0)).logits.sum().backward()
    assert layer.self_attn.k_proj.weight.grad.abs().sum() > 0
    before = fused.forward(torch.arange(4), fused.new_cache()).logits
    with torch.no_grad():
        layer.self_attn.k_proj.weight.mul_(2.0)
    assert not torch.equal(fused.forward(torch.arange(4), fused.new_cache()).logits, before)


def test_a_second_fused_forward_of_a_model_shares_the_joined_weights():
    fused, _ = both("qwen2")
    again = LanguageModel(fused.model, fused.tokenizer, "again")
    for first, second in zip(fused._fused.products, again._fused.products, strict=True):
        assert first.weight.data_ptr() == second.weight.data_ptr() and first.weight.shape == second.weight.shape
    ids = torch.arange(4)
    assert torch.equal(fused.forward(ids, fused.new_cache()).logits, again.forward(ids, again.new_cache()).logits)


def model_of_forms(forms, dtype):
    """A fused model whose products have the given forms, and the untouched one."""
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**SMALL | {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model = model.to(dtype)
    fused = LanguageModel(model, toy_tokenizer(7), "fused")
    for product in fused._fused.products:
        if product.weight.shape[0] % 8 == 0:
            product.forms = dict.fromkeys(ROWS, forms)
            product._prepare()
    return fused, LanguageModel(model, toy_tokenizer(7), "plain", fused=False, products=False)


@pytest.mark.parametrize("form", FORMS)
def test_it_gives_the_rows_of_transformers_whatever_the_forms_of_its_products(form):
    fused, plain = model_of_forms(form, torch.float32)
    caches = [model.new_cache() for model in (fused, plain)]
    ids = torch.randint(0, 7, (40,), generator=torch.Generator().manual_seed(1))
    for start, n in ((0, 20), (20, 1), (21, 2), (23, 5), (28, 9)):
        ours, theirs = (
            model.forward(ids[start : start + n], cache).logits
            for model, cache in zip((fused, plain), caches, strict=True)
        )
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("part", ["q_proj", "k_proj", "v_proj"])
def test_packed_copies_follow_parameters_that_are_changed_in_place(part):
    fused, plain = model_of_forms("packed", torch.float32)
    ids = torch.arange(6)
    with torch.no_grad():
        getattr(fused.model.model.layers[0].self_attn, part).weight.mul_(3.0)
    ours, theirs = (model.forward(ids, model.new_cache()).logits for model in (fused, plain))
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)
