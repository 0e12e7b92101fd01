"""Where cells are decoded: on a Ray cluster, one actor a GPU, or on machines without any a few cores each.

The driver alone reads and writes the folder of the study: prompts go to the workers, rows and traces come back.
Targets and drafts are loaded by their names, which must mean the same on every machine. Ray gives its workers a low
priority (niceness 15); a cluster begun with RAY_worker_niceness=0 in its environment measures beside other programs as
any other process would.
"""

from __future__ import annotations

import logging
import os
import socket
from concurrent.futures import Future
from typing import Any

from specworkbench.errors import InputError
from specworkbench.experiments.study.grid import counted
from specworkbench.experiments.study.worker import Worker

LOCAL = "local"
ANSWER_SECONDS = 10.0


class Cluster:
    """A Ray cluster as an executor: each place is an actor whose models stay loaded.

    address: auto, HOST:PORT, or local, which starts one on this machine. device: the study's; cpu takes no GPU.
    cpus_per_worker: of each actor on machines without GPUs; all of the smallest machine's when None. A program that is
    connected to Ray already stays so. Raises `InputError` where Ray is not installed, nothing answers, or no machine is
    large enough.
    """

    def __init__(self, address: str, device: str = "", cpus_per_worker: int | None = None):
        if cpus_per_worker is not None and cpus_per_worker < 1:
            raise InputError(f"cpus_per_worker is {cpus_per_worker}; a worker needs at least 1 core")
        self.address, self.device, self.cpus_per_worker = address, device, cpus_per_worker

    def __enter__(self) -> Cluster:
        self.ray = _imported()
        self.LOST = (
            self.ray.exceptions.RayActorError,
            self.ray.exceptions.ObjectLostError,
            self.ray.exceptions.WorkerCrashedError,
        )
        self._connected = not self.ray.is_initialized()
        if self._connected:
            self._connect()
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        if self._connected:
            self.ray.shutdown()

    def ask(self, place: int, method: str, *arguments: Any) -> Future:
        return getattr(self._actors[place], method).remote(*arguments).future()

    def replace(self, place: int) -> None:
        self.ray.kill(self._actors[place])
        self._actors[place] = self._new()

    def stop(self) -> None:
        for actor in self._actors:
            self.ray.kill(actor)
        self._actors = []

    def _connect(self) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
        local = {"include_dashboard": False} if self.address == LOCAL else {}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        try:
            _check_answers(self.address)
            self.ray.init(address=self.address, **quiet, **local)
        except (OSError, RuntimeError, ValueError, self.ray.exceptions.RayError) as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(
                f"cannot join the Ray cluster at {self.address!r}: {said}; start one with ray start --head, or take "
                "--ray local"
            ) from error

    def _begin(self) -> None:
        """One actor for each GPU or, without any, for so many cores."""
        self._actors: list[Any] = []
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        gpus = 0 if self.device == "cpu" else sum(int(node.get("GPU", 0)) for node in nodes)
        if gpus:
            self._options, self._threads, self.places, each = {"num_gpus": 1}, None, gpus, "a GPU"
        else:
            cores = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
            self._threads = self.cpus_per_worker or min(cores, default=1)
            self.places = sum(count // self._threads for count in cores)
            self._options, each = {"num_cpus": self._threads}, counted(self._threads, "core")
            if not self.places:
                raise InputError(
                    f"no machine of the Ray cluster has {self._threads} cores (they have {cores}); give fewer with "
                    "--cpus-per-worker"
                )
        self.kind = f"{counted(self.places, 'Ray worker')}, each with {each}, on {counted(len(nodes), 'machine')}"
        self._actors = [self._new() for _ in range(self.places)]

    def _new(self) -> Any:
        actor = self.ray.remote(Worker).options(**self._options, scheduling_strategy="SPREAD", max_restarts=0)
        return actor.remote(self._threads)


def _check_answers(address: str) -> None:
    """Raises `OSError` where nobody listens at HOST:PORT: Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


def _imported() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("Ray is not installed: pip install 'specworkbench[cluster]'") from error
    return ray
