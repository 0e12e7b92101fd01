"""Controllers that follow the rounds by a rule of thumb: transformers' heuristic, and the draft's own doubt."""

from __future__ import annotations

from specworkbench.engine.controllers.base import Controller
from specworkbench.engine.round import Round
from specworkbench.errors import InputError


class HeuristicController(Controller):
    """Two more after a round whose guesses were all accepted, one fewer after any other, never fewer than one.

    What transformers' assisted generation does by default (`num_assistant_tokens_schedule="heuristic"`), where there is
    no upper limit; here it is the gamma of the settings. start: of a sequence (0: at that limit); up, down: the steps.
    A round whose proposer found nothing counts as accepted there and is no evidence here. Raises `InputError` for a
    negative setting.
    """

    name = "heuristic"
    summary = "two more after full acceptance, else one fewer (transformers' default)"
    paper = "transformers, assisted generation"

    def __init__(self, start: int = 5, up: int = 2, down: int = 1):
        self.start, self.up, self.down = start, up, down
        for name in ("start", "up", "down"):
            if (value := getattr(self, name)) < 0:
                raise InputError(f"{name} of the controller heuristic is {value}; it must be at least 0")

    def gammas(self, most: int) -> tuple[int, ...]:
        return tuple(range(1, most + 1))

    def reset(self, most: int) -> None:
        super().reset(most)
        self._next = min(self.start or most, most)

    def gamma(self) -> int:
        return self._next

    def observe(self, step: Round) -> None:
        if proposed := len(step.decision.proposed):
            wanted = self._next + self.up if step.decision.accepted == proposed else self._next - self.down
            self._next = min(self.most, max(1, wanted))


class ConfidenceController(Controller):
    """The draft stops after a guess that it gave less than `threshold`; at most the gamma of the settings.

    That guess is kept and judged. Whether a position exists then depends on guesses before it alone, so that every
    lossless rule stays lossless; a guess that is DROPPED for its low q would be lossy under the ratio rule. The doubt
    is the draft's own probability of the guess, without cuts, and at temperature 0 of its rows at temperature 1. It is
    read on the host after every guess: a synchronisation each. Raises `InputError` for a threshold outside 0 to 1.
    """

    name = "confidence"
    summary = "the draft stops after a guess that it is not sure of"
    paper = "transformers, assistant_confidence_threshold"

    def __init__(self, threshold: float = 0.4):
        if not 0.0 < threshold < 1.0:
            raise InputError(f"threshold of the controller confidence is {threshold}; it must be between 0 and 1")
        self.threshold = self.stop_below = threshold

    def gammas(self, most: int) -> tuple[int, ...]:
        return tuple(range(1, most + 1))

    def gamma(self) -> int:
        return self.most
