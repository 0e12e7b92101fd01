"""A study from its plan to its folder: what cannot be is left out, what is there is not done again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specworkbench.errors import InputError
from specworkbench.experiments.bench import Stop
from specworkbench.experiments.study.cluster import Cluster
from specworkbench.experiments.study.dispatch import Tell, dispatch, first_of, first_to_begin, last_line
from specworkbench.experiments.study.executors import Executor, Processes, Serial, visible_gpus
from specworkbench.experiments.study.forecast import PROBE_TOKENS, Forecast, duration
from specworkbench.experiments.study.grid import Study, chosen, counted, named, shown
from specworkbench.experiments.study.outline import Outline
from specworkbench.experiments.study.reading import checked
from specworkbench.experiments.study.store import Store
from specworkbench.experiments.study.table import read_study
from specworkbench.experiments.study.task import Task, digest, prompts_of, source_of, task_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Plan:
    """What is to be decoded of a study, and what is not.

    tasks: all cells that can be decoded; left_out: (name, why) of those that cannot; settled: rows of cells that are
    in the folder already; waiting: the tasks that are not; forecast: how long these will take in `places` places.
    """

    study: Study
    tasks: tuple[Task, ...]
    left_out: tuple[tuple[str, str], ...]
    settled: dict[str, dict[str, Any]]
    waiting: tuple[Task, ...]
    forecast: Forecast
    places: int
    where: str

    def lines(self) -> list[str]:
        """The plan in sentences."""
        axes = self.study.axes()
        grid = " x ".join(f"{len(axes[name])} {name}" for name in self.study.varying)
        fixed = {name: values[0] for name, values in axes.items() if len(values) == 1}
        size = " = ".join(filter(None, [counted(len(self.study.cells()), "cell"), grid]))
        said = ["; ".join(filter(None, [size, named(chosen(fixed))]))]
        said += [f"{name}: {', '.join(map(shown, axes[name]))}" for name in self.study.varying]
        for why, number in Counter(why for _, why in self.left_out).items():
            said.append(f"left out, {counted(number, 'cell')}: {why}")
        settled = Counter(row["status"] for row in self.settled.values())
        if settled:
            said.append(f"in the folder: {', '.join(f'{number} {status}' for status, number in settled.items())}")
        tokens = sum(task.planned_tokens for task in self.waiting)
        said.append(
            f"to decode: {counted(len(self.waiting), 'cell')}, plain and speculative interleaved, at most {tokens} "
            f"tokens, by {self.where}"
        )
        seconds = self.forecast.seconds(self.waiting, self.places)
        if seconds is not None and self.waiting:
            said.append(f"that takes about {duration(seconds)}, judged by {self.forecast.basis}")
        return said


class Runner:
    """Plans and runs a study in a folder."""

    def __init__(self, study: Study, folder: Path, executor: Executor, retry_failed: bool = False):
        self.study, self.store, self.executor, self.retry_failed = study, Store(folder), executor, retry_failed
        self.prompts = {
            source: digest([prompt.text for prompt in prompts_of(source, study.per_bucket, "all")])
            for source in sorted({source_of(study, target) for target in study.target})
        }
        self.store.check(study, self.prompts)

    def plan(self, *, stop: Stop = lambda: False, tell: Tell = lambda sentence: None) -> Plan:
        """What there is to do. stop, tell: see `dispatch`.

        Raises `InputError` where no cell can be decoded, `KeyboardInterrupt` once `stop` says yes.
        """
        tasks, left_out = [], []
        for cell in self.study.cells():
            try:
                tasks.append(task_of(self.study, cell))
            except InputError as error:
                left_out.append((self.study.name_of(cell), str(error)))
        ask = self._asking(stop, tell)
        found: Outline = ask("outline", tasks)
        left_out += [(task.name, found.left_out[task.id]) for task in tasks if task.id in found.left_out]
        tasks = [task for task in tasks if task.id not in found.left_out]
        if not tasks:
            raise InputError(f"no cell of the study can be decoded: {left_out[0][1]}")
        rows, ids = self.store.rows(), {task.id for task in tasks}
        settled = {
            id: row for id, row in rows.items()
            if id in ids and not (self.retry_failed and row["status"] == "failed")
        }  # fmt: skip
        waiting = [task for task in tasks if task.id not in settled]
        forecast = Forecast(found.parameters, settled.values())
        if waiting and not forecast.finished:
            _probe(forecast, waiting[0], ask)
        return Plan(
            self.study, tuple(tasks), tuple(left_out), settled, tuple(waiting), forecast,
            max(1, min(self.executor.places, len(waiting))), self.executor.kind,
        )  # fmt: skip

    def run(self, plan: Plan, *, stop: Stop = lambda: False, tell: Tell = lambda sentence: None) -> Iterator[dict]:
        """Decode what is waiting; the row of each cell, once it is on disk. stop: see `dispatch`."""
        self.store.begin(self.study, self.prompts, [{"name": name, "why": why} for name, why in plan.left_out])
        for outcome in dispatch(self.executor, plan.waiting, stop=stop, tell=tell):
            self.store.write(outcome.row, outcome.traces)
            plan.forecast.learn(outcome.row)
            yield outcome.row

    def _asking(self, stop: Stop, tell: Tell) -> Callable[..., Any]:
        """Asks the first worker that has begun: what is looked at is looked at where the models are."""
        executor = self.executor
        place = first_to_begin(executor, stop, tell)

        def ask(method: str, *arguments: Any) -> Any:
            try:
                return first_of([executor.ask(place, method, *arguments)], stop, tell).result()
            except executor.LOST as error:
                raise InputError(f"a worker died as it looked at the study: {last_line(error)}") from error

        return ask


def _probe(forecast: Forecast, task: Task, ask: Callable[..., Any]) -> None:
    """A forecast is no reason to fail: whoever decodes the cell says what is wrong with it."""
    try:
        forecast.probed(task, ask("seconds_per_token", task, PROBE_TOKENS))
    except InputError:
        return


def run_study(
    study: Study,
    out: str | os.PathLike,
    *,
    jobs: int | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    on_row: Callable[[dict[str, Any]], None] = lambda row: None,
) -> pd.DataFrame:
    """Decode what is not yet finished of a study in the folder `out`, and read it back (`read_study`).

    jobs: processes, by default one a GPU, and one without any; ray: the address of a Ray cluster. on_row: called with
    the row of each cell once it is on disk. Raises `InputError` for what cannot be decoded.
    """
    study = checked(study)
    with executor_for(study, jobs, ray) as executor:
        runner = Runner(study, Path(out), executor, retry_failed)
        with runner.store.alone():
            for row in runner.run(runner.plan()):
                on_row(row)
    return read_study(out)


def executor_for(
    study: Study,
    jobs: int | None = None,
    ray: str | None = None,
    cpus_per_worker: int | None = None,
    stop: Stop = lambda: False,
) -> Executor:
    """This process, processes, or a Ray cluster. stop: what this process asks after each round."""
    if ray is not None:
        if jobs is not None:
            raise InputError(f"jobs is {jobs} beside a Ray cluster, which has its own workers; leave one of them out")
        return Cluster(ray, study.device, cpus_per_worker)
    if cpus_per_worker is not None:
        raise InputError(f"cpus_per_worker is {cpus_per_worker} without a Ray cluster; give the address of one")
    if jobs is None:
        jobs = max(1, len(visible_gpus())) if study.device in ("", "cuda") else 1
    return Serial(stop) if jobs == 1 else Processes(jobs, study.device)
