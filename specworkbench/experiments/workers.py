"""`Workers`: processes that decode side by side; how many there are never changes what comes out."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.synchronize import Event
from typing import TypeVar

import torch

from specworkbench.errors import InputError

__all__ = ["check_jobs", "Workers"]

Result = TypeVar("Result")

IN_HAND = 2
"""Tasks of each process that have been begun or wait for it."""


def check_jobs(jobs: int) -> None:
    """Raises `InputError` for fewer jobs than 1.

    >>> check_jobs(2)
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; at least 1 process must decode")


class Workers:
    """Processes that decode, each with the models loaded once; with one job, this process itself.

    with Workers(jobs) as workers:
        for evidence in workers.map(evidence_of, tasks):
            ...

    Results come in the order of the tasks, whoever finished first, so that which tokens are judged never depends on how
    long they took. The processes share this one's threads, leave Ctrl-C to it, and end when it ends, however it does.
    Raises `InputError` for fewer jobs than 1, and where a process dies.

    >>> with Workers() as workers:
    ...     print(list(workers.map(divmod, [(7, 2), (9, 4)])))
    [(3, 1), (2, 1)]
    """

    def __init__(self, jobs: int = 1):
        check_jobs(jobs)
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._leave = context.Event()
            threads = max(1, torch.get_num_threads() // self.jobs)
            self._pool = ProcessPoolExecutor(self.jobs, context, begin_process, (threads, self._leave))
            with interrupts_blocked():  # a process that Ctrl-C meets while it starts would print a traceback
                for _ in range(self.jobs):
                    self._pool.submit(os.getpid)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._leave.set()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[..., Result], tasks: Iterable[tuple]) -> Iterator[Result]:
        """`work(*task)` for each task, of which there may be no end: few are begun before their turn."""
        if self._pool is None:
            yield from (work(*task) for task in tasks)
            return
        tasks = iter(tasks)
        waiting: deque[Future] = deque()
        try:
            waiting.extend(self._submit(work, task) for task in islice(tasks, self.jobs * IN_HAND))
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(self._submit(work, task) for task in islice(tasks, 1))
                yield done
        except BrokenProcessPool as error:
            raise InputError(
                f"one of the {self.jobs} processes that decode has died, perhaps for want of memory; "
                "take fewer, or one job"
            ) from error
        finally:
            for future in waiting:
                future.cancel()

    def _submit(self, work: Callable[..., Result], task: tuple) -> Future:
        return self._pool.submit(_unless_leaving, work, *task)


_leaving: Event


def begin_process(threads: int, leave: Event) -> None:
    """In a new process, before anything else: so many threads, and an end with its parent; leave: see `leaving`."""
    global _leaving
    _leaving = leave
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def leaving() -> bool:
    """In such a process: whether what it decodes is not wanted any more."""
    return _leaving.is_set()


def _end_with_the_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def _unless_leaving(work: Callable[..., Result], *task: object) -> Result | None:
    """What was begun too early and is not wanted any more is not done."""
    return None if leaving() else work(*task)


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Ctrl-C waits; to processes that are started meanwhile it never comes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
