"""A compiled forward gives the rows of the forward it was compiled from, whatever was taken back before."""

import random

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from specworkbench.engine.models import LanguageModel
from specworkbench.engine.preallocated import LEAST_CAPACITY
from tests.engine.toys import toy_tokenizer

SMALL = {
    "vocab_size": 7, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 600, "eos_token_id": None,
}  # fmt: skip
NORMED = "norms of queries and keys, float64"
BUILDS = {
    "biases, float32": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL)),
    NORMED: lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL)).double(),
}
NEAR = {torch.float32: 1e-4, torch.float64: 1e-10}
SHAPES = ((1, 1), (2, 1), (4, 4))
IDS = torch.randint(0, 7, (2 * LEAST_CAPACITY,), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module", params=["biases, float32", pytest.param(NORMED, marks=pytest.mark.slow)])
def pair(request) -> tuple[LanguageModel, LanguageModel]:
    """The same random model, eager and compiled for steps of 1 and 4 tokens."""
    torch.manual_seed(0)
    model = BUILDS[request.param]()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    eager, compiled = (LanguageModel(model, toy_tokenizer(7), name) for name in ("eager", "compiled"))
    compiled.compile()
    for shape in SHAPES:
        compiled.expect(*shape)
    return eager, compiled


def test_rows_and_hidden_states_are_those_of_a_fresh_forward_after_any_rollback(pair):
    eager, compiled = pair
    draws = random.Random(0)
    cache, held = compiled.new_cache(), []
    compiled.forward(IDS[:3], cache)
    held += IDS[:3].tolist()
    for _ in range(30):
        n = draws.choice([1, 1, 3, 4, 4, 4])  # three at once are not expected: they run eagerly on the same cache
        ids = [draws.randrange(7) for _ in range(n)]
        step = compiled.forward(torch.tensor(ids), cache, layers=(1, -1))
        fresh = eager.forward(torch.tensor(held + ids), eager.new_cache(), layers=(1, -1))
        near = NEAR[compiled.dtype]
        assert torch.allclose(step.logits, fresh.logits[-n:], atol=near)
        assert all(torch.allclose(step.hidden[layer], fresh.hidden[layer][-n:], atol=near) for layer in (1, -1))
        back = draws.randrange(n + 1)
        cache.rollback(back)
        held += ids[: n - back]
    made = [cost.name for cost in compiled._compiled.programs.costs]
    assert [name.split()[5] for name in sorted(made)] == ["1", "4"]


def test_fewer_rows_than_tokens_are_the_last_ones(pair):
    rows = [model.forward(IDS[:2], model.new_cache(), rows=1).logits for model in pair]
    assert torch.allclose(*rows, atol=NEAR[rows[0].dtype]) and rows[0].shape == (1, 7)
    assert "over 2 tokens" in pair[1]._compiled.programs.costs[-1].name


def test_what_stands_beyond_the_length_is_not_seen(pair):
    _, compiled = pair
    caches = [compiled.new_cache() for _ in range(2)]
    for cache in caches:
        compiled.forward(IDS[:5], cache)
    for states in (*caches[1].keys, *caches[1].values):
        states[:, 5:] = 1e6
    one, other = (compiled.forward(IDS[5:9], cache, layers=(1, -1)).logits for cache in caches)
    assert torch.equal(one, other)


def test_the_weights_are_the_models_own(pair):
    _, compiled = pair
    before = compiled.forward(IDS[:1], compiled.new_cache(), layers=(1, -1)).logits
    for weight in (compiled.model.model.norm.weight, compiled.model.lm_head.weight):
        with torch.no_grad():
            weight.mul_(2.0)
            cache = compiled.new_cache()
            compiled.prepare(cache, layers=(1, -1))  # as the start of a decoding does
            after = compiled.forward(IDS[:1], cache, layers=(1, -1)).logits
            weight.div_(2.0)
        assert torch.allclose(after, 2 * before, atol=NEAR[compiled.dtype])
    compiled.prepare(compiled.new_cache(), layers=(1, -1))


def test_a_cache_that_has_grown_has_a_program_of_its_own(pair):
    eager, compiled = pair
    cache = compiled.new_cache()
    compiled.forward(IDS[:LEAST_CAPACITY], cache)
    row = compiled.forward(IDS[LEAST_CAPACITY : LEAST_CAPACITY + 1], cache).logits
    assert cache.capacity == 2 * LEAST_CAPACITY
    fresh = eager.forward(IDS[: LEAST_CAPACITY + 1], eager.new_cache(), rows=1).logits
    assert torch.allclose(row, fresh, atol=NEAR[compiled.dtype])
    assert f"room for {2 * LEAST_CAPACITY}" in compiled._compiled.programs.costs[-1].name


def test_the_manifest_says_what_was_compiled_and_what_it_took(pair):
    _, compiled = pair
    compiled.forward(IDS[:1], compiled.new_cache(), layers=(1, -1))
    entry = compiled.describe()
    assert entry["engine"] == "compiled"
    assert entry["compiled"]
    assert all(cost["seconds"] > 0 and "forward of compiled" in cost["name"] for cost in entry["compiled"])
