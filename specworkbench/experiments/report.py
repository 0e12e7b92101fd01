"""`Report`: what a bench has decoded, as rows and as the tables of its figures; and report.json."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specworkbench.experiments.bench import Bench
from specworkbench.experiments.environment import environment_of
from specworkbench.experiments.files import to_json, write_whole
from specworkbench.experiments.rows import Traces, rows

__all__ = ["Report", "report_of"]


@dataclass(frozen=True)
class Report:
    """rows: as in report.json; environment: what they depend on; traces: what they were computed from.

    >>> report = Report(rows=[{"proposer": "ngram"}], environment={}, traces={})
    >>> "ngram" in report.as_json()
    True
    """

    rows: list[dict[str, Any]]
    environment: dict[str, Any]
    traces: Traces

    def as_json(self) -> str:
        """`{"rows": [...], "environment": {...}}`, as saved and printed."""
        return to_json({"rows": self.rows, "environment": self.environment}, indent=1)

    def save(self, out: Path) -> Path:
        """Write report.json into the folder; the path."""
        return write_whole(out / "report.json", self.as_json() + "\n")


def report_of(bench: Bench, prompts: str) -> Report:
    """The report on what a bench has finished, be it all or not. prompts: where they come from, in words.

    >>> from specworkbench.experiments.plan import Plan
    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> plan = Plan("embedded", (ProposerSpec("ngram"),), (Prompt("mine", "text", "a b a b"),), max_new_tokens=8)
    >>> with TemporaryDirectory() as folder:
    ...     bench = Bench(plan, Path(folder))
    ...     _ = bench.run()
    ...     found = report_of(bench, prompts="one of my own")
    >>> [(row["proposer"], row["bucket"]) for row in found.rows]
    [('ngram', 'text'), ('ngram', 'all'), ('ngram', 'text'), ('ngram', 'all')]
    """
    plan = bench.plan
    environment = environment_of(bench.target) | {
        "target": bench.target.describe(),
        "proposers": list(dict.fromkeys(configuration.label for configuration in bench.traces)),
        "prompts": {
            "source": prompts,
            "number": len(plan.prompts),
            "buckets": dict(Counter(prompt.bucket for prompt in plan.prompts)),
        },
        "chat_template": plan.chat,
        "max_new_tokens": plan.max_new_tokens,
        "seed": plan.seed,
        "runs": {"planned": bench.planned, "finished": bench.finished, "per_cell": 1},
        "interrupted": bench.finished < bench.planned,
        "traces": [str(path.relative_to(bench.out)) for path in bench.files],
    }
    return Report(rows(bench.traces), environment, bench.traces)
