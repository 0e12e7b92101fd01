"""What formulas of growing honesty predict, beside what was measured.

A formula speaks of rounds alone, steady and undisturbed: no prefill, no end of an output, no pause. How far it is from
the measured speedup is told for all three readings of that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from specworkbench import theory
from specworkbench.analysis.acceptance import alpha_counts
from specworkbench.analysis.dependence import whole_rounds
from specworkbench.analysis.gap import Gap
from specworkbench.analysis.latency import cost_set, draft_cost
from specworkbench.analysis.parts import has_trees
from specworkbench.analysis.speedup import predicted_speedup, shared
from specworkbench.trace import Trace

TRIMMED = 0.05
"""The share of the fastest, and of the slowest, rounds that a typical time leaves out."""
COLUMNS = ("prediction", "formula", "speedup", "error", "error_rounds", "error_undisturbed")
NAMES = {
    "i.i.d., plain steps": "E[N] / (gamma c + 1)",
    "i.i.d., cost-aware": "E[N] / (gamma c + v(gamma + 1))",
    "survival, cost-aware": "(1 + sum S_j) T_plain / T_round by size of proposal, middle nine tenths",
    "the same, medians": "(1 + sum S_j) T_plain / T_round by size of proposal, medians",
}


def predictions(plain: Trace, speculative: Trace, gap: Gap) -> pd.DataFrame:
    """One row a prediction: prediction, formula, speedup, and its relative error against three measured speedups.

    gap: of the same traces. error: against that of whole sequences; error_rounds: of rounds alone; error_undisturbed:
    of rounds without their pauses. The first two formulas are Leviathan's Theorem 3.8 and its cost-aware form with
    `alpha_counts`, the medians c and v(gamma + 1); NaN of trees, and where something was not measured.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, speculative = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> from specworkbench.analysis import gap
    >>> list(predictions(plain, speculative, gap(plain, speculative))["prediction"])
    ['i.i.d., plain steps', 'i.i.d., cost-aware', 'survival, cost-aware', 'the same, medians']
    """
    plain, speculative = shared(plain, speculative)
    values = [
        _theorem(plain, speculative),
        predicted_speedup(plain, speculative),
        survival_speedup(plain, speculative),
        survival_speedup(plain, speculative, np.median),
    ]
    table = pd.DataFrame({"prediction": list(NAMES), "formula": list(NAMES.values()), "speedup": values})
    table = table.astype({"speedup": float})
    measured = gap.speedup.value, gap.after("pauses"), gap.after("loop")
    return table.assign(**{name: table["speedup"] / of - 1 for name, of in zip(COLUMNS[3:], measured, strict=True)})


def typical(ms: np.ndarray) -> float:
    """The mean of the middle nine tenths.

    Like the median it leaves interrupted rounds out. Unlike it, it adds up: where other programs take turns with this
    one, times have two humps, and which of them the median falls on is chance.
    """
    return float(stats.trim_mean(ms, TRIMMED))


def survival_speedup(plain: Trace, speculative: Trace, usual: Callable[[np.ndarray], float] = typical) -> float:
    """(1 + sum_j S_j) T_plain / T_round: cost-aware, and right whatever the dependence between positions (derived).

    S_j: share of the rounds that no limit shortened in which j guesses were accepted. T_plain: the usual time of a
    plain round. T_round: mean over those rounds of the usual time of a round that proposes as much. Where every round
    proposes gamma tokens it is E[N] (1 + o) / (gamma c + v(gamma + 1) + o'), with o and o' what a plain and a
    speculative round take beside; otherwise every size of proposal has its own c, v and o'. Where the proposer's cost
    is set, a round takes that for its tokens, and what opening a plain round takes.
    """
    rounds, plain_rounds = whole_rounds(speculative), plain.rounds
    survival = [(rounds["accepted"] >= position).mean() for position in range(1, int(rounds["gamma"].max()) + 1)]
    ms = rounds["ms_total"]
    if (cost := cost_set(speculative)) is not None:
        step = usual((plain_rounds["ms_verify"] + plain_rounds["ms_accept"]).to_numpy())
        opened = usual(plain_rounds["ms_propose"].to_numpy())
        ms = ms - rounds["ms_propose"] + opened + cost * step * rounds["proposed"]
    each = ms.groupby(rounds["proposed"]).transform(lambda of_size: usual(of_size.to_numpy()))
    tokens = theory.expected_tokens_survival(np.array(survival))
    return float(tokens * usual(plain_rounds["ms_total"].to_numpy()) / each.mean())


def _theorem(plain: Trace, speculative: Trace) -> float | None:
    """Leviathan et al. 2023, Theorem 3.8."""
    alpha, c = alpha_counts(speculative).value, draft_cost(speculative, plain).value
    if has_trees(speculative) or None in (alpha, c):
        return None
    return theory.speedup(alpha, speculative.gamma, c)
