"""Bytes and operations of a forward, against counts by hand."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, Gemma3Config, GPT2Config, MixtralConfig

from specworkbench.engine.models import LanguageModel
from specworkbench.experiments.reads import ALL_EXPERTS, Reads, reads_of, weights_of
from tests.engine.toys import toy_model, toy_tokenizer

VOCAB, WIDTH, INNER, LAYERS, DOUBLE = 5, 16, 32, 2, 8
"""Of `toy_model`: two heads of 8, one of them for keys and values, float64."""
MATRICES = WIDTH * WIDTH + 2 * WIDTH * 8 + WIDTH * WIDTH + 3 * WIDTH * INNER
"""Entries of a layer: query; key and value; output; gate, up and down."""
NORMS = (2 * LAYERS + 1) * WIDTH
CACHE = 2 * LAYERS * 8 * DOUBLE
"""Bytes of a token: key and value of 8 in every layer."""


def counted(target, rows=1, context=3):
    """What a forward over so many rows after so many tokens reads."""
    ids = torch.arange(context + rows) % target.vocab_size
    cache = target.new_cache()
    target.forward(ids[:context], cache)
    return reads_of(target, weights_of(target.model), ids[context:], cache)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("fused", [True, False])
def test_of_an_untied_embedding_only_the_rows_looked_up_are_read(rows, fused):
    toy = toy_model()
    target = LanguageModel(toy.model, toy.tokenizer, "toy", fused=fused)
    head, looked_up = VOCAB * WIDTH, rows * WIDTH
    multiplied = LAYERS * MATRICES + head
    read = (multiplied + NORMS + looked_up) * DOUBLE
    assert counted(target, rows, context=3) == Reads(read, (3 + rows) * CACHE, 2 * multiplied * rows)


@pytest.mark.parametrize("rows", [1, 4])
def test_a_tied_embedding_is_read_once_whole_by_the_head(rows):
    multiplied = LAYERS * MATRICES + VOCAB * WIDTH
    read = (multiplied + NORMS) * DOUBLE
    found = counted(toy_model(tie_word_embeddings=True), rows)
    assert (found.weight_bytes, found.operations) == (read, 2 * multiplied * rows)


def test_biases_are_read_and_are_no_products():
    biases = LAYERS * ((WIDTH + 2 * 8 + WIDTH) + (INNER + INNER + WIDTH))
    bare, biased = counted(toy_model()), counted(toy_model(attention_bias=True, mlp_bias=True))
    assert biased.weight_bytes - bare.weight_bytes == biases * DOUBLE
    assert biased.operations == bare.operations


def test_padding_rows_of_the_head_are_read_too():
    more = counted(toy_model(rows=12)).weight_bytes - counted(toy_model()).weight_bytes
    assert more == (12 - VOCAB) * WIDTH * DOUBLE


def test_the_weights_of_the_embedded_target_are_its_parameters(embedded):
    """Its head is its embedding, and each parameter is read once by any number of rows."""
    parameters = sum(tensor.numel() for tensor in embedded.model.parameters())
    for rows in (1, 9):
        assert counted(embedded, rows).weight_bytes == 4 * parameters


@pytest.fixture(scope="module")
def embedded():
    from specworkbench.engine import load_model

    return load_model("embedded", device="cpu")


def test_positions_that_are_learned_are_looked_up_a_row_a_token():
    config = GPT2Config(vocab_size=VOCAB, n_embd=8, n_layer=1, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0)
    model = AutoModelForCausalLM.from_config(config)
    norms, biases = 3 * 2 * 8, 24 + 8 + 32 + 8
    read = 12 * 8 * 8 + VOCAB * 8 + norms + biases
    target = LanguageModel(model, toy_tokenizer(VOCAB), "toy")
    assert [counted(target, rows).weight_bytes for rows in (1, 3)] == [4 * (read + 8), 4 * (read + 3 * 8)]
    assert counted(target, 3).operations == 2 * 3 * (12 * 8 * 8 + VOCAB * 8)


class WithCopies(nn.Linear):
    """A linear layer that keeps a copy of its weight in another layout."""

    def __init__(self, of: nn.Linear):
        super().__init__(of.in_features, of.out_features, bias=False, dtype=torch.float64)
        self.weight = of.weight
        self.register_buffer("packed", of.weight.t().contiguous(), persistent=False)

    def forward(self, x):
        return x @ self.packed


class Quantised(nn.Module):
    """A linear layer whose weight is whole numbers in a buffer, with a scale a row."""

    def __init__(self, of: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = of.in_features, of.out_features
        scale = of.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("whole", (of.weight.detach() / scale).round().to(torch.int8))

    def forward(self, x):
        return x @ (self.whole * self.scale).T


def with_every_down_projection(kind):
    toy = toy_model()
    for layer in toy.model.model.layers:
        layer.mlp.down_proj = kind(layer.mlp.down_proj)
    return LanguageModel(toy.model, toy.tokenizer, "toy", fused=False)


def test_a_copy_in_another_layout_takes_the_place_of_the_original():
    assert counted(with_every_down_projection(WithCopies), 4) == counted(toy_model(), 4)


def test_a_quantised_layer_is_read_as_it_is_held():
    found, plain = counted(with_every_down_projection(Quantised)), counted(toy_model())
    saved = LAYERS * (WIDTH * INNER * (DOUBLE - 1) - WIDTH * DOUBLE)
    assert plain.weight_bytes - found.weight_bytes == saved
    assert found.operations == plain.operations


EXPERTS, PICKED = 8, 2


@pytest.fixture
def mixture():
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=VOCAB, hidden_size=8, intermediate_size=4, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, num_local_experts=EXPERTS, num_experts_per_tok=PICKED, max_position_embeddings=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return LanguageModel(AutoModelForCausalLM.from_config(config), toy_tokenizer(VOCAB), "toy")


ONE_EXPERT = 3 * 4 * 8
BESIDE_EXPERTS = 4 * 8 * 8 + EXPERTS * 8 + VOCAB * 8
"""Attention, router, head."""


def test_of_a_mixture_the_experts_used_are_read(mixture):
    found = counted(mixture, rows=1)
    assert found.weight_bytes == 4 * (BESIDE_EXPERTS + 3 * 8 + 8 + PICKED * ONE_EXPERT) and found.note is None
    assert found.operations == 2 * (BESIDE_EXPERTS + PICKED * ONE_EXPERT)


def test_rows_that_share_an_expert_read_it_once_and_multiply_it_each(mixture):
    """One token again and again, without a context: all its rows go to the same experts."""
    ids = torch.zeros(5, dtype=torch.long)
    found = reads_of(mixture, weights_of(mixture.model), ids, mixture.new_cache())
    assert found.weight_bytes == 4 * (BESIDE_EXPERTS + 3 * 8 + 5 * 8 + PICKED * ONE_EXPERT)
    assert found.operations == 2 * 5 * (BESIDE_EXPERTS + PICKED * ONE_EXPERT)


def test_experts_that_cannot_be_seen_are_all_counted_and_it_is_said(mixture):
    class Unseen(type(mixture.model.model.layers[0].mlp.experts)):
        def __call__(self, *arguments):
            return self.forward(*arguments)

    mixture.model.model.layers[0].mlp.experts.__class__ = Unseen
    found = counted(mixture, rows=1)
    assert found.weight_bytes == 4 * (BESIDE_EXPERTS + 3 * 8 + 8 + EXPERTS * ONE_EXPERT)
    assert found.note == ALL_EXPERTS


def test_watching_experts_leaves_no_hook_behind(mixture):
    counted(mixture)
    assert not mixture.model.model.layers[0].mlp.experts._forward_pre_hooks


def test_of_a_model_that_sees_only_what_text_needs_is_read():
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8}
    text = heads | {"vocab_size": VOCAB, "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 64}
    vision = heads | {"image_size": 28, "patch_size": 14}
    model = AutoModelForCausalLM.from_config(Gemma3Config(text_config=text, vision_config=vision))
    read = sum(tensor.numel() for tensor in model.get_decoder().parameters())
    assert weights_of(model).every == 4 * read < 4 * sum(tensor.numel() for tensor in model.parameters())
