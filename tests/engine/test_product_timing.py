"""The timing is fair: correct forms only, each on cold weights, all in turn, the fastest run of each."""

from itertools import pairwise

import pytest
import torch
from torch.nn import functional

from specworkbench.engine.product_timing import (
    COLD_BYTES,
    LAYERS,
    LEAST_TURNS,
    TURNS,
    cold_weights,
    forget_weights,
    measured,
)
from specworkbench.engine.products import FORMS, ROWS, Form

SHAPE = (64, 128)


@pytest.fixture(autouse=True)
def forgotten():
    yield
    forget_weights()


class FakeTime:
    """A clock that only forms move; `waiting`: the part of a run in which this thread does not run."""

    def __init__(self):
        self.now = self.worked = 0.0
        self.runs = []

    def form(self, name, seconds, compute=functional.linear, waiting=0.0):
        def run(x, weight, bias):
            took = seconds(x.shape[0], self.runs) if callable(seconds) else seconds
            self.now += took
            self.worked += took * (1 - waiting)
            self.runs.append((name, x.shape[0], weight.data_ptr()))
            return compute(x, weight, bias)

        return Form(lambda weight: weight, run)

    def measured(self, forms, threads=2, shape=SHAPE):
        return measured(shape, torch.float32, threads, forms, clock=lambda: self.now, working=lambda: self.worked)


def plain_of(time, seconds=3e-6):
    return time.form("plain", seconds)


def test_times_are_those_of_the_clock_in_microseconds():
    time = FakeTime()
    forms = {"plain": plain_of(time), "turned": time.form("turned", lambda rows, runs: rows * 1e-6)}
    times = time.measured(forms)
    assert list(times) == list(ROWS)
    assert all(of_form == {"plain": 3.0, "turned": float(rows)} for rows, of_form in times.items())


def test_the_least_time_counts():
    time = FakeTime()
    uneven = time.form("turned", lambda rows, runs: 2e-6 if len(runs) % 4 else 9e-6)
    assert time.measured({"plain": plain_of(time), "turned": uneven})[1]["turned"] == 2.0


@pytest.mark.parametrize(
    "fault",
    [
        lambda y: y * (1 + 1e-3),
        lambda y: y.index_fill(-1, torch.tensor([3]), 0.0),
        lambda y: y.roll(1, dims=0) if len(y) > 1 else y,
        lambda y: y + float("nan"),
        lambda y: y.t(),
        lambda y: y.bfloat16().float(),
    ],
    ids=["scaled", "a column lost", "rows exchanged", "nan", "not turned back", "rounded to bfloat16"],
)
def test_a_form_with_another_result_is_dropped_however_fast(fault):
    time = FakeTime()
    wrong = time.form("turned", 1e-9, lambda x, weight, bias: fault(functional.linear(x, weight, bias)))
    times = time.measured({"plain": plain_of(time), "turned": wrong, "onednn": FORMS["turned"]})
    assert all("turned" not in times[rows] and "onednn" in times[rows] for rows in ROWS if rows > 1)


def test_a_form_that_fails_is_dropped():
    def fails(*_):
        raise RuntimeError("not on this processor")

    time = FakeTime()
    forms = {"plain": plain_of(time), "packed": Form(fails, functional.linear), "onednn": Form(lambda w: w, fails)}
    assert all(of_form.keys() == {"plain"} for of_form in time.measured(forms).values())


def test_the_real_forms_agree_with_the_plain_one():
    for dtype, known in ((torch.float32, set(FORMS)), (torch.float64, set(FORMS) - {"onednn", "packed"})):
        times = measured((96, 160), dtype, 1)
        assert all(of_form.keys() == known for of_form in times.values())


def test_weights_that_cannot_be_divided_are_not_computed_in_blocks():
    assert all("turned_blocks" not in of_form for of_form in measured((97, 64), torch.float32, 1).values())


def test_forms_run_in_turn_each_on_the_next_weight():
    time = FakeTime()
    forms = {name: time.form(name, 1e-6) for name in ("plain", "turned", "onednn")}
    time.measured(forms, shape=(256, 256))
    timed = [run for run in time.runs if run[1] == 5][3:]  # after the comparison
    assert [name for name, *_ in timed] == list(forms) * TURNS
    assert len({address for *_, address in timed}) == min(LAYERS, len(timed))
    assert all(one != other for (*_, one), (*_, other) in pairwise(timed))


def test_slow_forms_are_given_up_and_long_times_taken_less_often():
    time = FakeTime()
    forms = {"plain": plain_of(time), "turned": time.form("turned", 1.0)}
    time.measured(forms)
    timed = [name for name, rows, _ in time.runs if rows == 5][2:]
    assert timed.count("turned") == 1 and timed.count("plain") == LEAST_TURNS


def test_a_busy_machine_is_noticed_but_one_thread_can_be_timed_there():
    time = FakeTime()
    forms = {"plain": time.form("plain", 4e-6, waiting=0.5)}
    assert time.measured(forms) is None and {rows for _, rows, _ in time.runs} == {1}
    assert time.measured(forms, threads=1)[1] == {"plain": 2.0}


def test_threads_are_as_told_while_it_is_timed_and_as_before_afterwards():
    before, seen = torch.get_num_threads(), []
    time = FakeTime()
    watched = time.form("plain", 1e-6, lambda *a: seen.append(torch.get_num_threads()) or functional.linear(*a))
    time.measured({"plain": watched}, threads=before + 1)
    assert set(seen) == {before + 1} and torch.get_num_threads() == before


def test_random_numbers_of_others_are_not_touched():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    measured(SHAPE, torch.float32, 1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("shape", [(64, 64), (50257, 768), (1003, 20000), (7, 2**20), (17, 2**20), (151936, 1536)])
def test_weights_are_many_and_together_larger_than_a_cache(shape):
    weights = cold_weights(shape, torch.float32)
    assert 2 <= len(weights) <= LAYERS and len({weight.data_ptr() for weight in weights}) == len(weights)
    size = sum(weight.nbytes for weight in weights)
    assert len(weights) == LAYERS or size >= COLD_BYTES / 2
    block = 8 * torch.get_num_threads()
    assert all(weight.shape[1] == shape[1] and weight.shape[0] % block == shape[0] % block for weight in weights)
    assert all(0 < weight.shape[0] <= shape[0] for weight in weights)
    assert all(weight.is_contiguous() and weight.data_ptr() % 64 == 0 for weight in weights)
    assert size <= max(COLD_BYTES, 2 * 4 * shape[1] * block)
