"""Where cells are decoded: in this process, or one process a GPU. All executors look alike to `dispatch`.

An executor has `places`, each of which decodes one cell at a time with models of its own that stay loaded. What is
asked of a place comes back as a future; a future that fails with one of `LOST` says that its worker has died.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

import torch

from specworkbench.errors import InputError
from specworkbench.experiments.bench import Stop
from specworkbench.experiments.study.worker import Worker
from specworkbench.experiments.workers import begin_process, check_jobs, interrupts_blocked, leaving


class Executor(Protocol):
    """What `dispatch` needs. kind: in words; LOST: the exceptions that say that a worker has died."""

    kind: str
    places: int
    LOST: tuple[type[BaseException], ...]

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...

    def ask(self, place: int, method: str, *arguments: Any) -> Future:
        """Have the worker at a place run a method of `Worker`."""
        ...

    def replace(self, place: int) -> None:
        """Put a new worker where one has died."""
        ...

    def stop(self) -> None:
        """What is being decoded is not wanted any more."""
        ...


class Serial:
    """This process decodes one cell after the other. stop: asked after each round."""

    kind, places = "this process", 1
    LOST: tuple[type[BaseException], ...] = ()

    def __init__(self, stop: Stop = lambda: False):
        self._worker, self._stop = Worker(), stop

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, place: int, method: str, *arguments: Any) -> Future:
        done: Future = Future()
        more = (self._stop,) if method == "decode" else ()
        done.set_result(getattr(self._worker, method)(*arguments, *more))
        return done

    def replace(self, place: int) -> None:
        raise AssertionError("this process cannot be replaced")

    def stop(self) -> None:
        pass


class Processes:
    """Processes side by side, one a GPU; on a CPU they share the threads. Ctrl-C is left to this process."""

    LOST = (BrokenProcessPool,)

    def __init__(self, jobs: int, device: str = ""):
        check_jobs(jobs)
        self.gpus = visible_gpus() if device in ("", "cuda") else []
        if self.gpus and jobs > len(self.gpus):
            raise InputError(f"jobs is {jobs}, and there are {len(self.gpus)} GPUs; take at most one process a GPU")
        self.places = jobs
        self.kind = f"{jobs} processes" + (", each with a GPU" if self.gpus else "")

    def __enter__(self) -> Processes:
        self._context = multiprocessing.get_context("spawn")
        self._leave = self._context.Event()
        self._pools = [self._begun(place) for place in range(self.places)]
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)

    def ask(self, place: int, method: str, *arguments: Any) -> Future:
        try:
            return self._pools[place].submit(_in_process, method, *arguments)
        except BrokenProcessPool as error:  # died while it had nothing to do
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    def replace(self, place: int) -> None:
        self._pools[place].shutdown(wait=False)
        self._pools[place] = self._begun(place)

    def stop(self) -> None:
        self._leave.set()

    def _begun(self, place: int) -> ProcessPoolExecutor:
        threads = max(1, torch.get_num_threads() // self.places)
        gpu = self.gpus[place] if self.gpus else None
        pool = ProcessPoolExecutor(1, self._context, _begin, (threads, self._leave, gpu))
        with interrupts_blocked():  # a process that Ctrl-C meets while it starts would print a traceback
            pool.submit(os.getpid)
        return pool


def visible_gpus() -> list[str]:
    """The CUDA devices that processes can be given, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return named.split(",")[:count] if named else [str(index) for index in range(count)]


_worker: Worker


def _begin(threads: int, leave: Any, gpu: str | None) -> None:
    """In a new process."""
    global _worker
    if gpu is not None:  # before anything of CUDA is begun
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    begin_process(threads, leave)
    _worker = Worker()


def _in_process(method: str, *arguments: Any) -> Any:
    more = (leaving,) if method == "decode" else ()
    return getattr(_worker, method)(*arguments, *more)
