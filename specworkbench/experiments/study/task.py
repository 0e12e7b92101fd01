"""`Task`: one cell with all that decoding it needs, so that any worker can. No torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache

from specworkbench.experiments.rows import ALL
from specworkbench.experiments.study.grid import Study, StudyCell
from specworkbench.paths import is_embedded
from specworkbench.workloads import Prompt, load_prompts

ID_DIGITS = 12
WITHOUT_EFFECT = ("traces",)
"""Settings that change nothing of what is measured."""


@dataclass(frozen=True)
class Task:
    """A cell of a study and its prompts. id: a digest of both; name: the cell in words."""

    id: str
    name: str
    study: Study
    cell: StudyCell
    prompts: tuple[Prompt, ...]

    @property
    def planned_tokens(self) -> int:
        """Tokens that are decoded at most, plainly and speculatively."""
        return 2 * len(self.prompts) * self.cell.max_new_tokens


def task_of(study: Study, cell: StudyCell) -> Task:
    """Raises `InputError` where the prompts cannot be read, or have no such bucket."""
    prompts = prompts_of(source_of(study, cell.target), study.per_bucket, cell.bucket)
    settings = {name: value for name, value in study.settings().items() if name not in WITHOUT_EFFECT}
    whole = {"cell": asdict(cell), "settings": settings, "prompts": [asdict(prompt) for prompt in prompts]}
    return Task(digest(whole), study.name_of(cell), study, cell, prompts)


def source_of(study: Study, target: str) -> str:
    """Where the prompts for a target come from: as the study says, else the shipped set that suits it."""
    return study.prompts or ("embedded" if is_embedded(target) else "general")


@lru_cache(maxsize=64)
def prompts_of(source: str, per_bucket: int, bucket: str) -> tuple[Prompt, ...]:
    """The prompts of a bucket, or of all."""
    return tuple(load_prompts(source, buckets=None if bucket == ALL else bucket, per_bucket=per_bucket or None))


def digest(value: object) -> str:
    """The first digits of the SHA-256 of a value's JSON: equal for equal values, on any machine."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]
