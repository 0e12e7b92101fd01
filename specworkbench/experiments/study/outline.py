"""What cannot be, found before anything runs: every cell is put together on the meta device, without weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from specworkbench.engine.loading import quiet_transformers
from specworkbench.errors import InputError
from specworkbench.experiments.models import Models
from specworkbench.experiments.plan import ProposerSpec
from specworkbench.experiments.study.parts import SPECULATIVE, decoders, prompts_as_ids, target_of
from specworkbench.experiments.study.task import Task

WITHOUT_WEIGHTS = "meta"


@dataclass(frozen=True)
class Outline:
    """left_out: why a cell cannot be decoded, by its task's id; parameters: of the targets, by name."""

    left_out: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)


def outline(tasks: Iterable[Task]) -> Outline:
    """Which tasks cannot be decoded: models that are not there, a proposer or rule that does not suit, no room.

    Only shapes, vocabularies and lengths are looked at; what first shows in the weights, or while compiling, fails
    later, alone.
    """
    quiet_transformers()
    found, once = Outline(), _Once()
    for task in tasks:
        try:
            _put_together(task, once, found)
        except InputError as error:
            found.left_out[task.id] = str(error)
    return found


class _Once:
    """What is made but once, or refused but once."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            try:
                self._made[key] = make()
            except InputError as error:
                self._made[key] = error
        if isinstance(self._made[key], InputError):
            raise self._made[key]
        return self._made[key]


def _put_together(task: Task, once: _Once, found: Outline) -> None:
    """Raises `InputError` where the cell's longest prompt cannot be begun."""
    cell = task.cell
    models = once(cell.models, lambda: Models(target_of(task, device=WITHOUT_WEIGHTS, engine="eager")))
    found.parameters[cell.target] = models.target.parameters
    once((cell.models, cell.proposer), lambda: models.proposer(ProposerSpec.parse(cell.proposer)))
    prompts = once((cell.target, cell.bucket, cell.prompt_length), lambda: prompts_as_ids(models.target, task))
    decoders(models, task)[SPECULATIVE].start(max(prompts, key=len))
