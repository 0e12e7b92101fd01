"""The contract of a controller: it chooses gamma, the number of guesses asked for, before each round."""

from __future__ import annotations

from typing import Any, ClassVar

from specworkbench.engine.round import Round
from specworkbench.engine.settings import Described


class Controller(Described):
    """Base of all controllers: chooses gamma from what is past, so that every lossless rule stays lossless.

    stop_below: guesses of which the draft is less sure than that are the last of their round (see `draw_chain`), 0 for
    none; the proposer must then be one that tells its doubt. uses_times: whether choices rest on measured times, so
    that the same seed need not give the same rounds again; each output follows the target all the same.

    >>> from specworkbench.engine import make_controller
    >>> isinstance(make_controller("heuristic"), Controller), make_controller("optimal").uses_times
    (True, True)
    """

    role = "controller"
    uses_times: ClassVar[bool] = False
    stop_below: float = 0.0

    def gammas(self, most: int) -> tuple[int, ...]:
        """All that it may choose when at most `most` may be asked for: what is worth compiling."""
        return tuple(range(most + 1))

    def reset(self, most: int) -> None:
        """A new sequence begins: forget what the last one was like. most: the gamma of the settings."""
        self.most = most

    def gamma(self) -> int:
        """How many guesses the next round is to ask for, 0 to `most`; 0: decode plainly."""
        raise NotImplementedError

    def observe(self, step: Round) -> None:
        """Learn what became of a round."""

    def estimates(self) -> dict[str, float | None]:
        """What the next choice rests on, for the trace; nothing where it does not estimate."""
        return {}

    def describe(self) -> dict[str, Any]:
        """The controller's entry in a trace's manifest."""
        settings = {name: getattr(self, name) for name in self.settings()}
        return {"name": self.name, "settings": settings, "uses_times": self.uses_times}
