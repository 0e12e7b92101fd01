"""The gamma that theory finds best for what was measured so far."""

from __future__ import annotations

import numpy as np

from specworkbench import theory
from specworkbench.engine.controllers.base import Controller
from specworkbench.engine.controllers.running import RunningAcceptance, RunningCosts
from specworkbench.engine.round import Round
from specworkbench.errors import InputError


class OptimalController(Controller):
    """argmax over gamma of the cost-aware speedup, E[N](alpha, gamma) T(1) / (gamma d + T(gamma + 1) + o).

    Leviathan et al. 2023, Theorem 3.8, with measured costs (derived). alpha is that of late rounds, older ones counting
    less by `keep` a round, and begins anew with each sequence. The costs, T(n) of the target, d of a guess and o of the
    loop, are medians of late rounds; they are the machine's and stay. With a `c` of at least 0 they are given instead,
    in target steps, and choices depend on the tokens alone: verify is v(2), v(3), ..., the last for all beyond.

    Plain decoding is among the choices. After `retry` plain rounds one is tried with guesses again, lest an acceptance
    that has risen be missed; and where no plain round was timed yet, the second and third round of a sequence are
    plain. Raises `InputError` for settings out of range.
    """

    name = "optimal"
    summary = "the best by theory, for acceptance and costs measured so far"
    paper = "Leviathan et al. 2023, Theorem 3.8, cost-aware"
    uses_times = True

    def __init__(self, keep: float = 0.9, retry: int = 16, c: float = -1.0, verify: tuple[float, ...] = (1.0,)):
        self.keep, self.retry, self.c, self.verify = keep, retry, c, tuple(verify)
        if not 0.0 < keep <= 1.0:
            raise InputError(f"keep of the controller optimal is {keep}; it must be above 0 and at most 1")
        if retry < 1:
            raise InputError(f"retry of the controller optimal is {retry}; it must be at least 1 round")
        if not self.verify or min(self.verify) <= 0:
            raise InputError(f"verify of the controller optimal is {verify}; it is v(2), v(3), ..., all above 0")
        self._given = c >= 0
        self.uses_times = not self._given
        self._costs = RunningCosts()

    def reset(self, most: int) -> None:
        super().reset(most)
        self._acceptance, self._rounds, self._plain_rounds = RunningAcceptance(self.keep), 0, 0

    def gamma(self) -> int:
        if not self._given and self._costs.rounds_of(1) < 2:
            return 0 if self._rounds in (1, 2) else self.most
        speedups = self._speedups()
        if (best := int(np.argmax(speedups))) > 0 or self._plain_rounds < self.retry:
            return best
        return 1 + int(np.argmax(speedups[1:]))

    def observe(self, step: Round) -> None:
        self._acceptance.observe(step)
        if not step.shortened:
            self._costs.observe(step)
        self._rounds += 1
        self._plain_rounds = 0 if step.asked else self._plain_rounds + 1

    def estimates(self) -> dict[str, float | None]:
        alpha = self._acceptance.alpha
        if not self._given and not self._costs.rounds_of(1):
            return {"alpha": alpha, "c": None, "v": None, "speedup": None}
        plain, guess, target = self._times()
        best = float(self._speedups().max())
        return {"alpha": alpha, "c": guess / plain, "v": float(target[-1] / plain), "speedup": best}

    def _times(self) -> tuple[float, float, np.ndarray]:
        """A plain round's target, a guess, and a round of each gamma's target and loop; the first with its loop too."""
        if self._given:
            v = np.array([1.0, *self.verify])
            return 1.0, self.c, v[np.minimum(np.arange(self.most + 1), len(v) - 1)]
        target = self._costs.target(np.arange(1, self.most + 2)) + self._costs.loop
        return float(target[0]), self._costs.draft, target

    def _speedups(self) -> np.ndarray:
        """(most + 1,) for gamma 0..most; that of 0 is 1."""
        plain, guess, target = self._times()
        gammas = np.arange(self.most + 1)
        return theory.speedup(self._acceptance.alpha, gammas, guess / plain, verify_cost=target / plain)
