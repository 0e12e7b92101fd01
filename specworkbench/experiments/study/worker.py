"""`Worker`: decodes cells, with at most one target and its proposers loaded, which stay for the next cell."""

from __future__ import annotations

import gc
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import torch

import specworkbench
from specworkbench.engine import Decoder
from specworkbench.engine.loading import quiet_transformers
from specworkbench.errors import InputError
from specworkbench.experiments.bench import Stop
from specworkbench.experiments.collector import little_garbage
from specworkbench.experiments.environment import environment_of
from specworkbench.experiments.models import Models
from specworkbench.experiments.study.figures import figures
from specworkbench.experiments.study.grid import StudyCell
from specworkbench.experiments.study.outline import Outline, outline
from specworkbench.experiments.study.parts import (
    PLAIN,
    SPECULATIVE,
    decode_settings,
    decoders,
    prompts_as_ids,
    target_of,
)
from specworkbench.experiments.study.task import Task
from specworkbench.trace import trace_bytes

WARM_UP_ROUNDS = 16
FINISHED, FAILED = "finished", "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: its row, JSON-ready, and its traces as the bytes of files, by name."""

    id: str
    row: dict[str, Any]
    traces: dict[str, bytes]


class Worker:
    """Decodes one cell after the other. threads: of torch, as they are when None."""

    def __init__(self, threads: int | None = None):
        quiet_transformers()
        if threads is not None:
            torch.set_num_threads(threads)
        self._loaded: tuple[Any, ...] = ()
        self._models: Models | None = None

    def greet(self) -> dict[str, Any]:
        """Who this is: host, process, version."""
        return {"host": platform.node(), "pid": os.getpid(), "version": specworkbench.__version__}

    def decode(self, task: Task, stop: Stop = lambda: False) -> Outcome | None:
        """Decode a cell; None where `stop`, asked after each round, ended it. What is refused is a failed cell."""
        try:
            return self._decoded(task, stop)
        except InputError as error:
            return failure(task, str(error))
        except torch.OutOfMemoryError as error:
            self._forget()
            said = str(error).partition("\n")[0]
            return failure(task, f"the device has too little memory for this cell ({said}); take smaller models")

    def outline(self, tasks: Sequence[Task]) -> Outline:
        """Which tasks cannot be decoded on this machine."""
        return outline(tasks)

    def seconds_per_token(self, task: Task, tokens: int) -> float:
        """The time of a plain token after the first prompt of a task: for an estimate."""
        models = self._open(task)
        ids = prompts_as_ids(models.target, task)[0]
        settings = replace(decode_settings(task), max_new_tokens=tokens, ignore_eos=True)
        for _ in range(2):  # the first one warms up
            started = perf_counter()
            found = Decoder(models.target, settings=settings).run(ids)
        return (perf_counter() - started) / len(found.token_ids)

    def _decoded(self, task: Task, stop: Stop) -> Outcome | None:
        models, started = self._open(task), perf_counter()
        prompts = prompts_as_ids(models.target, task)
        sides = decoders(models, task)
        warm_up(decoders(models, task), prompts)
        with little_garbage():
            if not decode_in_turns(sides, task, prompts, stop):
                return None
        traces = {side: decoder.trace() for side, decoder in sides.items()}
        row = record(task, FINISHED) | {
            "figures": figures(traces[PLAIN], traces[SPECULATIVE]),
            "lossless": traces[SPECULATIVE].manifest["rule"]["lossless"],
            "prompt_tokens": sum(map(len, prompts)),
            "seconds": perf_counter() - started,
            "parameters": models.target.parameters,
            "environment": environment_of(models.target) | {"host": platform.node()},
        }
        kept = traces if task.study.traces else {}
        return Outcome(task.id, row, {f"{side}.trace": trace_bytes(trace) for side, trace in kept.items()})

    def _open(self, task: Task) -> Models:
        """The models of a task. Those of another target are given back first."""
        wanted = (*task.cell.models, task.study.device, task.study.fused, task.study.products)
        if wanted != self._loaded:
            self._forget()
            self._models, self._loaded = Models(target_of(task)), wanted
        return self._models

    def _forget(self) -> None:
        self._models, self._loaded = None, ()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def decode_in_turns(sides: dict[str, Decoder], task: Task, prompts: list[list[int]], stop: Stop) -> bool:
    """Every prompt by both sides, who comes first changing from prompt to prompt; False where `stop` ended it."""
    for number, (prompt, ids) in enumerate(zip(task.prompts, prompts, strict=True)):
        for side in (PLAIN, SPECULATIVE) if number % 2 == 0 else (SPECULATIVE, PLAIN):
            try:
                found = sides[side].run(ids, id=prompt.id, bucket=prompt.bucket, on_round=lambda _: not stop())
            except InputError as error:
                raise InputError(f"prompt {prompt.id!r}: {error}") from error
            if found.stop_reason == "stopped":
                return False
    return True


def warm_up(sides: dict[str, Decoder], prompts: list[list[int]]) -> None:
    """Decode the first prompt shortly, having compiled what any of them needs where steps are compiled."""
    for decoder in sides.values():
        if decoder.target.engine == "compiled":
            for ids in prompts:
                decoder.start(ids).prepare()
        decoder.run(prompts[0], on_round=lambda step: step.index + 1 < WARM_UP_ROUNDS)


def record(task: Task, status: str) -> dict[str, Any]:
    """The beginning of every row."""
    axes = {name: getattr(task.cell, name) for name in StudyCell.__dataclass_fields__}
    return {
        "id": task.id,
        "status": status,
        "axes": axes,
        "prompts": [prompt.id for prompt in task.prompts],
        "planned_tokens": task.planned_tokens,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def failure(task: Task, why: str) -> Outcome:
    """A cell that could not be decoded, and why."""
    return Outcome(task.id, record(task, FAILED) | {"error": why}, {})
