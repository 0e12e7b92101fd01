"""`judge`: does the sampler follow the rows that it was given? Evidence in, one judgement out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from specworkbench.equivalence.evidence import CELLS, Evidence
from specworkbench.equivalence.statistics import (
    EProcess,
    Equivalence,
    Test,
    acceptance_test,
    cells_test,
    check_level,
    detectable_tv,
    equivalence,
    holm,
    overweight_test,
    partition_tv,
)
from specworkbench.errors import InputError

FAMILY = ("e-process", "overweight", "acceptance", "cells")
"""The tests that are declared beforehand; Holm's procedure keeps their common level."""


@dataclass(frozen=True)
class Judgement:
    """What the family of tests says. level: of the whole family.

    tokens: how many were judged; wanted: how many were asked for (fewer were judged where the e-process decided, or
    where there were no more); guided: how many of them stand where there was a guess; decided_at: after how many tokens
    the e-process decided, or None; log_e: its largest logarithm (natural); outcomes: by test; adjusted: Holm's p-values
    of the tests that apply.

    tv, tv_bound: by partition, the observed total variation over it and its upper bound at the level; equivalence:
    whether that over `CELLS` is shown to be below the margin; detectable_tv: the smallest one that this number of
    tokens shows with probability 0.9. slots: which position of the round says what (see `EProcess.by_slot`); history:
    (tokens, log E) as it went.
    """

    level: float
    wanted: int
    tokens: int
    guided: int
    decided_at: int | None
    log_e: float
    outcomes: dict[str, Test]
    adjusted: dict[str, float]
    tv: dict[str, float]
    equivalence: Equivalence
    detectable_tv: float
    slots: pd.DataFrame
    history: list[tuple[int, float]]

    @property
    def rejected_by(self) -> list[str]:
        """The tests that reject at the family's level."""
        return [name for name, p_value in self.adjusted.items() if p_value <= self.level]

    @property
    def rejected(self) -> bool:
        return bool(self.rejected_by)

    @property
    def tv_bound(self) -> dict[str, float]:
        return dict(self.equivalence.bounds)


def judge(
    parts: Iterable[Evidence],
    *,
    tokens: int,
    level: float = 1e-3,
    slots: int,
    margin: float = 0.05,
    watch: Callable[[int, float], bool | None] | None = None,
) -> Judgement:
    """Judge the first `tokens` tokens of the evidence, or fewer where the e-process has decided before.

    slots: gamma + 1. margin: of total variation over `CELLS`, below which a bias does not matter. watch: told how many
    tokens have been judged, and the logarithm of the E-value, after each part; where it returns False nothing more is
    judged. The tests for a fixed number of tokens are computed on what was judged: where the e-process stopped the run,
    they only say where the fault lies. Raises `InputError` for a number of tokens, a level or a margin out of range,
    and where there is no evidence at all.
    """
    check_numbers(tokens, level, margin)
    process = EProcess(level / len(FAMILY), slots)
    kept: list[Evidence] = []
    for part in parts:
        part = part[: tokens - process.tokens]
        process.update(part)
        kept.append(part)
        stopped = watch is not None and watch(process.tokens, process.log_e) is False
        if stopped or process.rejected or process.tokens >= tokens:
            break
    if not kept:
        raise InputError("there is no evidence to judge; decode at least one sequence")
    evidence = Evidence.concatenate(kept)
    outcomes = {
        "e-process": _as_outcome(process),
        "overweight": overweight_test(evidence),
        "acceptance": acceptance_test(evidence),
        "cells": cells_test(evidence),
    }
    given = {name: outcome.p_value for name, outcome in outcomes.items() if outcome.p_value is not None}
    return Judgement(
        level=level,
        wanted=tokens,
        tokens=len(evidence),
        guided=int(evidence.guided.sum()),
        decided_at=process.decided_at,
        log_e=process.largest_log_e,
        outcomes=outcomes,
        adjusted=holm(given, level),
        tv={partition: partition_tv(evidence, partition) for partition in ("cells", "overweight")},
        equivalence=equivalence(evidence, margin, level),
        detectable_tv=detectable_tv(len(evidence), len(CELLS), level),
        slots=process.by_slot(),
        history=process.history,
    )


def check_numbers(tokens: int, level: float, margin: float) -> None:
    """Raises `InputError` for numbers with which nothing can be judged; see `judge`."""
    if tokens < 1:
        raise InputError(f"tokens is {tokens}; at least 1 must be judged")
    check_level(level)
    check_level(margin, "margin")


def _as_outcome(process: EProcess) -> Test:
    """By Ville's inequality 1 / (the largest E so far) is a p-value, whenever one stops."""
    p_value = min(1.0, math.exp(-process.largest_log_e))
    detail = f"largest E-value {math.exp(min(process.largest_log_e, 700.0)):.3g} in {process.tokens} tokens"
    return Test("e-process", process.largest_log_e, p_value, process.tokens, detail, True)
