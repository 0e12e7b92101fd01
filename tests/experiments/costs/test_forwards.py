"""Forwards: every one is timed as often as any other, nothing stays in the caches, what is measured is kept."""

import gc
import weakref
from contextlib import closing

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from specworkbench.engine.models import LanguageModel
from specworkbench.errors import InputError
from specworkbench.experiments import machine
from specworkbench.experiments.costs import forwards
from specworkbench.experiments.costs.forwards import Forwards
from specworkbench.experiments.costs.measure import Costs
from specworkbench.experiments.costs.settings import WARM_UP, CostSettings
from specworkbench.experiments.machine import Gauge, last_level_cache, memory_buffer, multiplying, reading
from tests.engine.toys import toy_model, toy_tokenizer

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Small buffers and short timings: what they measure is not looked at here."""
    monkeypatch.setattr(machine, "SECONDS", 1e-5)
    monkeypatch.setattr(forwards, "memory_buffer", lambda device: 2**20)


@pytest.fixture(scope="module")
def target():
    return toy_model(context=128)


def measured(target, **settings):
    found = Costs(target, CostSettings(**settings))
    assert sum(1 for _ in found.run()) == found.planned
    return found.forwards


def test_every_forward_is_timed_equally_often_and_a_single_row_always(target):
    rows = measured(target, contexts=(20, 4), rows=(5, 3, 3), runs=7).rows()
    assert [(row["context"], row["rows"], row["runs"]) for row in rows] == [
        (context, n, 7) for context in (4, 20) for n in (1, 3, 5)
    ]
    for row in rows:
        assert 0 < row["ms_low"] <= row["ms"] <= row["ms_high"]
        plain = next(other for other in rows if (other["context"], other["rows"]) == (row["context"], 1))
        assert row["verify_cost"] == pytest.approx(row["ms"] / plain["ms"])


def test_each_forward_has_its_context_before_it_and_is_taken_back(target, monkeypatch):
    seen, forward = [], target.forward
    monkeypatch.setattr(
        target, "forward", lambda ids, cache, **more: seen.append((cache.length, len(ids))) or forward(ids, cache)
    )
    measured(target, contexts=(4, 20), rows=(1, 3), runs=2, limit=True)
    prefills, forwards = [call for call in seen if call[0] == 0], [call for call in seen if call[0]]
    assert prefills == [(0, 4), (0, 20)]
    assert set(forwards) == {(context, n) for context in (4, 20) for n in (1, 3)}


def test_who_comes_first_changes_from_turn_to_turn(target, monkeypatch):
    order, timed = [], Forwards._timed
    monkeypatch.setattr(
        Forwards, "_timed", lambda self, cell, cache: order.append(cell.rows) or timed(self, cell, cache)
    )
    measured(target, rows=(1, 2, 3), runs=2)
    turns = [tuple(order[start : start + 3]) for start in range(0, len(order), 3)]
    assert len(turns) == WARM_UP + 2 and {turn[0] for turn in turns} == {1, 2, 3}


def test_without_the_limit_nothing_of_the_machine_is_measured(target):
    found = measured(target, rows=(1,), runs=1)
    assert found.limit() is None and list(found.rows()[0])[-1] == "verify_cost_high"


def test_the_limit_is_measured_as_often_as_the_forwards(target):
    found = measured(target, rows=(1, 4), runs=3, limit=True)
    limit = found.limit()
    assert [limit[name]["runs"] for name in ("memory", "weights", "products")] == [3, 3, 3]
    assert limit["memory"]["size"] == 2**20
    assert limit["weights"]["size"] == found.rows()[0]["weight_bytes"]
    assert limit["bandwidth"] == max(limit["memory"]["best"], limit["weights"]["best"])
    assert limit["peak"] == limit["products"]["best"] >= limit["products"]["median"]


def test_weights_larger_than_the_buffer_need_no_buffer_of_their_own(target, monkeypatch):
    monkeypatch.setattr(forwards, "memory_buffer", lambda device: 2**12)
    limit = measured(target, rows=(1,), runs=1, limit=True).limit()
    assert limit["weights"] is None and limit["bandwidth"] == limit["memory"]["best"]


def test_buffers_are_released_when_all_is_measured_and_when_it_is_stopped(target, monkeypatch):
    buffers = []

    def watched(nbytes, device):
        gauge = reading(nbytes, device)
        buffers.append(weakref.ref(gauge.work.__self__))
        return gauge

    monkeypatch.setattr(forwards, "reading", watched)
    measured(target, rows=(1,), runs=1, limit=True)
    stopped = Costs(target, CostSettings(runs=5, limit=True))
    with closing(stopped.run()) as timings:
        next(timings)
        assert buffers[-1]() is not None
    gc.collect()
    assert len(buffers) == 4 and not any(buffer() is not None for buffer in buffers)


def test_of_a_sliding_window_only_the_tokens_in_it_are_read():
    """One head of 8 for keys and values, float32: from 8 tokens on a longer context adds nothing."""
    config = MistralConfig(
        vocab_size=5, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8, max_position_embeddings=64, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    target = LanguageModel(MistralForCausalLM(config), toy_tokenizer(5), "toy")
    rows = measured(target, contexts=(20, 40), rows=(1, 3), runs=1, limit=True).rows()
    read = {(row["context"], row["rows"]): row["cache_bytes"] // (2 * 8 * 4) for row in rows}
    assert read[20, 1] == read[40, 1] == read[20, 3] - 2 == read[40, 3] - 2 and 8 <= read[20, 1] <= 9


def test_what_was_measured_before_a_stop_is_kept(target):
    found = Costs(target, CostSettings(rows=(1, 2, 3), runs=5))
    with closing(found.run()) as timings:
        for _ in range(3 * WARM_UP + 4):
            next(timings)
    rows = found.forwards.rows()
    assert sorted(row["runs"] for row in rows) == [1, 1, 2]
    assert all(row["ms_low"] is None and row["verify_cost"] > 0 for row in rows)


def test_the_warm_up_counts_nowhere(target):
    found = Costs(target, CostSettings(rows=(1, 2), runs=1, limit=True))
    with closing(found.run()) as timings:
        for _ in range(2 * WARM_UP):
            next(timings)
    assert found.forwards.rows() == [] and found.forwards.limit() is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"contexts": (4, 0)}, "context is 0; a step has at least 1 token before it"),
        ({"rows": (5, -1)}, "rows is -1; a forward has at least 1 row"),
        ({"runs": 0}, "runs is 0"),
        ({"contexts": (124,), "rows": (1, 5)}, "124 tokens and a forward of 5 rows are 129 tokens.* 128 at most"),
    ],
)
def test_what_cannot_be_timed_is_refused(target, settings, said):
    with pytest.raises(InputError, match=said):
        Costs(target, CostSettings(**settings))


def test_the_context_may_be_filled_to_its_end(target):
    assert measured(target, contexts=(123,), rows=(5,), runs=1).rows()[-1]["context"] == 123


def test_a_gauge_counts_the_work_of_all_its_repeats(monkeypatch):
    calls = []
    gauge = Gauge(lambda: calls.append(0), 10, 1, CPU, repeats=4)
    monkeypatch.setattr(machine, "timed", lambda work, device: work() and 2.0)
    assert gauge.rate() == 4 * 10 / 2 and len(calls) == 4


def test_reading_reads_all_of_a_buffer_that_was_written():
    gauge = reading(1000, CPU)
    assert (gauge.amount, gauge.size) == (1000, 1000)
    assert gauge.work().item() == 250, "a sum of 250 ones"


def test_products_count_two_operations_a_term(monkeypatch):
    monkeypatch.setattr(machine, "SIDES", (8, 16))
    monkeypatch.setattr(machine, "timed", lambda work, device: 1.0)
    gauge = multiplying(torch.float64, CPU)
    assert (gauge.size, gauge.amount) == (8, 2 * 8**3) and gauge.work().dtype == torch.float64


def test_the_buffer_for_the_memory_is_well_above_the_last_level_cache(monkeypatch):
    monkeypatch.setattr(machine, "last_level_cache", lambda device: None)
    assert memory_buffer(CPU) == machine.LEAST_BUFFER
    monkeypatch.setattr(machine, "last_level_cache", lambda device: 2**30)
    assert memory_buffer(CPU) == 8 * 2**30


def test_the_last_level_cache_is_known_or_none():
    size = last_level_cache(CPU)
    assert size is None or 2**14 <= size <= 2**32
    assert last_level_cache(torch.device("meta")) is None
