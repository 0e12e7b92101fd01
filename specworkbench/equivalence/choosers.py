"""Choosers that branch: the real code runs once for every way its random decisions can fall, and each way has a weight.

Every decision reads a uniform, and a uniform has a name: its cell. A decision splits the interval in which its cell
may still lie, so that two decisions that read the same cell depend on each other exactly as they would in a real run:
the law of an implementation that uses a uniform twice is enumerated as correctly as that of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
import torch

from specworkbench.engine.rng import STREAMS, RoundUniforms, Streams, UniformChooser, uniforms

Outcome = TypeVar("Outcome")

Wiring = Callable[[str, int], tuple[str, int]]
"""Which uniform of its round a decision of the rule reads: (stream, position) to (stream, position), 0-based.

One of the draft stream, too: a wiring may give the rule what a guess was drawn with.
"""


def own_uniform(stream: str, position: int) -> tuple[str, int]:
    """The wiring of correct code: every decision reads a uniform of its own."""
    return stream, position


class Branches:
    """One path through the tree of choices: follows `path`, then always the first branch of positive weight.

    weight: probability of the path so far. `following()` is the path to run next.
    """

    def __init__(self, path: Sequence[int] = ()):
        self.weight = 1.0
        self._path = list(path)
        self._widths: list[int] = []
        self._cells: dict[Hashable, tuple[float, float]] = {}

    def decide(self, cell: Hashable, weights: Sequence[float]) -> int:
        """Branch over the indices of `weights` (not necessarily normalised) as the uniform named `cell` would.

        Raises `ValueError` for weights that are negative, not finite, or all zero.
        """
        bounds = [0.0, *accumulate(weights)]
        if not (0.0 < bounds[-1] < float("inf")) or min(weights) < 0.0:
            raise ValueError(
                f"cannot branch over the weights {list(weights)}: each must be finite and at least 0, and one above 0"
            )
        bounds = [bound / bounds[-1] for bound in bounds]
        inside = self._cells.get(cell, (0.0, 1.0))
        parts = [(max(low, inside[0]), min(high, inside[1])) for low, high in pairwise(bounds)]
        options = [i for i, (low, high) in enumerate(parts) if weights[i] > 0.0 and low < high]
        depth = len(self._widths)
        if depth == len(self._path):
            self._path.append(0)
        self._widths.append(len(options))
        if self._path[depth] >= len(options):
            raise RuntimeError("the run made other decisions than the last time: its choices do not determine it")
        chosen = options[self._path[depth]]
        low, high = self._cells[cell] = parts[chosen]
        self.weight *= (high - low) / (inside[1] - inside[0])
        return chosen

    def following(self) -> list[int] | None:
        """The next path in depth-first order, or None when all have been walked."""
        if len(self._widths) != len(self._path):
            raise RuntimeError("the run made fewer decisions than the last time: its choices do not determine it")
        path = list(self._path)
        while path and path[-1] + 1 == self._widths[len(path) - 1]:
            path.pop()
        return [*path[:-1], path[-1] + 1] if path else None


class BranchingChooser:
    """A `Chooser` that branches. `accept` branches over all flags, `draw` over the indices of every row.

    cell: names the uniform of a decision: ("accept" or "draw", position) to a cell.

    >>> chooser = BranchingChooser(Branches())
    >>> chooser.accept(torch.tensor([0.25, 0.5])).tolist(), chooser.branches.weight
    ([True, True], 0.125)
    """

    def __init__(self, branches: Branches, cell: Callable[[str, int], Hashable] = own_uniform):
        self.branches = branches
        self._cell = cell
        self._accepted = 0
        self._drawn = 0

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        """probs: (n,) acceptance probabilities. Returns (n,) bools."""
        flags = []
        for prob in probs.clamp(max=1.0).tolist():
            flags.append(self.branches.decide(self._cell("accept", self._accepted), (prob, 1.0 - prob)) == 0)
            self._accepted += 1
        return torch.tensor(flags, dtype=torch.bool, device=probs.device)

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        """probs: (rows, vocab) weights; at: (rows,) positions, the next ones when not given. Returns (rows,) int64."""
        if at is None:
            start, self._drawn = self._drawn, self._drawn + probs.shape[0]
            places = range(start, self._drawn)
        else:
            places = at.tolist()
        drawn = [
            self.branches.decide(self._cell("draw", place), row)
            for place, row in zip(places, probs.tolist(), strict=True)
        ]
        return torch.tensor(drawn, dtype=torch.int64, device=probs.device)


def enumerate_paths(run: Callable[[BranchingChooser], Outcome]) -> Iterator[tuple[Outcome, float]]:
    """Run `run` once for every path of its choices, depth first; yields what it returns and the path's probability.

    Branches of weight zero are left out. The probabilities sum to 1. Raises `RuntimeError` when `run` depends on
    anything but its choices, such as state left over from the run before.

    >>> list(enumerate_paths(lambda chooser: chooser.accept(torch.tensor([0.25, 0.5])).tolist()))
    [([True, True], 0.125), ([True, False], 0.125), ([False, True], 0.375), ([False, False], 0.375)]
    """
    path: list[int] | None = []
    while path is not None:
        branches = Branches(path)
        outcome = run(BranchingChooser(branches))
        yield outcome, branches.weight
        path = branches.following()


class BranchingStreams:
    """What `Streams` is to real decoding, for enumeration: the decode loop runs on it unchanged.

    root: the chooser that `enumerate_paths` hands out; wiring: which uniform each decision of the rule reads.

    >>> from specworkbench.equivalence import run, table_setup
    >>> setup = table_setup(vocab=2, length=2, gamma=1)
    >>> paths = list(enumerate_paths(lambda root: run(setup, BranchingStreams(root))))
    >>> len(paths), len({output for output, _ in paths}), round(sum(weight for _, weight in paths), 9)
    (6, 4, 1.0)
    """

    def __init__(self, root: BranchingChooser, wiring: Wiring = own_uniform):
        self._branches, self._wiring = root.branches, wiring

    def for_proposer(self, sequence: int, round_index: int, asked: int) -> tuple[BranchingChooser, None]:
        """See `Streams.for_proposer`; there are no uniforms to record."""
        return self._chooser(sequence, round_index, lambda kind, position: ("draft", position)), None

    def for_verifier(
        self, sequence: int, round_index: int, proposed: int, drafted: Any
    ) -> tuple[BranchingChooser, None]:
        """See `Streams.for_verifier`."""

        def read(kind: str, position: int) -> tuple[str, int]:
            stream = "accept" if kind == "accept" else "residual" if position < proposed else "bonus"
            return self._wiring(stream, position)

        return self._chooser(sequence, round_index, read), None

    def _chooser(self, sequence: int, round_index: int, read: Wiring) -> BranchingChooser:
        return BranchingChooser(self._branches, lambda kind, position: (sequence, round_index, *read(kind, position)))


class WiredStreams(Streams):
    """Real uniforms under a wiring: with `own_uniform` the uniforms of `Streams`, with a faulty one its faults.

    chooser: what decides by them for the rule.

    >>> from specworkbench.equivalence.mutants.uniforms import one_uniform_for_all
    >>> for wiring in (own_uniform, one_uniform_for_all):
    ...     streams = WiredStreams(0, torch.device("cpu"), torch.float64, wiring)
    ...     drafted = streams.for_proposer(0, 0, 3)[1]
    ...     print(len(set(streams.for_verifier(0, 0, 3, drafted)[1].accept.tolist())))
    3
    1
    """

    def __init__(
        self,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        wiring: Wiring = own_uniform,
        chooser: type[UniformChooser] = UniformChooser,
    ):
        super().__init__(seed, device, dtype)
        self._wiring, self._chooser = wiring, chooser

    def for_verifier(
        self, sequence: int, round_index: int, proposed: int, drafted: RoundUniforms
    ) -> tuple[UniformChooser, RoundUniforms]:
        """See `Streams.for_verifier`."""
        slots = [(stream, j) for stream in ("accept", "residual") for j in range(proposed)] + [("bonus", proposed)]
        read = [self._wiring(stream, j) for stream, j in slots]
        drawn = self._to_device(self._values(sequence, round_index, read))
        chooser = self._chooser(drawn[:proposed], drawn[proposed:])
        return chooser, RoundUniforms(drafted.draft, drawn[:proposed], drawn[proposed:])

    def _values(self, sequence: int, round_index: int, cells: Sequence[tuple[str, int]]) -> np.ndarray:
        """(cells,) the uniforms of these streams and positions."""
        block = uniforms(self.seed, sequence, round_index, 1 + max(position for _, position in cells))
        return np.array([block[position, STREAMS.index(stream)] for stream, position in cells])
