"""What formulas of growing honesty predict, beside what was measured.

A formula speaks of rounds alone, steady and undisturbed: no prefill, no end of an output, no pause. How far it is from
the measured speedup is told for all three readings of that.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from specworkbench import theory
from specworkbench.analysis.acceptance import alpha_counts
from specworkbench.analysis.dependence import whole_rounds
from specworkbench.analysis.gap import Gap
from specworkbench.analysis.latency import cost_set, draft_cost, plain_step_ms
from specworkbench.analysis.parts import has_trees
from specworkbench.analysis.speedup import predicted_speedup, shared
from specworkbench.trace import Trace

COLUMNS = ("prediction", "formula", "speedup", "error", "error_rounds", "error_undisturbed")
NAMES = {
    "i.i.d., target step": "E[N] / (gamma c + 1)",
    "i.i.d., cost-aware": "E[N] / (gamma c + v(gamma + 1))",
    "survival, cost-aware": "(1 + sum S_j) T_plain / T_round, medians by size of the proposal",
    "the same, mean costs": "(1 + sum S_j) T_plain / T_round, means by size of the proposal",
}


def predictions(plain: Trace, speculative: Trace, gap: Gap) -> pd.DataFrame:
    """One row a prediction: prediction, formula, speedup, and its relative error against three measured speedups.

    gap: of the same traces. error: against that of whole sequences; error_rounds: of rounds alone; error_undisturbed:
    of rounds without their pauses. The first two formulas are Leviathan's Theorem 3.8 and its cost-aware form with
    `alpha_counts`, the medians c and v(gamma + 1); NaN of trees, and where something was not measured.
    """
    plain, speculative = shared(plain, speculative)
    values = [
        _theorem(plain, speculative),
        predicted_speedup(plain, speculative),
        survival_speedup(plain, speculative),
        survival_speedup(plain, speculative, mean=True),
    ]
    table = pd.DataFrame({"prediction": list(NAMES), "formula": list(NAMES.values()), "speedup": values})
    table = table.astype({"speedup": float})
    measured = gap.speedup.value, gap.after("pauses"), gap.after("loop")
    return table.assign(**{name: table["speedup"] / of - 1 for name, of in zip(COLUMNS[3:], measured, strict=True)})


def survival_speedup(plain: Trace, speculative: Trace, *, mean: bool = False) -> float:
    """(1 + sum_j S_j) T_plain / T_round: cost-aware, and right whatever the dependence between positions (derived).

    S_j: share of the rounds that no limit shortened in which j guesses were accepted. T_plain: time of a plain round.
    T_round: mean over those rounds of the time of a round that proposes as much; a time is the median over such rounds
    (or the mean). Where every round proposes gamma tokens it is E[N] (1 + o) / (gamma c + v(gamma + 1) + o'), with o
    and o' what a plain and a speculative round take beside; otherwise every size of proposal has its own c, v and o'.
    Where the proposer's cost is set, a round takes that for its tokens, and what opening a plain round takes.
    """
    rounds = whole_rounds(speculative)
    survival = [(rounds["accepted"] >= position).mean() for position in range(1, int(rounds["gamma"].max()) + 1)]
    ms, kind = rounds["ms_total"], "mean" if mean else "median"
    if (cost := cost_set(speculative)) is not None:
        opened = plain.rounds["ms_propose"].agg(kind)
        ms = ms - rounds["ms_propose"] + opened + cost * plain_step_ms(plain) * rounds["proposed"]
    typical = ms.groupby(rounds["proposed"]).transform(kind).mean()
    tokens = theory.expected_tokens_survival(np.array(survival))
    return float(tokens * plain.rounds["ms_total"].agg(kind) / typical)


def _theorem(plain: Trace, speculative: Trace) -> float | None:
    """Leviathan et al. 2023, Theorem 3.8."""
    alpha, c = alpha_counts(speculative).value, draft_cost(speculative, plain).value
    if has_trees(speculative) or None in (alpha, c):
        return None
    return theory.speedup(alpha, speculative.gamma, c)
