"""Processes that decode: the order of results, tasks without end, and how they end themselves."""

import os
import signal
import subprocess
import sys
import time
from itertools import count, islice

import pytest
import torch

from specworkbench.errors import InputError
from specworkbench.experiments.workers import IN_HAND, Workers

ORPHANS = """
import os, sys, time
from specworkbench.experiments.workers import Workers
if __name__ == "__main__":
    with Workers(2) as workers:
        print(*{pid for pid in workers.map(os.getpid, [()] * 12)}, flush=True)
        time.sleep(100)
"""


def late(number):
    """The first tasks take longest."""
    time.sleep(0.3 if number < 2 else 0.0)
    return number, os.getpid()


def die(number):
    os._exit(3)


def refuse(number):
    raise InputError(f"{number} does not fit")


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def gone(pids, seconds=20.0):
    """Whether all of them end within that time."""
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    return not any(map(alive, pids))


@pytest.fixture(scope="module")
def two():
    with Workers(2) as workers:
        yield workers


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_job_is_refused(jobs):
    with pytest.raises(InputError, match=f"jobs is {jobs}"):
        Workers(jobs)


def test_one_job_is_this_process():
    with Workers(1) as workers:
        assert list(workers.map(late, [(5,), (6,)])) == [(5, os.getpid()), (6, os.getpid())]


def test_results_come_in_the_order_of_the_tasks(two):
    numbers, pids = zip(*two.map(late, [(number,) for number in range(10)]), strict=True)
    assert numbers == tuple(range(10))
    assert os.getpid() not in pids


def test_few_tasks_are_begun_before_their_turn(two):
    taken = []
    tasks = ((number,) for number in count() if taken.append(number) is None)
    found = two.map(late, tasks)
    assert [number for number, _ in islice(found, 5)] == [0, 1, 2, 3, 4]
    found.close()
    assert len(taken) <= 5 + 2 * IN_HAND


def test_processes_share_the_threads_and_leave_interrupts_to_the_parent(two):
    threads = max(1, torch.get_num_threads() // 2)
    assert list(two.map(torch.get_num_threads, [()])) == [threads]
    assert signal.SIGINT in next(two.map(signal.pthread_sigmask, [(signal.SIG_BLOCK, ())]))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_sentence_of_a_process_is_a_sentence_here(two):
    with pytest.raises(InputError, match="7 does not fit"):
        list(two.map(refuse, [(7,)]))
    assert next(two.map(late, [(8,)]))[0] == 8, "and the process goes on"


def test_a_process_that_dies_is_a_sentence():
    with Workers(2) as workers, pytest.raises(InputError, match="has died"):
        list(workers.map(die, [(0,)]))


def test_processes_end_with_their_parent_even_if_it_is_killed(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=os.environ)
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert pids and all(map(alive, pids))
    parent.kill()
    parent.wait()
    assert gone(pids)
