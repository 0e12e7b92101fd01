"""How large a bias can still be: bounds on the total variation, the smallest one a run could see, Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import optimize, stats

from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.statistics.levels import check_level
from specworkbench.errors import InputError

Partition = Literal["cells", "overweight"]


def tv_bound(tv: float, n: int, level: float) -> float:
    """What the total variation over a partition stays under, except with probability `level`; 1 for no tokens.

    TV <= TV^ + sqrt(ln(1 / level) / (2 n)), TV^ measured with n tokens. Hoeffding and Azuma: the TV is the excess of
    one fixed union of cells, and TV^ is at least the excess measured on that union, so that the number of cells does
    not enter.

    >>> round(tv_bound(0.01, n=10_000, level=0.001), 4), round(tv_bound(0.01, n=1_000_000, level=0.001), 4)
    (0.0286, 0.0119)
    """
    check_level(level)
    if n == 0:
        return 1.0
    return min(1.0, tv + float(np.sqrt(np.log(1 / level) / (2 * n))))


def partition_tv(evidence: Evidence, partition: Partition = "cells") -> float:
    """Half the L1 distance between the observed shares of a partition and the mean shares that the rows declare.

    cells: the target's `CELLS`, all tokens. overweight: the set A and its complement, guided tokens. NaN for no tokens.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> right = table_setup()
    >>> wrong = MUTANTS[0].apply(right)  # accepts every guess
    >>> [round(partition_tv(first_tokens_of(evidence_of(setup), 200)), 2) for setup in (right, wrong)]
    [0.04, 0.23]
    """
    if partition == "overweight":
        guided = evidence[evidence.guided]
        if not len(guided):
            return float("nan")
        return float(abs(np.mean(guided.in_overweight - guided.overweight_p)))
    if partition != "cells":
        raise InputError(f"there is no partition {partition!r}; say 'cells' or 'overweight'")
    if not len(evidence):
        return float("nan")
    observed = np.bincount(evidence.cell, minlength=evidence.cell_probs.shape[1]) / len(evidence)
    return float(np.abs(observed - evidence.cell_probs.mean(axis=0)).sum() / 2)


@dataclass(frozen=True)
class Equivalence:
    """Whether the bias over a declared partition is shown to be smaller than a margin.

    statistic: TV^; bound: what the TV stays under at the level; p_value: the smallest level at which the bound is
    below the margin (small means shown to be equivalent: the reverse of a test of bias); bounds: of both partitions.

    >>> from specworkbench.equivalence import table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> found = equivalence(first_tokens_of(evidence_of(table_setup()), 200), margin=0.3, level=0.001)
    >>> found.equivalent, {partition: round(bound, 2) for partition, bound in found.bounds.items()}
    (True, {'cells': 0.17, 'overweight': 0.19})
    """

    name: str
    statistic: float | None
    bound: float
    margin: float
    p_value: float | None
    tokens: int
    equivalent: bool
    detail: str
    applies: bool = True
    bounds: Mapping[str, float] = field(default_factory=dict)


def equivalence(evidence: Evidence, margin: float, level: float, partition: Partition = "cells") -> Equivalence:
    """Equivalent when the bound on the TV over the declared partition is below the margin (one-sided, at the level).

    It is the mean bias over all tokens that is bounded; biases of opposite sign at different places cancel.

    >>> from specworkbench.equivalence import table_setup
    >>> from specworkbench.equivalence.power import evidence_of, first_tokens_of
    >>> evidence = first_tokens_of(evidence_of(table_setup()), 200)
    >>> for margin in (0.05, 0.3):
    ...     print(equivalence(evidence, margin, level=0.001).detail)
    the total variation over cells is at most 0.175, not below the margin of 0.05
    the total variation over cells is at most 0.175, below the margin of 0.3
    """
    check_level(margin, "margin")
    sizes = {"cells": len(evidence), "overweight": int(evidence.guided.sum())}
    found = {kind: partition_tv(evidence, kind) for kind in sizes}
    bounds = {kind: tv_bound(found[kind], n, level) if n else 1.0 for kind, n in sizes.items()}
    name, n, bound = f"equivalence over {partition}", sizes[partition], bounds[partition]
    if not n:
        return Equivalence(name, None, 1.0, margin, None, 0, False, "there was no token", False, bounds)
    tv = found[partition]
    p_value = float(np.exp(-2 * n * max(0.0, margin - tv) ** 2))
    says = "below" if bound < margin else "not below"
    detail = f"the total variation over {partition} is at most {bound:.3g}, {says} the margin of {margin:g}"
    return Equivalence(name, tv, bound, margin, p_value, n, bound < margin, detail, True, bounds)


def detectable_tv(n: int, cells: int, level: float, power: float = 0.9) -> float:
    """The smallest TV that a chi-square test over `cells` cells with n tokens would find with this power; at most 1.

    0.5 sqrt(lambda / n), lambda the non-centrality at which the test of `level` with cells - 1 degrees of freedom has
    this power. Since TV <= 0.5 sqrt(sum (r - p)^2 / p) = 0.5 sqrt(lambda / n), a bias of this TV or more has at least
    this power.

    >>> [round(detectable_tv(n, cells=8, level=0.001), 3) for n in (1_000, 100_000)]
    [0.089, 0.009]
    """
    if cells < 2:
        raise InputError(f"cells is {cells}; a partition has 2 cells or more")
    return min(1.0, 0.5 * float(np.sqrt(non_centrality(cells - 1, level, power) / n))) if n else 1.0


def non_centrality(freedom: int, level: float, power: float) -> float:
    """The lambda at which a chi-square test with `freedom` degrees of freedom has the power."""
    check_level(level)
    check_level(power, "power")
    if power <= level:
        return 0.0
    limit = stats.chi2.isf(level, freedom)
    upper = 10.0 * (limit + 10.0)
    return float(optimize.brentq(lambda value: stats.ncx2.sf(limit, freedom, value) - power, 1e-9, upper))


def detectable_by_e_process(n: int, level: float, weight: float = 1.0) -> float:
    """The smallest TV per token whose e-process is expected to reach 1 / level within n tokens; at most 1.

    sqrt(ln(1 / (level weight)) / (2 n)), weight being the share of the process in the mean of all. By Pinsker's
    KL >= 2 TV^2: when the alternative is the true law, its log grows by 2 TV^2 a token or more. No alternative does
    better, and one that is off needs two to three times the tokens.

    >>> [round(detectable_by_e_process(n, level=0.001), 3) for n in (1_000, 100_000)]
    [0.059, 0.006]
    """
    check_level(level)
    return min(1.0, float(np.sqrt(np.log(1 / (level * weight)) / (2 * n)))) if n else 1.0


def holm(p_values: Mapping[str, float], level: float) -> dict[str, float]:
    """Holm's step-down: adjusted p-values, in the given order; those at most `level` are rejected.

    The i-th smallest of m is multiplied by m - i + 1, and is never smaller than those before it (Holm 1979). Leave out
    tests that do not apply, by a rule that does not look at their result.

    >>> holm({"cells": 0.04, "overweight": 0.01, "acceptance": 0.5}, level=0.05)
    {'cells': 0.08, 'overweight': 0.03, 'acceptance': 0.5}
    """
    check_level(level)
    for name, value in p_values.items():
        if not 0.0 <= value <= 1.0:
            raise InputError(f"the p-value of {name} is {value}; it must be from 0 to 1")
    adjusted, largest = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}
