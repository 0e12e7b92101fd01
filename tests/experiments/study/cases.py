"""Studies of the toy models, and rows as cells leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specworkbench.experiments.study import Study
from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.task import Task, task_of
from specworkbench.experiments.study.worker import FINISHED, record
from tests.experiments.toys import write_prompts


def toy_study(toys: Path, **values: Any) -> Study:
    """Two proposers and two gammas on the toy target: four cells of three prompts, eight tokens each."""
    prompts = toys / "prompts.jsonl"
    if not prompts.exists():
        write_prompts(prompts)
    given = {
        "target": [str(toys / "target")], "proposer": [f"draft_model:{toys / 'draft'}", "ngram"], "gamma": [1, 2],
        "max_new_tokens": [8], "prompts": str(prompts), "ignore_eos": True,
    }  # fmt: skip
    return Study(**given | values)


def tasks_of(study: Study) -> list[Task]:
    return [task_of(study, cell) for cell in study.cells()]


def toy_row(task: Task, speedup: float = 2.0, seconds: float = 1.0) -> dict[str, Any]:
    """A finished cell's row, made up."""
    figures = dict.fromkeys([*MEASURES, *(end for pair in INTERVALS.values() for end in pair)], 0.5)
    figures |= {"speedup_measured": speedup, "speedup_low": speedup - 0.5, "speedup_high": speedup + 1, "tokens": 24}
    environment = {"host": "here", "device": "cpu", "cpu": "toy", "threads": 1, "specworkbench": "0", "torch": "0"}
    more = {"figures": figures, "lossless": True, "seconds": seconds, "environment": environment}
    return record(task, FINISHED) | more
