"""What this machine does at best, measured: bytes read and operations done in a second, with the threads in use."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

__all__ = ["timed", "Gauge", "Rates", "reading", "multiplying", "memory_buffer", "last_level_cache"]

MIB = 2**20
LEAST_BUFFER = 512 * MIB
"""Bytes of the buffer that memory bandwidth is measured with, where eight last-level caches are not more."""
SECONDS = 0.02
"""What one timing lasts at least: the work is repeated, so that starting and awaiting it weigh nothing."""
SIDES = (256, 512, 1024, 2048, 4096, 8192)
"""Of the square matrices whose product may be timed."""


def timed(work: Callable[[], Any], device: torch.device) -> float:
    """Seconds from an idle device to an idle device, by the host's clock.

    >>> timed(lambda: sum(range(1000)), torch.device("cpu")) > 0
    True
    """
    _settle(device)
    started = perf_counter()
    work()
    _settle(device)
    return perf_counter() - started


@dataclass(frozen=True)
class Gauge:
    """Work whose rate can be measured again and again.

    amount: what one call of `work` does, in bytes or operations; size: bytes of the buffer or side of the matrices it
    does it with; repeats: calls of one timing.

    >>> zeros = torch.zeros(1000)
    >>> gauge = Gauge(zeros.sum, amount=4000, size=4000, device=torch.device("cpu"), repeats=10)
    >>> gauge.rate() > 0
    True
    """

    work: Callable[[], Any]
    amount: int
    size: int
    device: torch.device
    repeats: int

    @classmethod
    def of(cls, work: Callable[[], Any], amount: int, size: int, device: torch.device) -> Gauge:
        """With as many repeats as a timing needs."""
        once = min(timed(work, device) for _ in range(3))
        return cls(work, amount, size, device, math.ceil(SECONDS / once))

    def rate(self) -> float:
        """Amount per second, measured now."""
        seconds = timed(lambda: [self.work() for _ in range(self.repeats)], self.device)
        return self.amount * self.repeats / seconds


@dataclass(frozen=True)
class Rates:
    """What a gauge of this size measured, per second.

    >>> Rates(size=4000, values=[1e9, 3e9, 2e9]).as_dict()
    {'size': 4000, 'best': 3000000000.0, 'median': 2000000000.0, 'runs': 3}
    """

    size: int
    values: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, float | int]:
        """size, best, median, runs."""
        best, middle = max(self.values), statistics.median(self.values)
        return {"size": self.size, "best": best, "median": middle, "runs": len(self.values)}


def reading(nbytes: int, device: torch.device) -> Gauge:
    """Reading a buffer of so many bytes (to a float32) again and again, as a sum.

    >>> reading(4000, torch.device("cpu")).size
    4000
    """
    buffer = torch.ones(max(1, nbytes // 4), device=device)  # written: of zeros the system may keep one page for all
    size = buffer.numel() * buffer.element_size()
    return Gauge.of(buffer.sum, size, size, device)


def multiplying(dtype: torch.dtype, device: torch.device) -> Gauge:
    """A product of two square matrices, the smallest that takes half as long as a timing should, or the largest.

    >>> multiplying(torch.float32, torch.device("cpu")).size in SIDES
    True
    """
    for side in SIDES:
        square = torch.ones(side, side, dtype=dtype, device=device)
        product = partial(torch.mm, square, square)
        if min(timed(product, device) for _ in range(3)) > SECONDS / 2:
            break
    return Gauge.of(product, 2 * side**3, side, device)


def memory_buffer(device: torch.device) -> int:
    """Bytes of a buffer that no cache of this device holds a good part of.

    >>> memory_buffer(torch.device("cpu")) > 2**20
    True
    """
    return max(LEAST_BUFFER, 8 * (last_level_cache(device) or 0))


def last_level_cache(device: torch.device) -> int | None:
    """Bytes of the largest cache before the memory; None where the system does not say.

    >>> size = last_level_cache(torch.device("cpu"))
    >>> size is None or size > 0
    True
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).L2_cache_size
    sizes = []
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        number, unit = file.read_text().strip()[:-1], file.read_text().strip()[-1]
        sizes.append(int(number) * {"K": 2**10, "M": 2**20}.get(unit, 1))
    return max(sizes, default=None) if device.type == "cpu" else None


def _settle(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
