"""What a gap is computed from: sums over prompts of tokens, of accepted lengths, and of time by what it went into."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from specworkbench import theory
from specworkbench.analysis.dependence import position_totals, survival_product, whole_rounds
from specworkbench.analysis.latency import cost_set
from specworkbench.analysis.parts import prompt_totals, prompts
from specworkbench.trace import Trace

PAUSE = 10.0
"""A round that takes so many times the median of the rounds that propose as much was interrupted: by the system, by
Python's garbage collection. What its phases took beyond their medians is its pause."""
KINDS = ("propose", "target", "rollback", "loop", "pauses", "between", "prefill", "draft_prefill")
"""What time goes into: up to the target's forward; that and the rule; commit and rollback; what no phase accounts for;
pauses; between rounds; both prefills. All of a sequence's time is of one kind."""
TARGET = KINDS.index("target")

Sums = dict[str, np.ndarray]


@dataclass(frozen=True)
class Totals:
    """Sums by prompt, or, once `weighted`, n sums of them: every array is (prompts,) or (n,), some with a second axis.

    plain, speculative: tokens, rounds, what was proposed, positions of the target, and ms by kind; counts: of examined
    and accepted tokens, and of the rounds that no limit shortened; gammas: what rounds wanted to propose; cost_set: of
    the proposer, in plain steps a token, None where it is measured.
    """

    plain: Sums
    speculative: Sums
    counts: Sums
    gammas: np.ndarray
    cost_set: float | None

    @classmethod
    def of(cls, plain: Trace, speculative: Trace) -> Totals:
        """Of two traces of the same prompts, both in the order of the plain one's."""
        own, _ = prompts(speculative)
        order = [own.index(name) for name in prompts(plain)[0]]
        gammas = np.unique(speculative.rounds["gamma"]).astype(np.int64)
        parts = _side(speculative), _counts(speculative, gammas)
        sides = ({name: values[order] for name, values in part.items()} for part in parts)
        return cls(_side(plain), *sides, gammas, cost_set(speculative))

    @property
    def prompts(self) -> int:
        return len(self.plain["tokens"])

    def weighted(self, weights: np.ndarray) -> Totals:
        """weights: (n, prompts) how often each prompt counts."""
        plain, speculative, counts = (
            {name: weights @ values for name, values in part.items()}
            for part in (self.plain, self.speculative, self.counts)
        )
        return replace(self, plain=plain, speculative=speculative, counts=counts)

    def sum(self) -> Totals:
        """Over all prompts: n is 1."""
        return self.weighted(np.ones((1, self.prompts)))

    def lengths(self) -> np.ndarray:
        """(4, n) tokens per round: by the formula, by the measured survival, as decided, as emitted.

        The first three are of rounds that no limit shortened.
        """
        counts, own = self.counts, self.speculative
        examined, whole = counts["examined"], counts["whole"]
        alpha = np.divide(counts["accepted"], examined, out=np.zeros_like(examined), where=examined > 0)
        shares = counts["whole_by_gamma"] / whole[:, None]
        survival = survival_product(counts["examined_at"], counts["accepted_at"], alpha)
        by_depth = np.cumsum(np.column_stack([np.ones(len(alpha)), survival]), axis=1)
        by_formula = (shares * theory.expected_tokens(alpha[:, None], self.gammas)).sum(axis=1)
        by_survival = (shares * by_depth[:, self.gammas]).sum(axis=1)
        return np.array([by_formula, by_survival, counts["whole_length"] / whole, own["tokens"] / own["rounds"]])

    def times(self) -> np.ndarray:
        """(2, kinds, n) ms by kind: per token of plain decoding, per round of speculative.

        Where the proposer's cost is set, its tokens take that, and opening a round what it takes in plain decoding.
        """
        plain, own = (
            np.array([side[kind] for kind in KINDS]) / side[per]
            for side, per in ((self.plain, "tokens"), (self.speculative, "rounds"))
        )
        if self.cost_set is not None:
            proposed = self.speculative["proposed"] / self.speculative["rounds"]
            own[0] = plain[0] + self.cost_set * plain[TARGET] * proposed
        return np.array([plain, own])


def _side(trace: Trace) -> Sums:
    """Tokens, rounds and ms by prompt. Where the proposer's cost is set, its own time is left out."""
    rounds, measured = trace.rounds, cost_set(trace) is None
    ms = pd.DataFrame({"propose": rounds["ms_propose"], "target": rounds["ms_verify"] + rounds["ms_accept"]})
    ms["rollback"] = rounds["ms_rollback"]
    ms["loop"] = rounds["ms_total"] - ms.sum(axis=1)
    ms["propose"] *= measured
    pauses = _pauses(ms, rounds["proposed"].to_numpy())
    ms = (ms - pauses).assign(pauses=pauses.sum(axis=1))
    ms = ms.assign(of_rounds=rounds["ms_total"], rounds=1.0)
    counted = pd.concat([ms, rounds[["proposed"]], rounds[["target_positions"]]], axis=1)
    sums = {name: prompt_totals(trace, rounds["sequence"], counted[name]) for name in counted}
    total, prefill, draft_prefill = (
        _of_sequences(trace, [sequence.get(key) or 0.0 for sequence in trace.sequences])
        for key in ("ms_total", "ms_prefill", "ms_draft_prefill")
    )
    return sums | {
        "between": total - prefill - draft_prefill - sums["of_rounds"],
        "prefill": prefill,
        "draft_prefill": draft_prefill * measured,
        "tokens": _of_sequences(trace, [len(sequence["token_ids"]) for sequence in trace.sequences]),
    }


def _of_sequences(trace: Trace, values: list[float]) -> np.ndarray:
    """(prompts,) one value a sequence, summed by prompt."""
    ids, prompt = prompts(trace)
    return np.bincount(prompt, np.array(values, dtype=np.float64), minlength=len(ids))


def _pauses(ms: pd.DataFrame, proposed: np.ndarray) -> pd.DataFrame:
    """Of rounds that were interrupted what each phase took beyond its median; 0 in all others."""
    usual = ms.groupby(proposed).transform("median")
    whole = ms.sum(axis=1)
    interrupted = whole > PAUSE * whole.groupby(proposed).transform("median")
    return (ms - usual).clip(lower=0.0).where(interrupted, 0.0)


def _counts(trace: Trace, gammas: np.ndarray) -> Sums:
    rounds, whole = trace.rounds, whole_rounds(trace)
    examined_at, accepted_at = position_totals(trace)
    by_gamma = [prompt_totals(trace, whole["sequence"], whole["gamma"] == gamma) for gamma in gammas]
    return {
        "examined": prompt_totals(trace, rounds["sequence"], rounds["examined"]),
        "accepted": prompt_totals(trace, rounds["sequence"], rounds["accepted"]),
        "whole": prompt_totals(trace, whole["sequence"], np.ones(len(whole))),
        "whole_length": prompt_totals(trace, whole["sequence"], whole["verdict_length"]),
        "whole_by_gamma": np.array(by_gamma).T,
        "examined_at": examined_at,
        "accepted_at": accepted_at,
    }
