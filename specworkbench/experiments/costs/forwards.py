"""What a forward of the target costs by its number of rows and the context before it, and the least it could cost.

T_target(n) is the time of a forward over n tokens with `context` tokens in the cache: n = 1 is a plain step, n = gamma
+ 1 a verification. With `limit` the machine's own rates are measured in the same turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from specworkbench import theory
from specworkbench.analysis.estimate import Estimate, median, ratio_of_medians
from specworkbench.engine import LanguageModel
from specworkbench.engine.kvcache import KVCache
from specworkbench.errors import InputError
from specworkbench.experiments.costs.settings import Cell, CostSettings, named
from specworkbench.experiments.machine import (
    Gauge,
    Rates,
    last_level_cache,
    memory_buffer,
    multiplying,
    reading,
    timed,
)
from specworkbench.experiments.reads import Reads, reads_of, weights_of

__all__ = ["Forwards"]

MEMORY, WEIGHTS, PRODUCTS = "memory", "weights", "products"
"""Rates of the machine: reading a large buffer, reading one of the weights' own size, products of matrices."""


class Forwards:
    """The forwards of one target, as far as they have been timed: `measure` times, `rows` and `limit` tell.

    cache_bytes: {context: bytes of keys and values} of the caches that were filled.

    Raises `InputError` where a forward would go past the context of the target.

    >>> from specworkbench.engine import load_model
    >>> forwards = Forwards(load_model("embedded"), CostSettings(contexts=(8,), rows=(1, 2), runs=2))
    >>> [cell.rows for cell in forwards.cells]
    [1, 2]
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
        self.cells = [Cell(context, rows) for context in settings.contexts for rows in settings.rows]
        self._caches: dict[int, KVCache] = {}
        self._gauged: dict[str, Gauge] = {}
        self.cache_bytes: dict[int, int] = {}
        self._ms: dict[Cell, list[float]] = {cell: [] for cell in self.cells}
        self._reads: dict[Cell, Reads] = {}
        self._rates: dict[str, Rates] = {}
        seeded = torch.Generator().manual_seed(0)
        self._ids = torch.randint(target.vocab_size, (longest + most,), generator=seeded).to(target.device)

    def start(self) -> None:
        """Fill the caches, and make ready what measures the machine."""
        self._caches = {context: self._prefilled(context) for context in self.settings.contexts}
        self._gauged = self._gauges() if self.settings.limit else {}

    def measure(self, cell: Cell, counts: bool) -> None:
        """Time a forward once. counts: whether it is kept."""
        ms = self._timed(cell, self._caches[cell.context])
        if counts:
            self._ms[cell].append(ms)

    def end_turn(self, counts: bool) -> None:
        """Measure the machine's rates, where they are wanted."""
        for name, gauge in self._gauged.items():
            rate = gauge.rate()
            if counts:
                self._rates[name].values.append(rate)
        if self._gauged:  # which have driven the weights out of the processor's cache
            self._timed(self.cells[0], self._caches[self.cells[0].context])

    def end(self) -> None:
        """Release caches and buffers."""
        self._caches, self._gauged = {}, {}

    def rows(self) -> list[dict[str, Any]]:
        """One entry a forward that was timed, JSON-ready.

        context, rows, runs; ms: T_target(rows), a median; verify_cost: v(rows) = T_target(rows) / T_target(1), a ratio
        of medians; `_low` and `_high` are their 95 % intervals, None with fewer than six runs. Where the limit was
        measured also what `_floor` says.
        """
        limit, rows = self.limit(), []
        for cell in self.cells:
            ms = median(np.array(self._ms[cell]))
            if ms.value is None:
                continue
            cost = self._verify_cost(cell)
            row = {**cell._asdict(), "runs": ms.n, **named("ms", ms), **named("verify_cost", cost)}
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
        self.cache_bytes[context] = cache.nbytes
        return cache

    def _new_ids(self, cell: Cell) -> torch.Tensor:
        return self._ids[cell.context : cell.context + cell.rows]

    def _timed(self, cell: Cell, cache: KVCache) -> float:
        """ms of one forward, which is taken back."""
        ids = self._new_ids(cell)
        seconds = timed(lambda: self.target.forward(ids, cache), self.target.device)
        cache.rollback(cell.rows)
        return seconds * 1e3

    def _gauges(self) -> dict[str, Gauge]:
        """What measures the machine; counts what the forwards read on the way."""
        weights, device = weights_of(self.target.model), self.target.device
        for cell in self.cells:
            cache = self._caches[cell.context]
            self._reads[cell] = reads_of(self.target, weights, self._new_ids(cell), cache)
            cache.rollback(cell.rows)
        large, own = memory_buffer(device), self._reads[self.cells[0]].weight_bytes
        gauges = {MEMORY: reading(large, device), PRODUCTS: multiplying(self.target.dtype, device)}
        if own < large:
            gauges[WEIGHTS] = reading(own, device)
        self._rates = {name: Rates(gauge.size) for name, gauge in gauges.items()}
        return gauges

    def _verify_cost(self, cell: Cell) -> Estimate:
        plain, own = self._ms[Cell(cell.context, 1)], self._ms[cell]
        both = min(len(plain), len(own))  # an interrupt may have cut a turn
        return ratio_of_medians(np.array(own[:both]), np.array(plain[:both]))


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
