"""Weights in int8: near what they were, smaller, told in the manifest, and a target that speculation is lossless to."""

import pytest
import torch
from torch import nn

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, load_model, make_proposer
from specworkbench.engine.proposers import proposer_named
from specworkbench.engine.quantised import Int8Linear, by_row, quantise
from specworkbench.errors import InputError

WEIGHTS = {"draft_model": "embedded/draft-s", "layer_skip": "", "eagle": "embedded/eagle"}


@pytest.fixture(scope="module")
def target():
    return load_model("embedded", quantisation="int8")


def test_a_row_is_nearly_its_whole_numbers_times_its_scale():
    x = torch.randn(5, 64) * torch.logspace(-3, 3, 5).unsqueeze(1)
    whole, scale = by_row(x)
    assert whole.dtype == torch.int8 and (whole.float() * scale - x).abs().le(0.5001 * scale).all()
    assert not by_row(torch.zeros(2, 8))[0].any()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 32), (7, 32), (2, 3, 32)])
def test_a_layer_gives_nearly_what_it_gave(bias, shape):
    torch.manual_seed(0)
    layer, x = nn.Linear(32, 48, bias=bias), torch.randn(shape)
    before, after = layer(x), Int8Linear(layer)(x)
    assert after.shape == before.shape and after.dtype == before.dtype
    assert (after - before).norm() / before.norm() < 0.02


def test_all_layers_but_the_output_matrix_are_int8_and_the_manifest_says_so(target):
    model, whole = target.model, load_model("embedded")
    layers = [module for module in model.modules() if isinstance(module, Int8Linear)]
    assert len(layers) == 8 * 7 and isinstance(model.get_output_embeddings(), nn.Linear)
    assert target.describe()["quantisation"] == "int8" and whole.describe()["quantisation"] == "none"
    assert target.parameters == whole.parameters
    assert target.describe()["forward"] == "transformers"  # it is not what the fused forward knows


def test_its_rows_are_near_those_of_the_whole_model_and_not_equal(target):
    ids, whole = torch.arange(1, 65), load_model("embedded")
    p, q = (torch.softmax(model.forward(ids, model.new_cache()).logits, -1) for model in (target, whole))
    tv = (p - q).abs().sum(-1) / 2
    assert 0 < tv.mean() < 0.05


@pytest.mark.parametrize("name", WEIGHTS)
def test_speculation_gives_the_quantised_targets_own_output(target, name):
    kind = proposer_named(name)
    draft = kind.load(WEIGHTS[name], target) if kind.weights else None
    settings = DecodeSettings(max_new_tokens=24, sampling=SamplingSettings(temperature=0), ignore_eos=True)
    plain = Decoder(target, settings=settings).run("def mean(values):\n").token_ids
    proposer = make_proposer(name, target=target, draft=draft)
    assert Decoder(target, proposer, settings=settings).run("def mean(values):\n").token_ids == plain


def test_what_cannot_be_quantised_is_refused():
    with pytest.raises(InputError, match="int4"):
        load_model("embedded", quantisation="int4")
    with pytest.raises(InputError, match="for the CPU"):
        quantise(nn.Linear(2, 2), "int8", "toy", torch.device("cuda"))
    with pytest.raises(InputError, match="compiled"):
        load_model("embedded", quantisation="int8", engine="compiled")
