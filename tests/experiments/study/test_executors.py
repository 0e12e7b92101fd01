"""Processes: as many as GPUs, models stay loaded, a killed one loses no cell, and a stop is heard."""

import os
import signal

import pytest
import torch

from specworkbench.errors import InputError
from specworkbench.experiments.study import executors
from specworkbench.experiments.study.dispatch import dispatch
from specworkbench.experiments.study.executors import Processes, Serial, visible_gpus
from specworkbench.experiments.study.worker import FINISHED
from tests.experiments.study.cases import tasks_of, toy_study


def test_a_process_is_killed_while_it_has_a_cell_and_the_cell_is_decoded_again(toys):
    tasks, told = tasks_of(toy_study(toys, proposer="ngram", gamma=[1, 2, 3, 4], max_new_tokens=100)), []
    with Processes(2) as both:
        pids = [both.ask(place, "greet").result()["pid"] for place in range(2)]
        found = []
        for outcome in dispatch(both, tasks, tell=told.append):
            if not found:
                os.kill(pids[1], signal.SIGKILL)
            found.append(outcome)
        both.stop()
        assert both.ask(0, "decode", tasks[0]).result() is None, "given up after a round"
    assert sorted(outcome.id for outcome in found) == sorted(task.id for task in tasks)
    assert all(outcome.row["status"] == FINISHED for outcome in found)
    assert len(told) == 1 and "decoded again" in told[0]
    threads = {outcome.row["environment"]["threads"] for outcome in found}
    assert threads == {max(1, torch.get_num_threads() // 2)}


def test_this_process_asks_whether_to_stop_after_each_round(toys):
    asked = []
    here = Serial(lambda: bool(asked.append(1)) or len(asked) > 4)
    assert here.ask(0, "decode", tasks_of(toy_study(toys))[0]).result() is None and len(asked) == 5


def test_a_process_has_one_of_the_gpus_there_are(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert visible_gpus() == Processes(2).gpus == ["5", "7"]
    assert Processes(4, device="cpu").gpus == []
    with pytest.raises(InputError, match="jobs is 3, and there are 2 GPUs"):
        Processes(3)


def test_a_gpu_is_chosen_before_anything_of_cuda_begins(monkeypatch):
    seen = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(executors, "begin_process", lambda *_: seen.append(os.environ["CUDA_VISIBLE_DEVICES"]))
    monkeypatch.setattr(executors, "_worker", None, raising=False)
    executors._begin(1, None, "1")
    assert seen == ["1"]


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_process_is_refused(jobs):
    with pytest.raises(InputError, match=f"jobs is {jobs}"):
        Processes(jobs)
