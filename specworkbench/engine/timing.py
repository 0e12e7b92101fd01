"""Phase times of a round: host clock on the CPU, events on a GPU (which cost no synchronisation of their own)."""

from __future__ import annotations

from time import perf_counter_ns

import torch

PHASES = ("propose", "verify", "accept", "rollback")


class HostClock:
    """Phases by the host's monotonic clock; right wherever a call returns when its work is done (CPU)."""

    name = "perf_counter"

    def start(self) -> None:
        """Begin a round."""
        self._started = self._last = perf_counter_ns()
        self._ns: dict[str, int] = {}

    def mark(self, phase: str) -> None:
        """The phase that was running ends here."""
        now = perf_counter_ns()
        self._ns[phase] = now - self._last
        self._last = now

    def read(self) -> dict[str, float]:
        """ms by phase, and 'total', the round from `start` to the last mark."""
        times = {phase: self._ns.get(phase, 0) / 1e6 for phase in PHASES}
        return times | {"total": (self._last - self._started) / 1e6}


class CudaClock(HostClock):
    """Device phases by CUDA events; the rollback, host work after the round's synchronisation, by the host's clock."""

    name = "cuda events"

    def start(self) -> None:
        super().start()
        self._events: list[tuple[str, torch.cuda.Event]] = [("start", self._record())]

    def mark(self, phase: str) -> None:
        super().mark(phase)
        if phase != "rollback":
            self._events.append((phase, self._record()))

    def read(self) -> dict[str, float]:
        times = super().read()
        self._events[-1][1].synchronize()
        for (_, before), (phase, after) in zip(self._events, self._events[1:], strict=False):
            times[phase] = before.elapsed_time(after)
        times["total"] = max(times["total"], sum(times[phase] for phase in PHASES))
        return times

    @staticmethod
    def _record() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def clock_for(device: torch.device) -> HostClock:
    """The clock that measures this device's work."""
    return CudaClock() if device.type == "cuda" else HostClock()
