"""What the experiments share: names of settings, kinds of proposers, and what is worth the name of a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Figure, Sample, ends

ALPHA_MARGIN = 0.02
"""Two alphas that differ by less are taken as equal."""
TIME_MARGIN = 0.03
"""So are two times, relative to each other."""

RETRIEVAL = ("ngram", "suffix")

PROSE = ("prose", "chat", "summarisation", "rewriting")
CODE = ("code", "coding")
STRUCTURED = ("structured",)

Cell = Mapping[str, Any]


def kind(cell: Cell) -> str:
    """The proposer's name without weights and settings."""
    return cell["proposer"].partition(",")[0].partition(":")[0]


def short(cell: Cell) -> str:
    """A cell's proposer, in short: draft-m, layer_skip 2, suffix."""
    head, *settings = cell["proposer"].split(",")
    name, _, weights = head.partition(":")
    return " ".join([weights.rstrip("/").rpartition("/")[2] or name, *(part.partition("=")[2] for part in settings)])


def setting(cell: Cell) -> str:
    """Proposer and temperature."""
    return f"{short(cell)}, T {cell['temperature']:g}"


def by_bucket(
    evidence: Evidence, figure: Callable[[Sample, Cell, np.ndarray], Figure], level: float = 0.95
) -> pd.DataFrame:
    """A row a cell and kind of text: the cell's axes, its proposer in short, bucket, value, low and high.

    figure: `Sample.alpha`, `Sample.speedup`; value: of the prompts of the bucket; low, high: the ends of its interval.
    """
    sample, rows = Sample(evidence), []
    for cell in sample.cells:
        for bucket in pd.unique(sample.buckets):
            drawn = figure(sample, cell, sample.buckets == bucket)
            low, high = ends(drawn, level)
            found = {"bucket": bucket, "value": drawn[0], "low": low, "high": high}
            rows.append(cell | {"proposer": short(cell)} | found)
    return pd.DataFrame(rows)


def gains(sample: Sample, cell: Cell) -> bool:
    """Whether the speedup of a cell is above 1 for sure: the lower end of its 95 % interval is."""
    return surely_above(sample.speedup(cell), 1.0)


def surely_above(figure: Figure, limit: float) -> bool:
    """Whether 97.5 % of the draws lie above a limit."""
    return float(np.nanpercentile(figure[1:], 2.5)) > limit


def alike(sample: Sample, names: tuple[str, ...]) -> np.ndarray:
    """(prompts,) those of these buckets."""
    return np.isin(sample.buckets, names)
