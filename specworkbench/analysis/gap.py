"""The gap between the formula and the measurement, in named steps that add up: from E[N] to the measured speedup.

Every step replaces one assumption of the formula by what was measured, in a fixed order, and the speedup after it has a
plain meaning (`gap_words.STEPS`). All of them come from totals over the same prompts, so that the last is the measured
ratio of totals itself. T_target(1) is here the plain target time per token, a mean, not the median of `latency`.

A change depends on the order: of two equal costs the later one takes from less. What does not depend on it is
`Step.without`, the measured speedup if that step alone were undone, and the figures.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.analysis import gap_words as words
from specworkbench.analysis.estimate import Estimate, interval, resamples
from specworkbench.analysis.gap_totals import KINDS, TARGET, Totals
from specworkbench.analysis.parts import has_trees
from specworkbench.analysis.speedup import shared
from specworkbench.errors import InputError
from specworkbench.trace import Trace

COLUMNS = (
    "step", "figures", "before", "after", "low", "high", "change", "change_low", "change_high", "without",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One assumption replaced by what was measured.

    name, meaning: in words (`gap_words.STEPS`); figures: the numbers behind it, in words; before: the speedup without
    it and all later ones; speedup: with it; change: the difference of the two; without: the speedup with all steps but
    this one. Intervals by bootstrap over prompts. n: prompts.
    """

    name: str
    meaning: str
    figures: str
    before: float
    speedup: Estimate
    change: Estimate
    without: float


@dataclass(frozen=True)
class Gap:
    """The way from the ideal speedup down (or up) to the measured one. Walking the steps from `ideal` arrives at it.

    ideal: E[N] for chains (Leviathan et al. 2023, Eq. 1: Theorem 3.8 at c = 0); of trees, and where nothing was
    examined (alpha is then None), the measured tokens per round. speedup: `measured_speedup`, or, where the cost of a
    proposer is set (`cost_set`), the speedup at that cost: its tokens cost so much and its prefill nothing. gamma: a
    mean where a controller chose it. pauses: shares of the plain and of the speculative time (`gap_totals.PAUSE`).

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> found = gap(plain, speculative)
    >>> end = found.ideal.value + sum(step.change.value for step in found.steps)
    >>> abs(end - found.speedup.value) < 1e-9
    True
    """

    ideal: Estimate
    steps: tuple[Step, ...]
    speedup: Estimate
    alpha: float | None
    gamma: float
    cost_set: float | None
    pauses: tuple[float, float]

    def after(self, key: str) -> float:
        """The speedup after the step of this key in `gap_words.STEPS`; after "pauses" it is that of rounds alone."""
        name = words.STEPS[key].name
        return next(step.speedup.value for step in self.steps if step.name == name)

    @property
    def sentence(self) -> str:
        """What the formula says, what was measured, and where most of the difference goes."""
        return words.sentence(self)

    def table(self) -> pd.DataFrame:
        """One row a step: step, figures, before, after with low and high, change with its ends, without."""
        rows = [
            (step.name, step.figures, step.before, *step.speedup, *step.change, step.without) for step in self.steps
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({name: float for name in COLUMNS[2:]})

    def as_dict(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return asdict(self) | {"sentence": self.sentence}


def gap(plain: Trace, speculative: Trace) -> Gap:
    """The steps from the ideal speedup to that of `speculative` over `plain`, on the prompts that both decoded.

    Raises `InputError` where the traces cannot be compared, where the first is not plain decoding or the second is, and
    where nothing can be said: no times by phase, or no round that a limit did not shorten.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> [step.name for step in gap(plain, speculative).steps[:5]]
    ['uneven acceptance', 'fewer guesses', 'ends of outputs', 'proposing', 'verification']
    """
    _check_sides(plain, speculative)
    plain, speculative = shared(plain, speculative)
    totals = Totals.of(plain, speculative)
    whole = totals.sum()
    _check_totals(whole, speculative)
    counts = {name: values[0] for name, values in whole.counts.items()}
    by_formula = bool(counts["examined"]) and not has_trees(speculative)
    ideal, steps = _steps(totals, by_formula)
    alpha = float(counts["accepted"] / counts["examined"]) if by_formula else None
    gamma = float(counts["whole_by_gamma"] @ totals.gammas / counts["whole"])
    plain_ms, ms = whole.times()[..., 0]
    paused = KINDS.index("pauses")
    pauses = float(plain_ms[paused] / plain_ms.sum()), float(ms[paused] / ms.sum())
    return Gap(ideal, steps, steps[-1].speedup, alpha, gamma, totals.cost_set, pauses)


def _steps(totals: Totals, by_formula: bool) -> tuple[Estimate, tuple[Step, ...]]:
    """The ideal speedup and the steps from it, with intervals by bootstrap over prompts."""
    whole, n = totals.sum(), totals.prompts
    values, without = _walked(whole, by_formula)[:, 0], _without(whole, by_formula)[:, 0]
    drawn = np.empty((len(values), 0))
    if n > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = _walked(totals.weighted(resamples(n)), by_formula)
    reached = [_estimate(*pair, n) for pair in zip(values, drawn, strict=True)]
    changes = [_estimate(*pair, n) for pair in zip(np.diff(values), np.diff(drawn, axis=0), strict=True)]
    keys, figures = list(words.STEPS)[-len(changes) :], words.figures(whole)
    steps = (
        Step(*words.STEPS[key], figures[key], before.value, after, change, float(undone))
        for key, before, after, change, undone in zip(keys, reached[:-1], reached[1:], changes, without, strict=True)
    )
    return reached[0], tuple(steps)


def _walked(totals: Totals, by_formula: bool) -> np.ndarray:
    """(steps + 1, n) the ideal speedup and that after each step: tokens per round, then costs by and by."""
    lengths = totals.lengths()[0 if by_formula else 2 :]
    step, costs = _costs(totals)
    before, after = step + np.cumsum(costs, axis=1)
    return np.concatenate([lengths, lengths[-1] * before / after])


def _without(totals: Totals, by_formula: bool) -> np.ndarray:
    """(steps, n) the measured speedup if each step alone were ideal."""
    lengths = totals.lengths()[0 if by_formula else 2 :]
    step, costs = _costs(totals)
    before, after = step + costs.sum(axis=1)
    longer = lengths[:-1] / lengths[1:] * lengths[-1] * before / after
    return np.concatenate([longer, lengths[-1] * (before - costs[0]) / (after - costs[1])])


def _costs(totals: Totals) -> tuple[np.ndarray, np.ndarray]:
    """(n,) ms of a plain step, the ideal time of a token and of a round; (2, kinds, n) what comes on top, by kind."""
    times = totals.times()
    step = times[0, TARGET].copy()
    times[:, TARGET] -= step
    return step, times


def _estimate(value: float, drawn: np.ndarray, prompts: int) -> Estimate:
    """The value with the percentiles of what was drawn; resamples that say nothing are left out."""
    if not len(drawn):
        return Estimate(float(value), None, None, prompts)
    return Estimate(float(value), *interval(drawn, np.isfinite(drawn).astype(float)), prompts)


def _check_sides(plain: Trace, speculative: Trace) -> None:
    name = plain.manifest["proposer"]["name"]
    if name != "none":
        raise InputError(f"the first trace was decoded with the proposer {name}; it must be plain decoding (none)")
    if speculative.manifest["proposer"]["name"] == "none":
        raise InputError("both traces are plain decoding; the second must be one with a proposer")


def _check_totals(whole: Totals, speculative: Trace) -> None:
    if not (whole.plain["target"][0] > 0 and whole.speculative["target"][0] > 0):
        raise InputError("the traces hold no times by phase; decode the prompts again with this program")
    if not whole.counts["whole"][0]:
        raise InputError(
            f"a limit shortened every proposal: with gamma {speculative.gamma} more than {speculative.gamma} new "
            f"tokens are needed, and at most {speculative.manifest['max_new_tokens']} were asked for"
        )
