"""The store of features: what it holds is the target's own, and a killed run loses nothing of what it finished."""

import json

import numpy as np
import pytest

# ruff: noqa: E402 - imported only where torch is installed
torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")

from specworkbench.equivalence.toys import toy_model
from specworkbench.errors import InputError
from specworkbench.training.features import FeatureStore, StoreSettings

TARGET = toy_model(7)
SETTINGS = StoreSettings("toy", None, "text", layers=(1, -1), windows=5, length=8, k=3)


def window(number):
    return np.random.default_rng(number).integers(0, 7, SETTINGS.length)


def filled(folder, settings=SETTINGS):
    store = FeatureStore(folder, settings, TARGET)
    store.fill(TARGET, window, save_every=2)
    return store


def test_a_store_holds_the_targets_hidden_states_and_most_probable_tokens(tmp_path):
    batch = filled(tmp_path).batch(0, 5, 8)
    rows = batch.ids, batch.hidden[1], batch.hidden[-1], batch.top, batch.probs
    for ids, first, last, top, probs in zip(*rows, strict=True):
        forward = TARGET.forward(ids, TARGET.new_cache(), layers=(1, -1))
        assert torch.allclose(forward.hidden[1].float(), first, atol=2e-3)
        assert torch.allclose(forward.hidden[-1].float(), last, atol=2e-3)
        rows = forward.logits.softmax(-1)
        assert torch.equal(rows.topk(3, dim=-1).indices, top)
        assert torch.allclose(rows.gather(-1, top).float(), probs, atol=1e-3)


def test_every_window_comes_once_in_every_pass_in_another_order(tmp_path):
    store = filled(tmp_path)
    passes = [[tuple(store.batch(first + i, 1, 8).ids[0].tolist()) for i in range(5)] for first in (0, 5)]
    assert set(passes[0]) == set(passes[1]) == {tuple(window(i).tolist()) for i in range(5)}
    assert passes[0] != passes[1]


def test_what_a_killed_run_saved_is_not_computed_again(tmp_path):
    asked = []

    def killed(number):
        asked.append(number)
        if number == 3:
            raise KeyboardInterrupt
        return window(number)

    with pytest.raises(KeyboardInterrupt):
        FeatureStore(tmp_path, SETTINGS, TARGET).fill(TARGET, killed, save_every=2)
    resumed = FeatureStore(tmp_path, SETTINGS, TARGET)
    assert resumed.done == 2
    asked.clear()
    resumed.fill(TARGET, lambda number: asked.append(number) or window(number))
    assert asked == [2, 3, 4]
    whole = filled(tmp_path / "whole").batch(0, 5, 8)
    again = FeatureStore(tmp_path, SETTINGS, TARGET).batch(0, 5, 8)
    assert torch.equal(whole.hidden[-1], again.hidden[-1]) and torch.equal(whole.ids, again.ids)


def test_a_store_with_more_layers_and_windows_serves_one_that_wants_fewer(tmp_path):
    filled(tmp_path)
    fewer = StoreSettings("toy", None, "text", layers=(-1,), windows=2, length=8, k=3)
    store = FeatureStore(tmp_path, fewer, TARGET)
    assert store.settings.layers == (1, -1) and store.done == 5


@pytest.mark.parametrize("other", [{"length": 4}, {"target": "another"}, {"layers": (0,)}, {"windows": 9}])
def test_a_folder_with_another_store_is_refused_by_name(tmp_path, other):
    filled(tmp_path)
    wanted = StoreSettings(**{**vars(SETTINGS), **other})
    with pytest.raises(InputError, match=f"other settings.*{next(iter(other))}"):
        FeatureStore(tmp_path, wanted, TARGET)
    assert json.loads((tmp_path / "store.json").read_text())["length"] == 8


def test_hidden_states_too_large_for_float16_are_refused(tmp_path):
    loud = toy_model(7)
    loud.model.model.embed_tokens.weight.data.mul_(1e7)
    with pytest.raises(InputError, match="float16"):
        FeatureStore(tmp_path, SETTINGS, loud).fill(loud, window)


def test_token_counts_are_the_sum_of_the_probabilities(tmp_path):
    store = filled(tmp_path)
    batch = store.batch(0, 5, 8)
    counts = store.token_counts(7)
    assert counts[3] == pytest.approx(batch.probs[batch.top == 3].sum().item(), rel=1e-3)
