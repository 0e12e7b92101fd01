"""What the speedup explorer shows, as tables: the surface with its lines, the slices, and the measured points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from specworkbench import analysis, theory
from specworkbench.errors import InputError
from specworkbench.theory.arguments import guesses, probability
from specworkbench.theory.costs import verify_cost_at
from specworkbench.trace import Trace

QUANTITIES = {"speedup": "speedup", "tokens": "tokens per round, E[N]"}
"""What can be looked at, and its name on an axis."""

LEVELS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Lines of the surface; that of 1 is break-even."""

COLUMNS = {
    "speedup": ("speedup_measured", "speedup_low", "speedup_high"),
    "tokens": ("block_efficiency", "block_low", "block_high"),
}
"""Of the table of points: what was measured, and the ends of its interval."""

_NUMBERS = ("c", "verify_cost", "overhead", *COLUMNS["speedup"], *COLUMNS["tokens"])
_CELLS = 25


@dataclass(frozen=True)
class Costs:
    """In target steps: c a guess; v a further row of the target, v(n) = 1 + v (n - 1), unless `table` has v(1), v(2),
    ..; overhead a round.
    """

    c: float
    v: float
    overhead: float
    table: tuple[float, ...] | None = None

    def verify_cost(self, gamma: int | np.ndarray) -> np.ndarray:
        """v(gamma + 1)."""
        return verify_cost_at(self.verify_costs, np.asarray(gamma) + 1)

    @property
    def verify_costs(self):
        """v over n, as `theory.optimal_gamma` takes it."""
        return self.table if self.table else lambda n: 1.0 + self.v * (n - 1)

    def speedup(self, alpha: float | np.ndarray, gamma: int | np.ndarray) -> np.ndarray:
        return theory.speedup(alpha, gamma, self.c, verify_cost=self.verify_cost(gamma), overhead=self.overhead)

    def value(self, quantity: str, alpha: float | np.ndarray, gamma: int | np.ndarray) -> np.ndarray:
        """The quantity at these alpha and gamma."""
        return self.speedup(alpha, gamma) if quantity == "speedup" else theory.expected_tokens(alpha, gamma)

    def best_gamma(self, alpha: float, max_gamma: int) -> int:
        return theory.optimal_gamma(
            alpha, self.c, verify_costs=self.verify_costs, overhead=self.overhead, max_gamma=max_gamma
        )


def surface_table(costs: Costs, quantity: str, max_gamma: int) -> pd.DataFrame:
    """A row a cell: alpha (its middle), gamma, value."""
    alpha = (np.arange(_CELLS) + 0.5) / _CELLS
    gamma = np.arange(1, max_gamma + 1)
    grid = pd.MultiIndex.from_product([gamma, alpha], names=["gamma", "alpha"]).to_frame(index=False)
    return grid.assign(value=np.ravel(costs.value(quantity, alpha, gamma[:, None])))


def level_table(costs: Costs, quantity: str, max_gamma: int) -> pd.DataFrame:
    """Lines of equal value: level, gamma, alpha. That of level 1 is break-even, S = 1, whatever the quantity."""
    gamma = np.arange(1, max_gamma + 1)
    verify = costs.verify_cost(gamma)
    found = []
    for level in LEVELS:
        times = level if quantity == "speedup" else 1.0
        if quantity == "speedup" or level == 1:  # S = level is break-even where every cost is level times as high
            alpha = theory.break_even_alpha(
                gamma, times * costs.c, verify_cost=times * verify, overhead=times * costs.overhead
            )
        else:
            alpha = theory.break_even_alpha(gamma, 0.0, verify_cost=level)
        found.append(pd.DataFrame({"level": level, "gamma": gamma, "alpha": alpha}))
    table = pd.concat(found, ignore_index=True)
    return table[table["alpha"] > 0].dropna()


def slice_table(costs: Costs, quantity: str, *, over: str, alpha: float, gamma: int, max_gamma: int) -> pd.DataFrame:
    """A line over "gamma" or "alpha", the other held: x, value, ideal (were guesses and verification free).

    Over gamma from 0, which is plain decoding.
    """
    if over == "gamma":
        x = np.arange(max_gamma + 1)
        value = np.append(1.0, costs.value(quantity, alpha, x[1:]))
        return pd.DataFrame({"x": x, "value": value, "ideal": theory.expected_tokens(alpha, x)})
    x = np.linspace(0, 1, 101)
    return pd.DataFrame({"x": x, "value": costs.value(quantity, x, gamma), "ideal": theory.expected_tokens(x, gamma)})


def points_table(points: pd.DataFrame | list[dict] | None) -> pd.DataFrame:
    """Measured points with all their columns: label, alpha, gamma and, NaN where not measured, the rest.

    points: rows as `analysis.compare` makes them: alpha_counts (or alpha), gamma, and what there is of label, c,
    verify_cost (v(gamma + 1)), overhead, speedup_measured with speedup_low and speedup_high, block_efficiency with
    block_low and block_high. Raises `InputError` for a table without alpha or gamma, and for what is neither.
    """
    points = pd.DataFrame([] if points is None else points).reset_index(drop=True)
    if points.empty:
        return pd.DataFrame(columns=["label", "alpha", "gamma", *_NUMBERS])
    points = points.rename(columns={} if "alpha" in points else {"alpha_counts": "alpha"})
    for name in ("alpha", "gamma"):
        if name not in points:
            there = ", ".join(map(str, points.columns))
            raise InputError(f"the measured points have no column {name!r}; they have {there}")
    try:
        numbers = points.reindex(columns=["alpha", "gamma", *_NUMBERS]).astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"a measured point has something that is no number: {error}") from error
    placed = numbers[["alpha", "gamma"]].notna().all(axis=1)
    numbers = numbers[placed]
    probability("alpha", numbers["alpha"])
    guesses("gamma", numbers["gamma"])
    points = points[placed].assign(gamma=numbers["gamma"])
    labels = points["label"].map(str) if "label" in points else _labels(points)
    return numbers.assign(label=labels).reset_index(drop=True)


def recorded(trace: Trace) -> tuple[list[dict], dict[str, float]]:
    """Of a recorded run: a point a bucket, with its measured tokens per round; and alpha, gamma, c, v and overhead of
    all of it, the costs as far as it tells them (without a plain round it tells none).
    """
    points = []
    for bucket, part in analysis.by_bucket(trace).items():
        tokens = analysis.block_efficiency(part)
        point = {"label": bucket, "alpha": analysis.alpha_counts(part).value, "gamma": trace.gamma}
        points.append(point | dict(zip(COLUMNS["tokens"], (tokens.value, tokens.low, tokens.high), strict=True)))
    verify = analysis.verify_cost(trace, trace.gamma + 1).value
    found = {
        "alpha": analysis.alpha_counts(trace).value,
        "gamma": trace.gamma,
        "c": analysis.draft_cost(trace).value,
        "v": None if verify is None else max(0.0, (verify - 1.0) / trace.gamma),
        "overhead": analysis.loop_overhead(trace).value,
    }
    return points, {name: value for name, value in found.items() if value is not None}


def _labels(points: pd.DataFrame) -> pd.Series:
    """Who proposed, where, and gamma, as far as the table says so."""
    named = [points[name].map(str) + ", " for name in ("proposer", "bucket") if name in points]
    start = sum(named[1:], named[0]) if named else pd.Series("", index=points.index)
    return start + "gamma " + points["gamma"].map("{:g}".format)
