"""A partition of the outputs, declared from the target's own rows before anything is drawn, and the test on it.

For any vocabulary: the partition is a tree of prefixes. Where a prefix is probable enough, its continuations are cells
of their own, one forward a prefix; all the rest of it is one cell.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.stopping import Stopping
from specworkbench.equivalence.law import fresh_row, too_early
from specworkbench.equivalence.statistics.bounds import detectable_tv, tv_bound
from specworkbench.errors import InputError

Tokens = tuple[int, ...]

STATISTICS = {"chi-square": "pearson", "G": "log-likelihood"}


@dataclass
class Branch:
    """What may follow one prefix. support: (vocab,) bools, p > 0; cells: tokens with a cell of their own.

    rest: the cell of every other token of the support, a prefix that is a branch itself excepted.
    """

    support: np.ndarray
    cells: dict[int, int] = field(default_factory=dict)
    rest: int = -1


@dataclass(frozen=True)
class SequenceCells:
    """Every output lies in exactly one cell.

    labels: what the cells hold, in words; probs: (cells,) the target's mass of each, which sum to 1. The last cell is
    what the target cannot say: a token with p = 0, an output that goes on behind its end or stops before it; its mass
    is 0. n: the number of samples the partition was declared for; forwards: how many rows of the target it took.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(vocab=2, length=2)
    >>> cells = sequence_cells(setup.target, setup.prompt, setup.settings, n=200)
    >>> cells.labels[cells.find((1, 0))], cells.labels[cells.find((1,))]
    ("'ba'", 'outside the support')
    """

    labels: tuple[str, ...]
    probs: np.ndarray
    n: int
    forwards: int
    branches: dict[Tokens, Branch]
    stopping: Stopping
    most: int

    @property
    def outside(self) -> int:
        """The cell outside the support."""
        return len(self.labels) - 1

    def find(self, output: Sequence[int]) -> int:
        """The cell of an output."""
        vocab = len(self.branches[()].support)
        if not all(0 <= token < vocab for token in output):
            return self.outside
        kept, why = self.stopping.cut(list(output), [])
        if kept < len(output) or len(output) > self.most or (why is None and len(output) < self.most):
            return self.outside
        prefix: Tokens = ()
        while (branch := self.branches.get(prefix)) is not None:
            token = output[len(prefix)]
            if not branch.support[token]:
                return self.outside
            if token in branch.cells:
                return branch.cells[token]
            prefix = (*prefix, token)
            if prefix not in self.branches:
                return branch.rest
        raise AssertionError("a prefix that is no branch has a cell")

    def counts(self, samples: Iterable[Sequence[int]]) -> np.ndarray:
        """(cells,) how many of the outputs lie in each."""
        return np.bincount([self.find(output) for output in samples], minlength=len(self.labels))


def sequence_cells(
    target: LanguageModel,
    prompt_ids: Sequence[int],
    settings: DecodeSettings,
    n: int,
    depth: int = 8,
    min_expected: float = 5.0,
    most_forwards: int = 64,
) -> SequenceCells:
    """The partition for n outputs of `prompt_ids`: cells with at least `min_expected` outputs expected in each.

    A prefix of fewer than `depth` tokens is continued, the most probable one first, while two cells fit into it, at
    most `most_forwards` times. What is left of a prefix is pooled with what is left of the one before where it is too
    small. Raises `InputError` where n is too small for two cells.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(vocab=2, length=2)
    >>> cells = sequence_cells(setup.target, setup.prompt, setup.settings, n=200)
    >>> dict(zip(cells.labels, cells.probs.round(3).tolist()))
    {"'ab'": 0.339, "'ba'": 0.152, "'bb'": 0.509, 'outside the support': 0.0}
    """
    room = target.max_context - len(prompt_ids)
    stopping = Stopping(target, settings.stop, () if settings.ignore_eos else target.eos_ids)
    most = min(settings.max_new_tokens, room)
    rows: dict[Tokens, np.ndarray] = {}
    waiting: list[tuple[float, Tokens]] = [(-1.0, ())]
    while waiting and len(rows) < most_forwards:
        mass, prefix = heapq.heappop(waiting)
        banned = too_early(target, len(prefix), settings)
        row = fresh_row(target, (*prompt_ids, *prefix), settings.sampling, banned).double().cpu().numpy() * -mass
        rows[prefix] = row
        for token in np.flatnonzero(n * row >= 2 * min_expected):
            longer = (*prefix, int(token))
            ended = stopping.cut(list(longer), [])[1] is not None
            if len(longer) < min(depth, most) and not ended:
                heapq.heappush(waiting, (-row[token], longer))
    builder = _Builder(target, rows, min_expected / n)
    builder.close()
    if len(builder.masses) < 2:
        raise InputError(
            f"{n} outputs are too few for two cells of {min_expected:g} expected outputs each; draw more, or test "
            "with a temperature at which the target is less certain"
        )
    return SequenceCells(
        (*builder.labels, "outside the support"), np.array([*builder.masses, 0.0]), n, len(rows), builder.branches,
        stopping, most,
    )  # fmt: skip


class _Builder:
    """Cells from the rows of the prefixes that were continued: {prefix: (vocab,) masses}, least: a cell's mass."""

    def __init__(self, target: LanguageModel, rows: dict[Tokens, np.ndarray], least: float):
        self.target, self.rows, self.least = target, rows, least
        self.labels: list[str] = []
        self.masses: list[float] = []
        self.branches = {prefix: Branch(row > 0.0) for prefix, row in rows.items()}

    def close(self) -> None:
        """Make all cells; what is left over in the end goes to the smallest one."""
        mass, left = self.divide(())
        if mass > 0.0 and self.masses:
            self.give(left, int(np.argmin(self.masses)), mass)

    def divide(self, prefix: Tokens) -> tuple[float, list[Tokens]]:
        """Cells of all that begins with a prefix; returns the mass left over, and the branches it is the rest of."""
        row, branch = self.rows[prefix], self.branches[prefix]
        rest, left = row.sum(), [prefix]
        for token in np.flatnonzero(row >= self.least):
            longer = (*prefix, int(token))
            rest -= row[token]
            if longer in self.rows:
                mass, more = self.divide(longer)
                rest, left = rest + mass, left + more
            else:
                branch.cells[int(token)] = self.cell(f"{self.target.decode(longer)!r}", row[token])
        alone = np.flatnonzero((row > 0.0) & (row < self.least))
        rest = max(rest, 0.0) if len(alone) or len(left) > 1 else 0.0
        if rest >= self.least:
            begin = f"after {self.target.decode(prefix)!r}" if prefix else "at the beginning"
            self.give(left, self.cell(f"any other token {begin}", 0.0), rest)
            return 0.0, []
        return rest, left

    def cell(self, label: str, mass: float) -> int:
        self.labels.append(label)
        self.masses.append(float(mass))
        return len(self.labels) - 1

    def give(self, left: list[Tokens], cell: int, mass: float) -> None:
        self.masses[cell] += mass
        for prefix in left:
            self.branches[prefix].rest = cell


@dataclass(frozen=True)
class SequenceOutcome:
    """What the test on a partition found.

    p_value: of chi-square or G over the cells with mass, 0 where an output lies outside the support; tv: distance of
    the frequencies from the target's masses, over all cells; tv_bound: an upper bound of the true one at this level,
    tv + sqrt(ln(1/level) / (2 n)) (McDiarmid: an output moves tv by at most 1/n, and tv's mean is not below the truth);
    detectable_tv: the smallest one that this test finds in nine runs of ten.

    >>> from specworkbench.equivalence import table_setup
    >>> from specworkbench.equivalence.setup import outputs
    >>> setup = table_setup()
    >>> cells = sequence_cells(setup.target, setup.prompt, setup.settings, n=200)
    >>> sequence_test(outputs(setup, 200), cells).sentence
    'no difference found (p = 0.42) in 200 outputs over 26 cells: TV 0.138,
    at most 0.270 at level 0.001; a TV of 0.241 would have been seen'
    """

    name: str
    n: int
    cells: int
    statistic: float
    degrees: int
    p_value: float
    outside: int
    tv: float
    tv_bound: float
    detectable_tv: float
    level: float

    @property
    def rejected(self) -> bool:
        return self.p_value < self.level

    @property
    def sentence(self) -> str:
        """The finding, with what it could have seen."""
        outside = f", {self.outside} outside the support" if self.outside else ""
        if self.rejected:
            found = f"not the target's distribution (p = {self.p_value:.2g}{outside})"
        else:
            found = f"no difference found (p = {self.p_value:.2g})"
        return (
            f"{found} in {self.n} outputs over {self.cells} cells: TV {self.tv:.3f}, at most {self.tv_bound:.3f} "
            f"at level {self.level:g}; a TV of {self.detectable_tv:.3f} would have been seen"
        )


def sequence_test(
    samples: Sequence[Sequence[int]], cells: SequenceCells, statistic: str = "chi-square", level: float = 1e-3
) -> SequenceOutcome:
    """Test that outputs are distributed as the target's own, by their frequencies in cells declared beforehand.

    Raises `InputError` for an unknown statistic, or fewer samples than the partition was declared for.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.setup import outputs
    >>> right = table_setup()
    >>> cells = sequence_cells(right.target, right.prompt, right.settings, n=200)
    >>> [sequence_test(outputs(setup, 200), cells).rejected for setup in (right, MUTANTS[0].apply(right))]
    [False, True]
    """
    if statistic not in STATISTICS:
        raise InputError(f"the statistic {statistic!r} is not known; choose one of {', '.join(STATISTICS)}")
    if len(samples) < cells.n:
        raise InputError(f"the partition was declared for {cells.n} outputs, there are {len(samples)}; draw the rest")
    n, counts = len(samples), cells.counts(samples)
    inside = counts[:-1]
    expected = cells.probs[:-1] * (inside.sum() / cells.probs[:-1].sum())
    value, p_value = stats.power_divergence(inside, expected, lambda_=STATISTICS[statistic]) if inside.sum() else (0, 0)
    outside, degrees = int(counts[-1]), len(inside) - 1
    tv = float(np.abs(counts / n - cells.probs).sum() / 2)
    return SequenceOutcome(
        f"{statistic} of sequences", n, len(inside), float(value), degrees, 0.0 if outside else float(p_value), outside,
        tv, tv_bound(tv, n, level), detectable_tv(n, len(inside), level), level,
    )  # fmt: skip
