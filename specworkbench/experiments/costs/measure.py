"""All costs of one target: everything is timed once a turn, and who comes first changes from turn to turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from specworkbench.engine import LanguageModel, Proposer
from specworkbench.experiments.costs.forwards import Forwards
from specworkbench.experiments.costs.memory import weight_bytes
from specworkbench.experiments.costs.rounds import Rounds
from specworkbench.experiments.costs.settings import WARM_UP, CostSettings
from specworkbench.experiments.costs.table import CostTable
from specworkbench.experiments.environment import environment_of
from specworkbench.experiments.plan import rotated

__all__ = ["Costs"]


class Costs:
    """The costs of one target, as far as they have been measured: `run` measures, `table` tells.

    proposers: by label, those to be timed with it; with none at all, only forwards are. Raises `InputError` where
    something would go past the context of the target.

    >>> from specworkbench.engine import load_model
    >>> costs = Costs(load_model("embedded"), CostSettings(contexts=(8,), rows=(1, 2), runs=2))
    >>> sum(1 for _ in costs.run()) == costs.planned
    True
    >>> costs.table().step_ms(rows=2) > 0
    True
    """

    def __init__(self, target: LanguageModel, settings: CostSettings, proposers: Mapping[str, Proposer] | None = None):
        self.target, self.settings = target, settings
        self.forwards = Forwards(target, settings)
        self.rounds = None if proposers is None else Rounds(target, proposers, settings)
        self._jobs = [partial(self.forwards.measure, cell) for cell in self.forwards.cells]
        self._jobs += [] if self.rounds is None else [job.measure for job in self.rounds.jobs]

    @property
    def planned(self) -> int:
        """How often `run` yields."""
        return (WARM_UP + self.settings.runs) * len(self._jobs)

    def run(self) -> Iterator[None]:
        """Measure. Yields after each thing timed; whoever stops there keeps what was measured before."""
        try:
            self.forwards.start()
            for turn in range(WARM_UP + self.settings.runs):
                for job in rotated(self._jobs, turn):
                    job(turn >= WARM_UP)
                    yield
                self.forwards.end_turn(turn >= WARM_UP)
        finally:
            self.forwards.end()

    def table(self, interrupted: bool = False) -> CostTable:
        """All that was measured."""
        rounds = self.rounds
        return CostTable(
            target=self.target.describe(),
            forwards=self.forwards.rows(),
            limit=self.forwards.limit(),
            steps=rounds.step_rows() if rounds else [],
            proposers=rounds.run_rows() if rounds else [],
            memory=self._memory(),
            environment=environment_of(self.target),
            runs=self.settings.runs,
            interrupted=interrupted,
        )

    def _memory(self) -> dict[str, Any]:
        """weights: of the target and of each proposer, as in `weight_bytes`; caches: target's bytes by context."""
        proposers = {} if self.rounds is None else self.rounds.proposers
        weights = {label: weight_bytes(self.target, proposer) for label, proposer in proposers.items()}
        caches = [
            {"context": context, "cache_bytes": held, "bytes_per_token": held / context}
            for context, held in self.forwards.cache_bytes.items()
        ]
        return {"target": weight_bytes(self.target), "proposers": weights, "caches": caches}
