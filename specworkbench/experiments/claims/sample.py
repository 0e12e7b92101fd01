"""`Sample`: the prompts of a study drawn anew, and what every cell gives on each of the draws. No torch.

Prompts are drawn with replacement within their buckets, the same ones for every cell, so that whatever is computed from
several cells is compared in pairs. A figure is an array of `1 + DRAWS` numbers: its value on the prompts as they are,
then on each draw; functions of figures are computed number by number, and `ends` reads the interval off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.analysis.estimate import SEED
from specworkbench.experiments.claims.evidence import CELL_AXES, Evidence

DRAWS = 10_000

Figure = np.ndarray
"""(1 + DRAWS,) a figure on the prompts as they are, then on every draw."""


class Sample:
    """One study's evidence with its draws. cells: the axes of the cells that there is evidence of."""

    def __init__(self, evidence: Evidence):
        table = evidence.prompts
        self.cells = table.drop_duplicates("cell")[["cell", *CELL_AXES]].to_dict("records")
        names = table.drop_duplicates("prompt")[["prompt", "bucket"]].sort_values(["bucket", "prompt"])
        self.names, self.buckets = names["prompt"].tolist(), names["bucket"].to_numpy()
        self.weights = draws(self.buckets)
        self._totals = {
            cell: rows.set_index("prompt").reindex(self.names) for cell, rows in table.groupby("cell", sort=False)
        }
        self._places = dict(tuple(evidence.places.groupby("cell", sort=False)))

    def groups(self, *by: str) -> Iterator[tuple[tuple, list[dict[str, Any]]]]:
        """(values, cells) of the cells that agree in these axes."""
        found: dict[tuple, list[dict[str, Any]]] = {}
        for cell in self.cells:
            found.setdefault(tuple(cell[name] for name in by), []).append(cell)
        yield from found.items()

    def values(self, cell: Mapping[str, Any], name: str) -> np.ndarray:
        """(prompts,) what each prompt gave in a cell."""
        return self._totals[cell["cell"]][name].to_numpy(dtype=float)

    def total(self, cell: Mapping[str, Any], name: str, among: np.ndarray | None = None) -> Figure:
        """The total of a column, over all prompts or those `among` them."""
        return self._drawn(self.values(cell, name), among)

    def alpha(self, cell: Mapping[str, Any], among: np.ndarray | None = None) -> Figure:
        """Mean overlap of the examined tokens: alpha as overlap."""
        return ratio(self.total(cell, "overlap", among), self.total(cell, "examined", among))

    def alpha_between(self, cell: Mapping[str, Any], start: int, end: int) -> Figure:
        """The same of the tokens at output indices start..end - 1."""
        places = self._places[cell["cell"]]
        inside = places[(places["place"] >= start) & (places["place"] < end)]
        sums = inside.groupby("prompt")[["overlap", "examined"]].sum().reindex(self.names, fill_value=0)
        return ratio(*(self._drawn(sums[name].to_numpy(float)) for name in ("overlap", "examined")))

    def speedup(self, cell: Mapping[str, Any], among: np.ndarray | None = None, prefill: bool = True) -> Figure:
        """Plain time per token over speculative time per token, against the cell's own plain decoding."""
        ms = "ms" if prefill else "ms_rounds"
        sides = ((f"plain_{ms}", "plain_tokens"), (ms, "tokens"))
        return ratio(*(ratio(self.total(cell, time, among), self.total(cell, n, among)) for time, n in sides))

    def tokens_per_round(self, cell: Mapping[str, Any]) -> Figure:
        """Emitted tokens a round."""
        return self.total(cell, "tokens") / self.total(cell, "rounds")

    def round_cost(self, cell: Mapping[str, Any]) -> Figure:
        """Time of a round over time of a plain token: as many tokens a round must emit to break even."""
        per_round = self.total(cell, "ms_rounds") / self.total(cell, "rounds")
        return per_round / (self.total(cell, "plain_ms_rounds") / self.total(cell, "plain_tokens"))

    def plain_ms(self, cell: Mapping[str, Any]) -> Figure:
        """Time of a plain token, without prefill."""
        return self.total(cell, "plain_ms_rounds") / self.total(cell, "plain_tokens")

    def size(self, cell: Mapping[str, Any]) -> float:
        """Parameters of the draft over those of the target; NaN for a proposer without a model."""
        rows = self._totals[cell["cell"]]
        return float((rows["draft_parameters"] / rows["parameters"]).median())

    def _drawn(self, values: np.ndarray, among: np.ndarray | None = None) -> Figure:
        """Totals of (prompts,) values; a prompt without a value counts nothing."""
        return self.weights @ np.nan_to_num(values if among is None else np.where(among, values, 0.0))


def ratio(over: Figure, under: Figure) -> Figure:
    """One figure over another; NaN on draws where that is 0."""
    return np.divide(over, under, out=np.full_like(over, np.nan), where=under > 0)


def draws(buckets: np.ndarray) -> np.ndarray:
    """(1 + DRAWS, prompts) how often each prompt counts: once, then as drawn within its bucket."""
    rng = np.random.default_rng([SEED, len(buckets)])
    weights = np.ones((1 + DRAWS, len(buckets)))
    for bucket in pd.unique(buckets):
        inside = np.flatnonzero(buckets == bucket)
        weights[1:, inside] = rng.multinomial(len(inside), np.full(len(inside), 1 / len(inside)), size=DRAWS)
    return weights


def ends(figure: Figure, level: float) -> tuple[float, float]:
    """The ends of the interval of that level: percentiles over the draws on which there is a figure."""
    drawn = figure[1:][np.isfinite(figure[1:])]
    if not len(drawn):
        return float("nan"), float("nan")
    low, high = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)
