"""Every form gives the plain product, and a model whose layers use them is the model it was."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from specworkbench.engine.calibration import Calibration
from specworkbench.engine.products import (
    FORMS,
    ROWS,
    Product,
    ProductLinear,
    describe_products,
    drop_products,
    products_of,
    use_products,
    with_product,
)
from tests.engine.toy_products import LLAMA, by_turns, close

OUT, WIDTH = 96, 160


def weight_and_bias(biased: bool, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(OUT, WIDTH, generator=generator).to(dtype)
    return weight, torch.randn(OUT, generator=generator).to(dtype) if biased else None


def of_form(form: str, weight, bias=None, sources=()) -> Product:
    return Product(weight, bias, sources, dict.fromkeys(ROWS, form))


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("biased", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_plain_product_for_any_number_of_rows(form, biased, threads):
    weight, bias = weight_and_bias(biased)
    product = of_form(form, weight, bias)
    for rows in (*range(17), 64, 65, 200):
        x = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(rows))
        ours = product(x)
        assert ours.shape == (rows, OUT) and ours.is_contiguous()
        assert close(ours, functional.linear(x, weight, bias))


@pytest.mark.parametrize("form", FORMS)
def test_inputs_may_lie_in_memory_as_they_like(form):
    weight, bias = weight_and_bias(True)
    product, generator = of_form(form, weight, bias), torch.Generator().manual_seed(1)
    for n in (1, 2, 5):
        turned = torch.randn(WIDTH, n, generator=generator).t()
        every_other = torch.randn(2 * n, WIDTH, generator=generator)[::2]
        part = torch.randn(n, 2 * WIDTH, generator=generator)[:, WIDTH:]
        for x in (turned, every_other, part):
            assert close(product(x), functional.linear(x, weight, bias))


@pytest.mark.parametrize("form", ["turned", "plain_blocks", "turned_blocks"])
def test_the_forms_without_onednn_know_float64(form):
    weight, bias = weight_and_bias(True, torch.float64)
    for rows in (1, 2, 9):
        x = torch.randn(rows, WIDTH, dtype=torch.float64)
        assert torch.allclose(of_form(form, weight, bias)(x), functional.linear(x, weight, bias), atol=1e-12)


def test_rows_are_computed_by_the_form_compared_at_the_next_higher_number():
    names = ["turned_blocks", "turned", "packed", "packed", "onednn", "plain", "plain_blocks"]
    forms = dict(zip(ROWS, names, strict=True))
    product = Product(*weight_and_bias(True), forms=forms)
    assert [product.form(rows) for rows in (1, 2, 4, 5, 6, 9, 10, 16, 17, 64, 65, 1000)] == [
        "turned_blocks", "turned", "packed", "packed", "onednn", "onednn", "plain", "plain", "plain_blocks",
        "plain_blocks", "plain_blocks", "plain_blocks",
    ]  # fmt: skip
    for rows, name in forms.items():
        form = FORMS[name]
        x = torch.randn(rows, WIDTH)
        assert torch.equal(product(x), form.compute(x, form.prepare(product.weight), product.bias))


def test_the_stated_memory_is_that_of_the_packed_copies():
    weight, bias = weight_and_bias(True)
    packed, free = of_form("packed", weight, bias), of_form("turned_blocks", weight, bias)
    assert free.packed is None and free.packed_bytes == 0
    assert packed.packed_bytes == torch.ops.mkldnn._nbytes(packed.packed)
    assert 0 <= packed.packed_bytes - weight.nbytes < 64 * WIDTH * 4  # rows are filled up
    assert describe_products([packed, free, packed])["packed_bytes"] == 2 * packed.packed_bytes


def test_the_process_grows_by_the_stated_memory():
    psutil = pytest.importorskip("psutil")
    weight = torch.randn(4096, 4096)
    of_form("packed", torch.randn(256, 256))(torch.randn(1, 256))
    before = psutil.Process().memory_info().rss
    product = of_form("packed", weight)
    grown = psutil.Process().memory_info().rss - before
    assert 0.9 * product.packed_bytes < grown < 1.2 * product.packed_bytes


def test_a_packed_copy_follows_its_weight():
    weight, _ = weight_and_bias(False)
    product, x = of_form("packed", weight), torch.randn(5, WIDTH)
    weight.mul_(2.0)
    assert close(product(x), functional.linear(x, weight))


def test_a_packed_copy_follows_the_parameters_that_its_weight_consists_of():
    weight, _ = weight_and_bias(False)
    halves = [nn.Parameter(torch.empty(0), requires_grad=False) for _ in range(2)]
    for half, view in zip(halves, weight.split(OUT // 2), strict=True):
        half.data = view
    product, x = of_form("packed", weight, sources=halves), torch.randn(5, WIDTH)
    halves[1].mul_(2.0)
    assert close(product(x), functional.linear(x, weight))


def test_forms_are_described_in_runs_of_rows():
    forms = dict(zip(ROWS, ["turned_blocks", "turned", "turned", "packed", "packed", "packed", "packed"], strict=True))
    said = describe_products([Product(torch.randn(OUT, WIDTH), forms=forms), Product(torch.randn(8, WIDTH))])
    assert said["forms"] == {f"{OUT}x{WIDTH}": "turned_blocks 1, turned 2-3, packed 4+", f"8x{WIDTH}": "plain 1+"}
    assert said["threads"] == torch.get_num_threads()


# ------------------------------------------------------------------- in the models of transformers

MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA)),
    "llama, tied": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**LLAMA, num_key_value_heads=2)),
    "phi": lambda: PhiForCausalLM(PhiConfig(**LLAMA)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=64, n_embd=96, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
    ),
}


@pytest.fixture(params=MODELS)
def pair(request, monkeypatch):
    """A model and the same with its layers sped up; every layer counts as large, and every form occurs."""
    monkeypatch.setattr("specworkbench.engine.calibration.SMALL", 1)
    monkeypatch.setattr("specworkbench.engine.calibration.WORTH", 0.0)
    torch.manual_seed(0)
    plain = MODELS[request.param]().eval()
    sped_up = copy.deepcopy(plain)
    use_products(sped_up, Calibration(torch.float32, torch.get_num_threads(), measure=by_turns))
    assert isinstance(sped_up.get_output_embeddings(), ProductLinear)
    return plain, sped_up


def test_every_linear_layer_is_sped_up_and_nothing_else(pair):
    linear = [module for module in pair[1].modules() if isinstance(module, nn.Linear)]
    assert all(type(module) is ProductLinear for module in linear) and len(products_of(pair[1])) == len(linear)


def test_the_logits_are_those_of_the_untouched_model_in_batches_too(pair):
    for batch, n in ((1, 1), (1, 2), (1, 5), (3, 1), (2, 4), (4, 30)):
        ids = torch.randint(0, 64, (batch, n), generator=torch.Generator().manual_seed(n))
        with torch.no_grad():
            plain, sped_up = (model(input_ids=ids).logits for model in pair)
        assert torch.allclose(sped_up, plain, rtol=1e-4, atol=1e-5)


def test_generate_of_transformers_gives_the_same_tokens(pair):
    ids = torch.randint(0, 64, (1, 7), generator=torch.Generator().manual_seed(0))
    plain, sped_up = (model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=0) for model in pair)
    assert torch.equal(plain, sped_up)


def test_parameters_keep_their_names_and_values_and_are_saved_as_before(pair, tmp_path):
    plain, sped_up = pair
    assert [name for name, _ in plain.named_parameters()] == [name for name, _ in sped_up.named_parameters()]
    assert [name for name, _ in plain.named_modules()] == [name for name, _ in sped_up.named_modules()]
    ours, theirs = sped_up.state_dict(), plain.state_dict()
    assert list(ours) == list(theirs) and all(torch.equal(ours[name], theirs[name]) for name in theirs)
    sped_up.save_pretrained(tmp_path)
    again = type(plain).from_pretrained(tmp_path)
    assert all(torch.equal(value, theirs[name]) for name, value in again.state_dict().items())
    tied = [model.get_input_embeddings().weight is model.get_output_embeddings().weight for model in pair]
    assert tied[0] == tied[1]


def test_a_training_step_changes_it_as_it_changes_the_untouched_model(pair):
    ids = torch.randint(0, 64, (2, 6), generator=torch.Generator().manual_seed(0))
    for model in pair:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    for ours, theirs in zip(pair[1].parameters(), pair[0].parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        plain, sped_up = (model(input_ids=ids[:1]).logits for model in pair)
    assert torch.allclose(sped_up, plain, rtol=1e-3, atol=1e-4)  # packed copies are those of the new weights


def test_dropping_the_products_leaves_ordinary_layers(pair):
    drop_products(pair[1])
    layers = [module for module in pair[1].modules() if isinstance(module, nn.Linear)]
    assert all(type(layer) is nn.Linear and "product" not in vars(layer) for layer in layers)
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(pair[0](input_ids=ids).logits, pair[1](input_ids=ids).logits)


def test_copies_and_pickles_are_ordinary_models(pair):
    ids = torch.tensor([[1, 2, 3]])
    for copied in (copy.deepcopy(pair[1]), pickle.loads(pickle.dumps(pair[1]))):
        assert not products_of(copied)
        assert torch.equal(copied(input_ids=ids).logits, pair[0](input_ids=ids).logits)
    stored = io.BytesIO()
    torch.save(pair[1], stored)
    stored.seek(0)
    assert not products_of(torch.load(stored, weights_only=False))


def test_a_layer_that_is_given_other_weights_computes_with_them(pair):
    ids, models = torch.tensor([[1, 2, 3]]), pair
    for model in models:
        head = model.get_output_embeddings()
        head.weight = nn.Parameter(head.weight.detach() * 2.0)
    with torch.no_grad():
        plain, sped_up = (model(input_ids=ids).logits for model in models)
        assert torch.allclose(sped_up, plain, rtol=1e-4, atol=1e-5)
        plain, sped_up = (model.double()(input_ids=ids).logits for model in models)
        assert torch.allclose(sped_up, plain, rtol=1e-9, atol=1e-9)


def test_it_can_be_compiled(pair):
    ids = torch.tensor([[1, 2, 3]])
    layer = pair[1].get_output_embeddings()
    x = torch.randn(3, layer.in_features)
    with torch.no_grad():
        compiled = torch.compile(layer, backend="eager", fullgraph=True)(x)
        assert close(compiled, functional.linear(x, layer.weight, layer.bias))
        assert torch.allclose(pair[0](input_ids=ids).logits, pair[1](input_ids=ids).logits, rtol=1e-4, atol=1e-5)


def test_layers_that_another_library_has_hooked_are_left_alone(monkeypatch):
    monkeypatch.setattr("specworkbench.engine.calibration.SMALL", 1)
    layers = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 32))
    layers[0].forward = lambda x: functional.linear(x, layers[0].weight)
    use_products(layers, Calibration(torch.float32, torch.get_num_threads(), measure=by_turns))
    assert [type(layer) for layer in layers] == [nn.Linear, ProductLinear]


def test_a_layer_beside_another_shares_its_parameters():
    layer = nn.Linear(WIDTH, OUT)
    other = with_product(layer, of_form("packed", layer.weight, layer.bias))
    assert type(layer) is nn.Linear and other.weight is layer.weight
    x = torch.randn(2, 3, WIDTH)
    with torch.no_grad():
        assert close(other(x), layer(x)) and not torch.equal(other(x), layer(x) + 1)
