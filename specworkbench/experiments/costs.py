"""What a forward of the target costs by its number of rows and the context before it, and the least it could cost.

T_target(n) is the time of a forward over n tokens with `context` tokens in the cache: n = 1 is a plain step, n = gamma
+ 1 a verification. Everything is timed in turns, the order rotating, so that a drift of the machine hits all alike, and
with `limit` the machine's own rates are measured in the same turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from specworkbench import theory
from specworkbench.analysis.estimate import Estimate, median, ratio_of_medians
from specworkbench.engine import LanguageModel
from specworkbench.engine.kvcache import KVCache
from specworkbench.errors import InputError
from specworkbench.experiments.machine import (
    Gauge,
    Rates,
    last_level_cache,
    memory_buffer,
    multiplying,
    reading,
    timed,
)
from specworkbench.experiments.plan import rotated
from specworkbench.experiments.reads import Reads, reads_of, weights_of

WARM_UP = 2
"""Turns that come first and count nowhere."""
MEMORY, WEIGHTS, PRODUCTS = "memory", "weights", "products"
"""Rates of the machine: reading a large buffer, reading one of the weights' own size, products of matrices."""


@dataclass(frozen=True)
class CostSettings:
    """What is timed.

    contexts: tokens in the cache before a forward; rows: of a forward, 1 always among them; runs: how often each is
    timed; limit: whether the machine's rates are measured as well. Raises `InputError` for a number below 1.
    """

    contexts: tuple[int, ...] = (64,)
    rows: tuple[int, ...] = (1, 2, 3, 5, 9)
    runs: int = 25
    limit: bool = False

    def __post_init__(self) -> None:
        if (context := min(self.contexts, default=0)) < 1:
            raise InputError(f"context is {context}; a step has at least 1 token before it")
        if (rows := min(self.rows, default=1)) < 1:
            raise InputError(f"rows is {rows}; a forward has at least 1 row")
        if self.runs < 1:
            raise InputError(f"runs is {self.runs}; every forward must be timed at least once")
        object.__setattr__(self, "contexts", tuple(sorted(set(self.contexts))))
        object.__setattr__(self, "rows", tuple(sorted({1, *self.rows})))


class Cell(NamedTuple):
    """A forward of so many rows with so many tokens in the cache."""

    context: int
    rows: int


class Costs:
    """The costs of one target, as far as they have been measured: `run` measures, `rows` and `limit` tell.

    Raises `InputError` where a forward would go past the context of the target.
    """

    def __init__(self, target: LanguageModel, settings: CostSettings):
        longest, most = settings.contexts[-1], settings.rows[-1]
        if longest + most > target.max_context:
            raise InputError(
                f"a context of {longest} tokens and a forward of {most} rows are {longest + most} tokens, and "
                f"{target.name} takes {target.max_context} at most; give a shorter context or fewer rows"
            )
        self.target, self.settings = target, settings
        for rows in settings.rows:
            target.expect(rows, rows)
        self._cells = [Cell(context, rows) for context in settings.contexts for rows in settings.rows]
        self._ms: dict[Cell, list[float]] = {cell: [] for cell in self._cells}
        self._reads: dict[Cell, Reads] = {}
        self._rates: dict[str, Rates] = {}
        seeded = torch.Generator().manual_seed(0)
        self._ids = torch.randint(target.vocab_size, (longest + most,), generator=seeded).to(target.device)

    @property
    def planned(self) -> int:
        """How often `run` yields."""
        return (WARM_UP + self.settings.runs) * len(self._cells)

    def run(self) -> Iterator[None]:
        """Measure. Yields after each forward; whoever stops there keeps what was measured before."""
        caches = {context: self._prefilled(context) for context in self.settings.contexts}
        gauges = self._gauges(caches) if self.settings.limit else {}
        for turn in range(WARM_UP + self.settings.runs):
            counts = turn >= WARM_UP
            for cell in rotated(self._cells, turn):
                ms = self._timed(cell, caches[cell.context])
                if counts:
                    self._ms[cell].append(ms)
                yield
            for name, gauge in gauges.items():
                rate = gauge.rate()
                if counts:
                    self._rates[name].values.append(rate)
            if gauges:  # which have driven the weights out of the processor's cache
                self._timed(self._cells[0], caches[self._cells[0].context])

    def rows(self) -> list[dict[str, Any]]:
        """One entry a forward that was timed, JSON-ready.

        context, rows, runs; ms: T_target(rows), a median; verify_cost: v(rows) = T_target(rows) / T_target(1), a ratio
        of medians; `_low` and `_high` are their 95 % intervals, None with fewer than six runs. Where the limit was
        measured also what `_floor` says.
        """
        limit, rows = self.limit(), []
        for cell in self._cells:
            ms = median(np.array(self._ms[cell]))
            if ms.value is None:
                continue
            cost = self._verify_cost(cell)
            row = {**cell._asdict(), "runs": ms.n, **_named("ms", ms), **_named("verify_cost", cost)}
            rows.append(row | (_floor(self._reads[cell], limit, ms.value) if limit else {}))
        return rows

    def limit(self) -> dict[str, Any] | None:
        """The machine's rates, JSON-ready; None where they were not measured.

        memory, weights, products: size (bytes of the buffer, or the side of the matrices), best, median (per second)
        and runs; weights is None where they are no smaller than the buffer for the memory. bandwidth and peak: the
        best rates, by which the floors are computed. cache_bytes: of the last-level cache, None where not known.
        """
        if not self._rates or not all(rates.values for rates in self._rates.values()):
            return None
        found = {name: rates.as_dict() for name, rates in self._rates.items()}
        note = {reads.note for reads in self._reads.values()} - {None}
        return {
            MEMORY: found[MEMORY],
            WEIGHTS: found.get(WEIGHTS),
            PRODUCTS: found[PRODUCTS],
            "bandwidth": max(found[name]["best"] for name in (MEMORY, WEIGHTS) if name in found),
            "peak": found[PRODUCTS]["best"],
            "cache_bytes": last_level_cache(self.target.device),
            "note": note.pop() if note else None,
        }

    def _prefilled(self, context: int) -> KVCache:
        cache = self.target.new_cache()
        cache.reserve(context + self.settings.rows[-1])
        self.target.forward(self._ids[:context], cache, rows=1)
        cache.rollback(0)  # only then does a sliding window drop what lies before it
        return cache

    def _new_ids(self, cell: Cell) -> torch.Tensor:
        return self._ids[cell.context : cell.context + cell.rows]

    def _timed(self, cell: Cell, cache: KVCache) -> float:
        """ms of one forward, which is taken back."""
        ids = self._new_ids(cell)
        seconds = timed(lambda: self.target.forward(ids, cache), self.target.device)
        cache.rollback(cell.rows)
        return seconds * 1e3

    def _gauges(self, caches: dict[int, KVCache]) -> dict[str, Gauge]:
        """What measures the machine; counts what the forwards read on the way."""
        weights, device = weights_of(self.target.model), self.target.device
        for cell in self._cells:
            cache = caches[cell.context]
            self._reads[cell] = reads_of(self.target, weights, self._new_ids(cell), cache)
            cache.rollback(cell.rows)
        large, own = memory_buffer(device), self._reads[self._cells[0]].weight_bytes
        gauges = {MEMORY: reading(large, device), PRODUCTS: multiplying(self.target.dtype, device)}
        if own < large:
            gauges[WEIGHTS] = reading(own, device)
        self._rates = {name: Rates(gauge.size) for name, gauge in gauges.items()}
        return gauges

    def _verify_cost(self, cell: Cell) -> Estimate:
        plain, own = self._ms[Cell(cell.context, 1)], self._ms[cell]
        both = min(len(plain), len(own))  # an interrupt may have cut a turn
        return ratio_of_medians(np.array(own[:both]), np.array(plain[:both]))


def _named(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _floor(reads: Reads, limit: dict[str, Any], ms: float) -> dict[str, Any]:
    """What a forward that took `ms` has to read and to do, and the least time for it.

    ms_memory: reading its bytes at the bandwidth; ms_arithmetic: its operations at the peak; ms_floor: the greater of
    them. bandwidth_share: of the bandwidth, what the forward reached: ms_memory / ms; floor_share: ms_floor / ms.
    """
    bytes_read = reads.weight_bytes + reads.cache_bytes
    memory = theory.memory_time(bytes_read, limit["bandwidth"]) * 1e3
    arithmetic = theory.arithmetic_time(reads.operations, limit["peak"]) * 1e3
    floor = theory.least_time(bytes_read, limit["bandwidth"], reads.operations, limit["peak"]) * 1e3
    return {
        "weight_bytes": reads.weight_bytes,
        "cache_bytes": reads.cache_bytes,
        "operations": reads.operations,
        "ms_memory": memory,
        "ms_arithmetic": arithmetic,
        "ms_floor": floor,
        "bandwidth_share": memory / ms,
        "floor_share": floor / ms,
    }
