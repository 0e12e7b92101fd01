"""How long the cells that are left will take: from those that are finished, before that from a probe. No torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from specworkbench.experiments.study.grid import MODEL_AXES, counted
from specworkbench.experiments.study.task import Task

PROBE_TOKENS = 16


class Forecast:
    """Seconds a planned token took in cells of the same models and proposer, else of the same models, else in any, by
    the target's parameters. The time of loading and compiling is not counted.

    parameters: of each target, by name, as far as known.
    """

    def __init__(self, parameters: Mapping[str, int], rows: Iterable[Mapping[str, Any]] = ()):
        self.parameters = parameters
        self.finished = 0
        self._seconds: defaultdict[Hashable, float] = defaultdict(float)
        self._work: defaultdict[Hashable, float] = defaultdict(float)
        self._probe = ""
        for row in rows:
            self.learn(row)

    def learn(self, row: Mapping[str, Any]) -> None:
        """A row of a finished cell; failed ones teach nothing."""
        if row["status"] != "finished":
            return
        axes = row["axes"]
        self._add(tuple(axes[name] for name in MODEL_AXES), axes["proposer"], row["planned_tokens"], row["seconds"])
        self.finished += 1

    def probed(self, task: Task, seconds_per_token: float) -> None:
        """Plain tokens of a task's target took so long each: speculative ones are taken to be as fast."""
        self._add(task.cell.models, None, 1, seconds_per_token)
        self._probe = f"{PROBE_TOKENS} plain tokens of {task.cell.target}, {1e3 * seconds_per_token:.1f} ms each"

    def seconds(self, tasks: Iterable[Task], places: int = 1) -> float | None:
        """What these tasks will take, decoded in so many places; None where nothing is known."""
        each = [self._of(task) for task in tasks]
        return None if None in each else sum(each) / places

    @property
    def basis(self) -> str:
        """What the forecast rests on, in words."""
        if not self.finished:
            return self._probe
        return counted(self.finished, "finished cell")

    def _add(self, models: tuple, proposer: str | None, tokens: int, seconds: float) -> None:
        size = self.parameters.get(models[0], 1)
        for key, work in (((models, proposer), tokens), (models, tokens), (None, tokens * size)):
            self._seconds[key] += seconds
            self._work[key] += work

    def _of(self, task: Task) -> float | None:
        models, tokens = task.cell.models, task.planned_tokens
        for key in ((models, task.cell.proposer), models, None):
            if key in self._work:
                work = tokens if key is not None else tokens * self.parameters.get(task.cell.target, 1)
                return work * self._seconds[key] / self._work[key]
        return None


def duration(seconds: float) -> str:
    """'40 s', '3 min', '2.5 h'"""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
