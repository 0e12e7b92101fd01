"""A language model says which forms compute it, and leaves out those that it is told to leave out."""

import pytest
import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from specworkbench.engine.calibration import Calibration
from specworkbench.engine.loading import load_model
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.products import ProductLinear, products_of
from specworkbench.engine.proposers import make_proposer
from specworkbench.engine.truncated import TruncatedModel
from tests.engine.toy_products import LLAMA, by_turns, close
from tests.engine.toys import toy_tokenizer


@pytest.fixture
def chosen_forms(monkeypatch):
    """Models are calibrated as `by_turns` has it, without any timing."""
    monkeypatch.setattr("specworkbench.engine.calibration.SMALL", 1)
    monkeypatch.setattr("specworkbench.engine.calibration.WORTH", 0.0)
    monkeypatch.setattr(
        "specworkbench.engine.models.calibration_here",
        lambda dtype: Calibration(dtype, torch.get_num_threads(), measure=by_turns),
    )


def language_model(**options) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(LlamaForCausalLM(LlamaConfig(**LLAMA | {"vocab_size": 8})), toy_tokenizer(8), "toy", **options)


@pytest.mark.parametrize("fused", [True, False])
def test_a_trace_says_which_forms_computed_it_and_what_they_add(chosen_forms, fused):
    model = language_model(fused=fused)
    said = model.describe()["products"]
    assert said["packed_bytes"] == sum(torch.ops.mkldnn._nbytes(product.packed) for product in model.products) > 0
    words = "plain 1, turned 2, plain_blocks 3, turned_blocks 4-5, onednn 6-9, packed 10-16, turned 17+"
    assert said["forms"]["288x96" if fused else "96x96"] == words


@pytest.mark.parametrize("fused", [True, False])
def test_switched_off_every_product_is_plain(chosen_forms, fused):
    on, off = language_model(fused=fused), language_model(fused=fused, products=False)
    assert off.describe()["products"] is None and off.describe()["forward"] == on.describe()["forward"]
    assert all(product.packed is None and set(product.forms.values()) == {"plain"} for product in off.products)
    assert not products_of(off.model)
    for n in (1, 3, 12):
        ours, theirs = (model.forward(torch.arange(n) % 8, model.new_cache()).logits for model in (on, off))
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_last_language_model_made_of_a_model_decides(chosen_forms):
    first = language_model(fused=False)
    assert products_of(first.model)
    LanguageModel(first.model, first.tokenizer, "again", fused=False, products=False)
    assert not products_of(first.model)


def test_a_fused_model_is_left_as_transformers_made_it(chosen_forms):
    model = language_model()
    assert model.products and not products_of(model.model)


@pytest.mark.parametrize("fused", [True, False])
def test_the_head_is_the_output_matrix(chosen_forms, fused):
    model = language_model(fused=fused)
    hidden = torch.randn(3, 96)
    with torch.no_grad():
        expected = functional.linear(hidden, model.model.lm_head.weight)
        assert isinstance(model.head, ProductLinear) and close(model.head(hidden), expected)
        assert close(model.head(hidden[None]), expected[None])
    hidden.requires_grad_()
    model.head(hidden).sum().backward()  # heads are trained through it
    assert torch.allclose(hidden.grad, model.model.lm_head.weight.sum(0).expand(3, -1), atol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
def test_layers_by_themselves_compute_as_their_model_does(chosen_forms, fused):
    target = language_model(fused=fused)
    held = [product.packed for product in target.products]
    truncated = TruncatedModel(target, (0,))
    assert truncated.describe()["products"]["forms"] == target.describe()["products"]["forms"] or not fused
    assert all(one is other for one, other in zip(held, [product.packed for product in target.products], strict=True))
    assert truncated.forward(torch.arange(4), truncated.new_cache()).logits.shape == (4, 8)


@pytest.mark.parametrize("options", [{}, {"fused": False}, {"products": False}, {"fused": False, "products": False}])
def test_a_draft_is_loaded_as_its_target_is(chosen_forms, options, tmp_path):
    target = language_model(**options)
    target.model.save_pretrained(tmp_path)
    target.tokenizer.save_pretrained(tmp_path)
    draft = make_proposer("draft_model", target=target, draft=str(tmp_path)).draft
    assert draft.options == target.options
    said = [model.describe() for model in (target, draft)]
    assert said[0]["forward"] == said[1]["forward"] and said[0]["products"] == said[1]["products"]


def test_the_embedded_pair_loads_with_and_without():
    ids = torch.arange(5)
    for fused in (True, False):
        on, off = (load_model("embedded", device="cpu", fused=fused, products=products) for products in (True, False))
        assert (on.describe()["products"] is None, off.describe()["products"] is None) == (False, True)
        ours, theirs = (model.forward(ids, model.new_cache()).logits for model in (on, off))
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3)
