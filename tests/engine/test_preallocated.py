"""A preallocated cache holds what was written, through rollbacks, growth and branches."""

import pytest
import torch

from specworkbench.engine.preallocated import LEAST_CAPACITY
from tests.engine.toys import toy_model

MODEL = toy_model(7, layers=3)
TOKENS = torch.arange(4 * LEAST_CAPACITY) % 7


def row(tokens: torch.Tensor) -> torch.Tensor:
    return MODEL.forward(tokens, MODEL.new_cache(), rows=1).logits


@pytest.mark.parametrize("steps", [(1, 1, 1), (3, 5, 2), (LEAST_CAPACITY - 1, 1, 1), (LEAST_CAPACITY, 9, 4)])
def test_the_rows_of_steps_are_those_of_one_forward_also_where_it_grows(steps):
    cache, done = MODEL.new_cache(), 0
    for n in steps:
        logits = MODEL.forward(TOKENS[done : done + n], cache).logits
        done += n
        assert torch.allclose(logits[-1:], row(TOKENS[:done]), atol=1e-10)
    assert cache.length == done


def test_a_rollback_moves_the_length_and_no_tensor():
    cache = MODEL.new_cache()
    MODEL.forward(TOKENS[:9], cache)
    tensors, before = [*cache.keys, *cache.values], cache.keys[0].clone()
    cache.rollback(4)
    assert cache.length == 5
    assert all(one is other for one, other in zip(tensors, [*cache.keys, *cache.values], strict=True))
    assert torch.equal(cache.keys[0], before)
    assert torch.allclose(MODEL.forward(TOKENS[5:7], cache).logits[-1:], row(TOKENS[:7]), atol=1e-10)


@pytest.mark.parametrize("room", [1, LEAST_CAPACITY, LEAST_CAPACITY + 1, 3 * LEAST_CAPACITY])
def test_there_is_room_for_what_was_reserved_and_what_is_held_stays(room):
    cache = MODEL.new_cache()
    MODEL.forward(TOKENS[:5], cache)
    cache.reserve(room)
    assert cache.capacity >= room and cache.capacity.bit_count() == 1
    tensors = list(cache.keys)
    MODEL.forward(TOKENS[5 : max(room, 6)], cache)
    assert all(one is other for one, other in zip(tensors, cache.keys, strict=True))
    assert torch.allclose(MODEL.forward(TOKENS[max(room, 6)][None], cache).logits, row(TOKENS[: max(room, 6) + 1]))


def test_a_cache_of_the_first_layers_writes_where_the_next_token_will_overwrite():
    cache = MODEL.new_cache()
    MODEL.forward(TOKENS[:5], cache)
    held = [states[:, :5].clone() for states in (*cache.keys, *cache.values)]
    shared = cache.first(2)
    with torch.inference_mode():
        MODEL._fused.only((0, 1))(TOKENS[5:8], shared)
    shared.grew(3)
    assert (shared.length, cache.length) == (8, 5)
    assert all(map(torch.equal, [states[:, :5] for states in (*cache.keys, *cache.values)], held))
    assert torch.allclose(MODEL.forward(TOKENS[20:22], cache).logits[-1:], row(torch.cat([TOKENS[:5], TOKENS[20:22]])))


def test_bytes_count_what_is_held_not_what_there_is_room_for():
    cache = MODEL.new_cache()
    assert cache.nbytes == 0
    MODEL.forward(TOKENS[:6], cache)
    states = (*cache.keys, *cache.values)
    per_token = sum(one.shape[0] * one.shape[2] * one.element_size() for one in states)
    assert cache.nbytes == 6 * per_token
    cache.rollback(2)
    assert cache.nbytes == 4 * per_token
