"""Cells to workers: each once, models stay where they are, a lost worker's cell is decoded again elsewhere."""

from collections import Counter
from concurrent.futures import Future

import pytest

from specworkbench import __version__
from specworkbench.errors import InputError
from specworkbench.experiments.study import Study
from specworkbench.experiments.study import dispatch as module
from specworkbench.experiments.study.dispatch import TRIES, dispatch, first_of, first_to_begin
from specworkbench.experiments.study.task import task_of
from specworkbench.experiments.study.worker import FAILED, FINISHED, Outcome, record

STUDY = Study(proposer=["ngram"], target=["a/b", "c/d"], gamma=[1, 2, 3], prompts="embedded", per_bucket=1)
TASKS = [task_of(STUDY, cell) for cell in STUDY.cells()]


class Died(Exception):
    """A worker that is lost."""


class Pretended:
    """An executor that only notes what it is asked. deaths: {name of a cell: how often its worker dies of it}."""

    kind, LOST = "nobody", (Died,)

    def __init__(self, places, deaths=None, version=__version__, unborn=()):
        self.places, self.deaths, self.version, self.unborn = places, Counter(deaths or {}), version, unborn
        self.decoded, self.replaced, self.stopped = [], [], False

    def ask(self, place, method, *arguments):
        future = Future()
        if method == "greet":
            if place in self.unborn:
                future.set_exception(Died("out of\nluck"))
            else:
                future.set_result({"host": "there", "version": self.version})
            return future
        task = arguments[0]
        self.decoded.append((place, task))
        if self.deaths[task.name] > 0:
            self.deaths[task.name] -= 1
            future.set_exception(Died())
        else:
            future.set_result(Outcome(task.id, record(task, FINISHED), {}))
        return future

    def replace(self, place):
        self.replaced.append(place)

    def stop(self):
        self.stopped = True


@pytest.mark.parametrize("places", [1, 2, 9])
def test_every_cell_comes_back_once(places):
    executor = Pretended(places)
    outcomes = list(dispatch(executor, TASKS))
    assert sorted(outcome.id for outcome in outcomes) == sorted(task.id for task in TASKS)
    assert len(executor.decoded) == len(TASKS)


def test_nothing_to_do_asks_nobody():
    executor = Pretended(2, unborn=(0, 1))
    assert list(dispatch(executor, [])) == []


def test_each_place_keeps_to_the_models_it_has_loaded():
    executor = Pretended(2)
    list(dispatch(executor, TASKS))
    targets = [{task.cell.target for at, task in executor.decoded if at == place} for place in (0, 1)]
    assert targets == [{"a/b"}, {"c/d"}]


def test_the_cell_of_a_lost_worker_is_decoded_again_and_told():
    told = []
    executor = Pretended(2, deaths={TASKS[1].name: 1, TASKS[4].name: 2})
    outcomes = list(dispatch(executor, TASKS, tell=told.append))
    assert sorted(outcome.id for outcome in outcomes) == sorted(task.id for task in TASKS)
    assert all(outcome.row["status"] == FINISHED for outcome in outcomes)
    assert len(executor.replaced) == len(told) == 3 and all("decoded again" in sentence for sentence in told)


def test_a_cell_that_kills_every_worker_has_failed_and_the_others_have_not():
    executor = Pretended(2, deaths={TASKS[2].name: 99})
    outcomes = {outcome.id: outcome.row for outcome in dispatch(executor, TASKS)}
    assert len(outcomes) == len(TASKS)
    assert [task.name for task in TASKS if outcomes[task.id]["status"] == FAILED] == [TASKS[2].name]
    assert f"died {TRIES} times" in outcomes[TASKS[2].id]["error"]
    assert Counter(task.id for _, task in executor.decoded)[TASKS[2].id] == TRIES


def test_a_stop_gives_up_what_is_being_decoded_and_hands_over_what_is_done():
    executor, seen = Pretended(1), []
    for outcome in dispatch(executor, TASKS, stop=lambda: len(seen) == 2):
        seen.append(outcome)
    assert len(seen) == 2 and executor.stopped and len(executor.decoded) == 2


def test_waiting_for_nobody_is_told_and_can_be_stopped(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    told = []
    with pytest.raises(KeyboardInterrupt):
        first_of([Future()], lambda: len(told) > 1, told.append)
    assert len(told) == 2 and "still waiting for a worker" in told[0]
    executor = Pretended(1)
    monkeypatch.setattr(executor, "ask", lambda *_: Future())
    assert list(dispatch(executor, TASKS, stop=lambda: len(told) > 3, tell=told.append)) == []
    assert len(told) == 4 and executor.stopped


def test_the_first_to_begin_is_found_among_those_that_die():
    executor = Pretended(3, unborn=(0, 2))
    assert first_to_begin(executor, lambda: False, print) == 1 and 1 not in executor.replaced
    told = []
    assert len(list(dispatch(executor, TASKS, tell=told.append))) == len(TASKS)
    assert {place for place, _ in executor.decoded} == {1} and all("without it" in sentence for sentence in told)
    with pytest.raises(InputError, match="died 3 times as it began"):
        first_to_begin(Pretended(1, unborn=(0,)), lambda: False, print)


def test_workers_that_cannot_begin_are_a_sentence():
    with pytest.raises(InputError, match="died 3 times as it began: luck"):
        list(dispatch(Pretended(1, unborn=(0,)), TASKS))
    with pytest.raises(InputError, match=r"the worker on there has specworkbench 0\.0\.1"):
        list(dispatch(Pretended(1, version="0.0.1"), TASKS))
