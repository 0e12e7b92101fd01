"""Controllers that do not look at the rounds: always the same gamma, or one by the size of the batch."""

from __future__ import annotations

from specworkbench.engine.controllers.base import Controller
from specworkbench.errors import InputError


class ConstantController(Controller):
    """The gamma of the settings, every round."""

    name = "constant"
    summary = "always the same"

    def gammas(self, most: int) -> tuple[int, ...]:
        return (most,)

    def gamma(self) -> int:
        return self.most


class BatchController(Controller):
    """A gamma for each size of batch, as engines that serve many requests use: the more sequences a step decodes, the
    less of it is idle for guesses.

    sizes: of batches, increasing, from 1; gammas_at: the gamma from that size on. This engine decodes one sequence at a
    time, so that here it is always that of size 1. Raises `InputError` for sizes that do not begin at 1 or do not
    increase, and where there are not as many gammas as sizes.
    """

    name = "by_batch"
    summary = "by the number of sequences decoded together"

    def __init__(self, sizes: tuple[int, ...] = (1, 4, 16), gammas_at: tuple[int, ...] = (4, 2, 1)):
        self.sizes, self.gammas_at, self.batch = tuple(sizes), tuple(gammas_at), 1
        if self.sizes[:1] != (1,) or list(self.sizes) != sorted(set(self.sizes)):
            raise InputError(f"sizes of the controller by_batch are {self.sizes}; they must increase, from 1 on")
        if len(self.gammas_at) != len(self.sizes) or min(self.gammas_at) < 0:
            raise InputError(
                f"gammas_at of the controller by_batch is {self.gammas_at} for the sizes {self.sizes}; give one gamma "
                "of at least 0 for each"
            )

    def gammas(self, most: int) -> tuple[int, ...]:
        return tuple(sorted({min(most, gamma) for gamma in self.gammas_at}))

    def gamma(self) -> int:
        reached = sum(size <= self.batch for size in self.sizes)
        return min(self.most, self.gammas_at[reached - 1])
