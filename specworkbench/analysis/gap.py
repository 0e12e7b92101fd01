"""The gap between the formula and the measurement, in named steps that add up: from E[N] to the measured speedup.

Every step replaces one assumption of the formula by what was measured, in a fixed order, and the speedup after it has a
plain meaning (`gap_words.STEPS`). All of them come from totals over the same prompts, so that the last is the measured
ratio of totals itself. T_target(1) is here the plain target time per token, a mean, not the median of `latency`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specworkbench import theory
from specworkbench.analysis import gap_words as words
from specworkbench.analysis.dependence import position_totals, survival_product, whole_rounds
from specworkbench.analysis.estimate import Estimate, interval, resamples
from specworkbench.analysis.latency import cost_set
from specworkbench.analysis.parts import has_trees, prompt_totals, prompts
from specworkbench.analysis.speedup import shared
from specworkbench.errors import InputError
from specworkbench.trace import Trace

PAUSE = 10.0
"""A round that takes so many times the median of the rounds that propose as much was interrupted: by the system, by
Python's garbage collection. What it took beyond the median is its pause."""
BOTH_SIDES = ("rollback", "loop", "pauses", "between", "prefill", "draft_prefill")
"""What plain decoding spends time on as well, in the order in which it is taken into account."""
COLUMNS = ("step", "figures", "before", "after", "low", "high", "change", "change_low", "change_high", "factor")

Speedups = Callable[["_Totals"], np.ndarray]


@dataclass(frozen=True)
class Step:
    """One assumption replaced by what was measured.

    name, meaning: in words (`gap_words.STEPS`); figures: the numbers behind it, in words; before: the speedup without
    it; speedup: with it; change: the difference of the two. Intervals by bootstrap over prompts. n: prompts.
    """

    name: str
    meaning: str
    figures: str
    before: float
    speedup: Estimate
    change: Estimate

    @property
    def factor(self) -> float:
        return self.speedup.value / self.before


@dataclass(frozen=True)
class Gap:
    """The way from the ideal speedup down (or up) to the measured one. Walking the steps from `ideal` arrives at it.

    ideal: E[N] for chains (Leviathan et al. 2023, Eq. 1: Theorem 3.8 at c = 0); of trees, and where nothing was
    examined (alpha is then None), the measured tokens per round. speedup: `measured_speedup`, or, where the cost of a
    proposer is set (`cost_set`), the speedup at that cost: its tokens cost so much and its prefill nothing. gamma: a
    mean where a controller chose it. pauses: shares of the plain and of the speculative time (see `PAUSE`).
    """

    ideal: Estimate
    steps: tuple[Step, ...]
    speedup: Estimate
    alpha: float | None
    gamma: float
    cost_set: float | None
    pauses: tuple[float, float]

    def after(self, name: str) -> float:
        """The speedup after the step of this name, a key of `gap_words.STEPS`."""
        wanted = words.STEPS[name].name
        return next(step.speedup.value for step in self.steps if step.name == wanted)

    @property
    def sentence(self) -> str:
        """What the formula says, what was measured, and where most of the difference goes."""
        return words.sentence(self)

    def table(self) -> pd.DataFrame:
        """One row a step: step, figures, before, after with low and high, change with its ends, factor."""
        rows = [
            (step.name, step.figures, step.before, *step.speedup, *step.change, step.factor) for step in self.steps
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({name: float for name in COLUMNS[2:]})

    def as_dict(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return asdict(self) | {"sentence": self.sentence}


def gap(plain: Trace, speculative: Trace) -> Gap:
    """The steps from the ideal speedup to that of `speculative` over `plain`, on the prompts that both decoded.

    Raises `InputError` where the traces cannot be compared, where the first is not plain decoding or the second is, and
    where nothing can be said: no times by phase, or no round that a limit did not shorten.
    """
    _check_sides(plain, speculative)
    plain, speculative = shared(plain, speculative)
    totals, gammas, cost = _totals(plain, speculative), _gammas(speculative), cost_set(speculative)
    whole = totals.weighted(np.ones((1, len(totals.plain["tokens"]))))
    _check_totals(whole, speculative)
    by_formula = not has_trees(speculative) and bool(whole.lengths["examined"][0])
    numbers = _numbers(whole, gammas, cost)
    ideal, steps = _steps(totals, numbers, lambda some: _speedups(some, gammas, cost, by_formula))
    counts = {name: values[0] for name, values in whole.lengths.items()}
    alpha = float(counts["accepted"] / counts["examined"]) if by_formula else None
    gamma = float(counts["whole_by_gamma"] @ gammas / counts["whole"])
    return Gap(ideal, steps, steps[-1].speedup, alpha, gamma, cost, numbers.shares["pauses"])


def _steps(totals: _Totals, numbers: words.Numbers, speedups: Speedups) -> tuple[Estimate, tuple[Step, ...]]:
    """The ideal speedup and the steps from it, with intervals by bootstrap over prompts."""
    prompts = len(totals.plain["tokens"])
    values = speedups(totals.weighted(np.ones((1, prompts))))[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = speedups(totals.weighted(resamples(prompts))) if prompts > 1 else np.empty((len(values), 0))
    reached, changes = (
        [_estimate(float(value), of_it, prompts) for value, of_it in zip(at, among, strict=True)]
        for at, among in ((values, drawn), (np.diff(values), np.diff(drawn, axis=0)))
    )
    keys = list(words.STEPS)[-len(changes) :]
    figures = words.figures(numbers)
    steps = (
        Step(*words.STEPS[key], figures[key], before.value, after, change)
        for key, before, after, change in zip(keys, reached[:-1], reached[1:], changes, strict=True)
    )
    return reached[0], tuple(steps)


class _Totals(NamedTuple):
    """Sums by prompt: of each side tokens, rounds, proposed and ms by kind; lengths: counts of acceptance.

    Every array is (prompts,), or (prompts, positions or gammas).
    """

    plain: dict[str, np.ndarray]
    speculative: dict[str, np.ndarray]
    lengths: dict[str, np.ndarray]

    def weighted(self, weights: np.ndarray) -> _Totals:
        """(n, prompts) weights: the same of n totals, each sum over prompts."""
        return _Totals(*({name: weights @ values for name, values in part.items()} for part in self))


def _totals(plain: Trace, speculative: Trace) -> _Totals:
    """Both sides in the order of the plain trace's prompts."""
    ids, _ = prompts(plain)
    own, _ = prompts(speculative)
    order = [own.index(name) for name in ids]
    after, lengths = _side(speculative), _lengths_by_prompt(speculative)
    in_order = ({name: values[order] for name, values in part.items()} for part in (after, lengths))
    return _Totals(_side(plain), *in_order)


def _side(trace: Trace) -> dict[str, np.ndarray]:
    """Tokens, rounds and ms by prompt. Phases add up to the rounds, and all kinds of ms to the sequences' time."""
    rounds, measured = trace.rounds, cost_set(trace) is None
    ms = pd.DataFrame({"propose": rounds["ms_propose"], "target": rounds["ms_verify"] + rounds["ms_accept"]})
    ms["rollback"] = rounds["ms_rollback"]
    ms["loop"] = rounds["ms_total"] - ms.sum(axis=1)
    ms["propose"] *= measured
    beyond = _beyond(ms, rounds["proposed"])
    ms = (ms - beyond).assign(pauses=beyond.sum(axis=1))
    ids, prompt = prompts(trace)

    def by_prompt(of_sequences: list[float]) -> np.ndarray:
        return np.bincount(prompt, np.array(of_sequences, dtype=np.float64), minlength=len(ids))

    prefill, draft_prefill, total = (
        by_prompt([sequence.get(key) or 0.0 for sequence in trace.sequences])
        for key in ("ms_prefill", "ms_draft_prefill", "ms_total")
    )
    found = {name: prompt_totals(trace, rounds["sequence"], ms[name]) for name in ms}
    return found | {
        "between": total - prefill - draft_prefill - prompt_totals(trace, rounds["sequence"], rounds["ms_total"]),
        "prefill": prefill,
        "draft_prefill": draft_prefill if measured else 0.0 * draft_prefill,
        "tokens": by_prompt([len(sequence["token_ids"]) for sequence in trace.sequences]),
        "rounds": prompt_totals(trace, rounds["sequence"], np.ones(len(rounds))),
        "proposed": prompt_totals(trace, rounds["sequence"], rounds["proposed"]),
        "positions": prompt_totals(trace, rounds["sequence"], rounds["target_positions"]),
    }


def _beyond(ms: pd.DataFrame, proposed: pd.Series) -> pd.DataFrame:
    """Of rounds that were interrupted what each phase took beyond its median; 0 in all others."""
    usual = ms.groupby(proposed.to_numpy()).transform("median")
    whole = ms.sum(axis=1)
    interrupted = whole > PAUSE * whole.groupby(proposed.to_numpy()).transform("median")
    return (ms - usual).clip(lower=0.0).where(interrupted, 0.0)


def _lengths_by_prompt(trace: Trace) -> dict[str, np.ndarray]:
    """Counts by prompt: of examined and accepted tokens, and of the rounds that no limit shortened."""
    rounds, whole = trace.rounds, whole_rounds(trace)
    by_gamma = [prompt_totals(trace, whole["sequence"], whole["gamma"] == gamma) for gamma in _gammas(trace)]
    examined, accepted = position_totals(trace)
    return {
        "examined": prompt_totals(trace, rounds["sequence"], rounds["examined"]),
        "accepted": prompt_totals(trace, rounds["sequence"], rounds["accepted"]),
        "whole": prompt_totals(trace, whole["sequence"], np.ones(len(whole))),
        "whole_length": prompt_totals(trace, whole["sequence"], whole["verdict_length"]),
        "whole_by_gamma": np.array(by_gamma).T,
        "examined_at": examined,
        "accepted_at": accepted,
    }


def _gammas(trace: Trace) -> np.ndarray:
    """What rounds wanted to propose: one number, unless a controller chose."""
    return np.unique(trace.rounds["gamma"]).astype(np.int64)


def _speedups(totals: _Totals, gammas: np.ndarray, cost: float | None, by_formula: bool) -> np.ndarray:
    """(steps + 1, n) the ideal speedup and that after each step, of n totals."""
    plain, own = totals.plain, totals.speculative
    lengths = _lengths(totals, gammas)[0 if by_formula else 2 :]
    step, opened, propose = _before_the_target(totals, cost)
    before, after = step + opened, propose + own["target"] / own["rounds"]
    found = [*lengths, lengths[-1] * before / (propose + step), lengths[-1] * before / after]
    for kind in BOTH_SIDES:
        before, after = before + plain[kind] / plain["tokens"], after + own[kind] / own["rounds"]
        found.append(lengths[-1] * before / after)
    return np.array(found)


def _before_the_target(totals: _Totals, cost: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ms, (n,) each: a plain step; what comes before the target's forward in a plain round, and in a speculative one.

    Where the proposer's cost is set, that is the cost of its tokens and what opening a round takes in plain decoding.
    """
    plain, own = totals.plain, totals.speculative
    step, opened = plain["target"] / plain["tokens"], plain["propose"] / plain["tokens"]
    if cost is None:
        return step, opened, own["propose"] / own["rounds"]
    return step, opened, opened + cost * step * own["proposed"] / own["rounds"]


def _lengths(totals: _Totals, gammas: np.ndarray) -> list[np.ndarray]:
    """Tokens per round, (n,) each: by the formula, by the measured survival, as decided, as emitted."""
    counts, own = totals.lengths, totals.speculative
    examined = counts["examined"]
    alpha = np.divide(counts["accepted"], examined, out=np.zeros_like(examined), where=examined > 0)
    shares = counts["whole_by_gamma"] / counts["whole"][:, None]
    survival = survival_product(counts["examined_at"], counts["accepted_at"], alpha)
    lengths = np.cumsum(np.column_stack([np.ones(len(alpha)), survival]), axis=1)
    by_formula = (shares * theory.expected_tokens(alpha[:, None], gammas)).sum(axis=1)
    by_survival = (shares * lengths[:, gammas]).sum(axis=1)
    return [by_formula, by_survival, counts["whole_length"] / counts["whole"], own["tokens"] / own["rounds"]]


def _numbers(totals: _Totals, gammas: np.ndarray, cost: float | None) -> words.Numbers:
    """What the words on each step tell, of one total."""
    step, opened, propose = (float(ms[0]) for ms in _before_the_target(totals, cost))
    plain, own = ({name: float(values[0]) for name, values in part.items()} for part in totals[:2])
    each_plain = {"propose": opened, "target": step} | {kind: plain[kind] / plain["tokens"] for kind in BOTH_SIDES}
    each = {"propose": propose} | {kind: own[kind] / own["rounds"] for kind in ("target", *BOTH_SIDES)}
    return words.Numbers(
        lengths=[float(length[0]) for length in _lengths(totals, gammas)],
        steps={kind: (ms / step, each[kind] / step) for kind, ms in each_plain.items()},
        shares={
            kind: (ms / sum(each_plain.values()), each[kind] / sum(each.values())) for kind, ms in each_plain.items()
        },
        proposed=own["proposed"] / own["rounds"],
        positions=own["positions"] / own["rounds"],
        cost_set=cost,
    )


def _estimate(value: float, drawn: np.ndarray, prompts: int) -> Estimate:
    """The value with the percentiles of what was drawn; resamples that say nothing are left out."""
    if not len(drawn):
        return Estimate(value, None, None, prompts)
    return Estimate(value, *interval(drawn, np.isfinite(drawn).astype(float)), prompts)


def _check_sides(plain: Trace, speculative: Trace) -> None:
    name = plain.manifest["proposer"]["name"]
    if name != "none":
        raise InputError(f"the first trace was decoded with the proposer {name}; it must be plain decoding (none)")
    if speculative.manifest["proposer"]["name"] == "none":
        raise InputError("both traces are plain decoding; the second must be one with a proposer")


def _check_totals(totals: _Totals, speculative: Trace) -> None:
    if not (totals.plain["target"][0] > 0 and totals.speculative["target"][0] > 0):
        raise InputError("the traces hold no times by phase; decode the prompts again with this program")
    if not totals.lengths["whole"][0]:
        raise InputError(
            f"a limit shortened every proposal: with gamma {speculative.gamma} more than {speculative.gamma} new "
            f"tokens are needed, and at most {speculative.manifest['max_new_tokens']} were asked for"
        )
