"""What a controller knows of a decoding under way: acceptance, lately, and what things cost."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from specworkbench.engine.round import Round

LATELY = 24
"""Times of each kind that are kept: medians are over these."""


class RunningAcceptance:
    """alpha = accepted / examined, older rounds counting less: each round multiplies them by `keep`.

    prior: examined tokens that stand for not knowing, half of them accepted.
    """

    def __init__(self, keep: float, prior: float = 2.0):
        self._keep, self.accepted, self.examined = keep, prior / 2, prior

    def observe(self, step: Round) -> None:
        proposed, accepted = len(step.decision.proposed), step.decision.accepted
        if proposed:
            self.accepted = self._keep * self.accepted + accepted
            self.examined = self._keep * self.examined + accepted + (accepted < proposed)

    @property
    def alpha(self) -> float:
        return self.accepted / self.examined


class RunningCosts:
    """Medians of late rounds, ms: `target(n)` a forward over n rows with its rule, `draft` a guess, `loop` the rest.

    The first round after a pause or of its size may be slow for reasons of its own; medians do not mind.
    """

    def __init__(self):
        self._target: dict[int, deque[float]] = defaultdict(_lately)
        self._draft, self._loop = _lately(), _lately()

    def observe(self, step: Round) -> None:
        times, proposed = step.times, len(step.decision.proposed)
        judging = times["verify"] + times["accept"]
        self._target[proposed + 1].append(judging)
        self._loop.append(times["total"] - judging - times["propose"])
        if proposed:
            self._draft.append(times["propose"] / proposed)

    def rounds_of(self, rows: int) -> int:
        """How many forwards over so many rows are known, of the last `LATELY`."""
        return len(self._target[rows])

    def target(self, rows: np.ndarray) -> np.ndarray:
        """ms by number of rows: between sizes seen in a straight line, beyond them as the nearest."""
        known = sorted(size for size, times in self._target.items() if times)
        return np.interp(rows, known, [np.median(self._target[size]) for size in known])

    @property
    def draft(self) -> float:
        return float(np.median(self._draft)) if self._draft else 0.0

    @property
    def loop(self) -> float:
        return float(np.median(self._loop)) if self._loop else 0.0


def _lately() -> deque[float]:
    return deque(maxlen=LATELY)
