"""Bytes of weights are counted once, and what a proposer shares with the target is the target's."""

import pytest

from specworkbench.engine import make_proposer
from specworkbench.experiments.costs.memory import weight_bytes
from tests.engine import toy_heads
from tests.engine.proposer_cases import CASES
from tests.engine.toys import toy_model


def nbytes(module):
    return sum(tensor.numel() * tensor.element_size() for tensor in module.parameters())


@pytest.fixture(scope="module")
def target():
    return toy_model(6, context=64)


def buffers(model):
    return sum(tensor.numel() * tensor.element_size() for tensor in model.model.buffers())


def test_a_models_weights_are_its_parameters_and_buffers(target):
    assert weight_bytes(target) == {"weight_bytes": nbytes(target.model) + buffers(target), "copy_bytes": 0}


def test_tied_weights_count_once():
    tied = toy_model(6, context=64, tie_word_embeddings=True)
    apart = toy_model(6, context=64)
    saved = weight_bytes(apart)["weight_bytes"] - weight_bytes(tied)["weight_bytes"]
    assert saved == tied.model.lm_head.weight.numel() * 8


def test_a_draft_model_has_its_own_and_a_lookup_none(target):
    draft = toy_model(6, seed=1, layers=1, context=64)
    proposer = make_proposer("draft_model", target=target, draft=draft)
    assert weight_bytes(target, proposer) == weight_bytes(draft)
    assert weight_bytes(target, make_proposer("ngram"))["weight_bytes"] == 0


@pytest.mark.parametrize("settings", [{"layers": 1}, {"subset": (1,)}])
def test_layers_of_the_target_are_no_weights_of_a_proposer(target, settings):
    proposer = make_proposer("layer_skip", target=target, **settings)
    assert weight_bytes(target, proposer)["weight_bytes"] <= buffers(target)


def test_a_head_has_its_own_parameters_but_not_what_it_borrows():
    case = next(case for case in CASES if case.name == "eagle")
    target = case.target()
    head = toy_heads.eagle(target)
    proposer = make_proposer("eagle", target=target, draft=head)
    found = weight_bytes(target, proposer)["weight_bytes"]
    assert nbytes(head) <= found <= nbytes(head) + 4096, "its parameters, and small tables"
    assert found < weight_bytes(target)["weight_bytes"] + nbytes(head)
