"""From differences of rows to a difference of laws, and the same measured in several dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from specworkbench.equivalence.numerics.difference import RowDifference, watch
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError

DTYPES = ("float32", "float64")


class TVBound(NamedTuple):
    """At most so far are two laws of whole sequences apart. estimate; upper: its one-sided upper confidence limit.

    >>> TVBound(estimate=0.004, upper=0.006).upper
    0.006
    """

    estimate: float
    upper: float


def sequence_tv_bound(differences: RowDifference, level: float = 0.05) -> TVBound:
    """The sum of E d_t, which bounds the TV between the laws of whole sequences, from measured sequences.

    Let one law draw its tokens from the rows used, the other from single-token rows: exchange the rows one position
    after the other, and each exchange moves the law by E d_t at most, the expectation over the first law's texts. So it
    is the mean over sequences of the sum of their d_t; where only every k-th round was measured, of the mean d_t times
    the sequence's length. upper: by Student's t over sequences, 1 for fewer than two; both are cut at 1. It is the
    margin within which a test of end-to-end equivalence may call two samples equal. Raises `InputError` where nothing
    was measured.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> right = table_setup(length=4)
    >>> wrong = next(mutant for mutant in MUTANTS if mutant.name == "rejected_token_stays").apply(right)
    >>> bounds = [sequence_tv_bound(watch(setup, RowDifference(right.target), 0, 20)) for setup in (right, wrong)]
    >>> [(round(bound.estimate, 3), round(bound.upper, 3)) for bound in bounds]
    [(0.0, 0.0), (0.62, 0.81)]
    """
    frame = differences.frame()
    if frame.empty:
        raise InputError("no row was measured, so there is no bound; let the observer see at least one round")
    means = frame.groupby("sequence")["d"].mean()
    sums = means.to_numpy() * np.array(differences.lengths)[means.index]
    estimate, upper = float(sums.mean()), 1.0
    if len(sums) > 1:
        quantile = float(stats.t.ppf(1 - level, len(sums) - 1))
        upper = estimate + quantile * float(sums.std(ddof=1)) / len(sums) ** 0.5
    return TVBound(min(estimate, 1.0), min(upper, 1.0))


def rerun(
    setups: Callable[[str], Iterable[Setup]],
    dtypes: Sequence[str] = DTYPES,
    *,
    every: int = 1,
    seed: int = 0,
    sequences: int = 1,
) -> pd.DataFrame:
    """The same prompts in several dtypes: rounding vanishes with the dtype, a bias stays.

    setups: a dtype to one setup a prompt, all of one target and sampling. Returns a row a dtype: tokens, d_mean, d_max,
    floor_mean, noise, floor_noise, bound (see `sequence_tv_bound`), and the verdict's kind and ratio. Raises
    `InputError` where there is no setup.

    >>> import torch
    >>> from specworkbench.engine import LanguageModel
    >>> from specworkbench.equivalence import table_setup, toy_model
    >>> def setups(dtype):
    ...     toy = toy_model()
    ...     target = LanguageModel(toy.model.to(getattr(torch, dtype)), toy.tokenizer, toy.name)
    ...     yield table_setup(length=16).but(target=target)
    >>> found = rerun(setups)
    >>> found["dtype"].tolist(), found["verdict"].tolist(), (found["d_mean"] < [1e-4, 1e-12]).tolist()
    (['float32', 'float64'], ['rounding', 'rounding'], [True, True])
    """
    rows = []
    for dtype in dtypes:
        difference = None
        for setup in setups(dtype):
            difference = difference or RowDifference(setup.target, setup.settings.sampling, every)
            watch(setup, difference, seed, sequences)
        if difference is None:
            raise InputError(f"there is no prompt to decode in {dtype}; give at least one")
        verdict = difference.verdict()
        measured = difference.frame()
        figures = {"d_mean": measured["d"].mean(), "d_max": measured["d"].max(), "floor_mean": measured["floor"].mean()}
        figures |= {name: float(np.sqrt((measured[name] ** 2).mean())) for name in ("noise", "floor_noise")}
        bound = sequence_tv_bound(difference).estimate
        rows.append({"dtype": dtype, "tokens": len(measured), **figures, "bound": bound,
                     "verdict": verdict.kind, "ratio": verdict.ratio})  # fmt: skip
    return pd.DataFrame(rows)
