"""Speculate only while it pays."""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy import stats

from specworkbench.engine.controllers.base import Controller
from specworkbench.engine.controllers.running import LATELY
from specworkbench.engine.round import Round
from specworkbench.errors import InputError

FEWEST = 6
"""Rounds of each kind before anything is concluded."""
LONGEST_PAUSE = 8
"""Times `pause`: how long it grows when speculating goes on not to pay."""


class AutoOffController(Controller):
    """The gamma of the settings, until guessing costs more time than it saves; then plain rounds, and another try.

    A round of N tokens saves N times a plain round less its own time. Off once the mean over the last `window` rounds
    is below 0 with `confidence` (one-sided, Student's t); on again after `pause` plain rounds, which double, up to
    eightfold, each time it did not help. What plain rounds take is the median of late ones; a sequence has a few of
    them at its beginning where none is known. Raises `InputError` for settings out of range.
    """

    name = "auto_off"
    summary = "off while guessing costs more than it saves, then tried again"
    uses_times = True

    def __init__(self, confidence: float = 0.95, window: int = 32, pause: int = 16):
        self.confidence, self.window, self.pause = confidence, window, pause
        if not 0.5 <= confidence < 1.0:
            raise InputError(f"confidence of the controller auto_off is {confidence}; it must be from 0.5 to below 1")
        if window < FEWEST:
            raise InputError(f"window of the controller auto_off is {window}; it must be at least {FEWEST} rounds")
        if pause < 1:
            raise InputError(f"pause of the controller auto_off is {pause}; it must be at least 1 round")
        self._plain: deque[float] = deque(maxlen=LATELY)

    def gammas(self, most: int) -> tuple[int, ...]:
        return (0, most)

    def reset(self, most: int) -> None:
        super().reset(most)
        self._rounds: deque[tuple[int, float]] = deque(maxlen=self.window)
        self._left, self._next_pause, self._number = 0, self.pause, 0

    def gamma(self) -> int:
        unknown = len(self._plain) < FEWEST and self._number % 2 == 1  # every other round, until plain ones are known
        return 0 if self._left or unknown else self.most

    def observe(self, step: Round) -> None:
        self._number += 1
        if step.shortened:
            return
        if step.asked == 0:
            self._plain.append(step.times["total"])
            self._left = max(0, self._left - 1)
            return
        self._rounds.append((step.decision.accepted + 1, step.times["total"]))
        saved, upper = self._saved()
        if upper is not None and upper < 0:
            self._left, self._next_pause = self._next_pause, min(2 * self._next_pause, LONGEST_PAUSE * self.pause)
            self._rounds.clear()
        elif upper is not None and saved > 0:
            self._next_pause = self.pause

    def estimates(self) -> dict[str, float | None]:
        """saved_ms: a round with guesses saves so much, in the mean; saved_upper: at most so much; None: not known."""
        saved, upper = self._saved()
        return {"saved_ms": saved, "saved_upper": upper, "plain_rounds_left": float(self._left)}

    def _saved(self) -> tuple[float | None, float | None]:
        if len(self._rounds) < FEWEST or len(self._plain) < FEWEST:
            return None, None
        tokens, ms = np.array(self._rounds).T
        saved = tokens * np.median(self._plain) - ms
        spread = saved.std(ddof=1) / np.sqrt(len(saved))
        return float(saved.mean()), float(saved.mean() + stats.t.ppf(self.confidence, len(saved) - 1) * spread)
