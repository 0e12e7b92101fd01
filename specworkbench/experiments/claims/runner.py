"""The claims' studies, decoded one after the other and distilled as they go. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specworkbench.experiments.bench import Stop
from specworkbench.experiments.claims.evidence import update
from specworkbench.experiments.study.dispatch import Tell
from specworkbench.experiments.study.executors import Executor
from specworkbench.experiments.study.grid import Study
from specworkbench.experiments.study.runner import Plan, Runner
from specworkbench.experiments.study.worker import FINISHED


class ClaimsRunner(Runner):
    """Runs a study and computes the evidence of each cell as soon as it is finished; keep_traces: else they go then."""

    def __init__(self, study: Study, folder: Path, executor: Executor, keep_traces: bool = False):
        super().__init__(study, folder, executor)
        self.keep_traces = keep_traces

    def run(self, plan: Plan, *, stop: Stop = lambda: False, tell: Tell = lambda sentence: None) -> Iterator[dict]:
        for row in super().run(plan, stop=stop, tell=tell):
            self.distil(row)
            yield row

    def distil(self, *rows: dict[str, Any]) -> None:
        """Also of rows that an earlier run left behind when it was killed."""
        update(self.store.folder, [row["id"] for row in rows if row["status"] == FINISHED], self.keep_traces)
