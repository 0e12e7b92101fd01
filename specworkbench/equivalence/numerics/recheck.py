"""A recorded trace against its target: every p again, from tokens alone, by forwards over whole prefixes.

The one contract on traces that needs the model, and so stands beside the registry of `trace.contracts`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from specworkbench.engine.models import LanguageModel
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.numerics.fresh import round_logits
from specworkbench.equivalence.numerics.settings import penalised, processed
from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.trace.contracts import Contract
from specworkbench.trace.view import Broken, Finding, View

LOGIT_ALLOWANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.25}
"""By how much a correct logit may differ between two forwards, by the coarser dtype of the two (float64: transformers
computes norms and rotary angles in float32 in any dtype)."""
ROUNDS = 64
"""Rounds that the contract replays where nobody says how many."""


def recheck(trace: Trace, target: LanguageModel, rounds: int | None = None) -> pd.DataFrame:
    """p of every token of the trace's rounds, as recorded and by a fresh forward; rounds: so many, evenly spread.

    Columns: sequence, round, position, node, token, outcome, p, fresh, difference (see `compared`).
    Raises `InputError` for a target of another vocabulary, a context it cannot read, and a number of rounds below 1.

    >>> from specworkbench.equivalence import record, table_setup
    >>> setup = table_setup(length=6)
    >>> recheck(record(setup, sequences=1), setup.target)[["round", "token", "outcome", "p", "fresh"]].head(2).round(3)
       round  token   outcome      p  fresh
    0      0      0  accepted  0.198  0.198
    1      0      1  accepted  0.555  0.555
    """
    if rounds is not None and rounds < 1:
        raise InputError(f"the number of rounds to replay is {rounds}; it must be at least 1")
    recorded = int(trace.manifest["target"]["vocab_size"])
    if recorded != target.vocab_size:
        raise InputError(
            f"the trace's target has {recorded} tokens and {target.name} has {target.vocab_size}; name the model that "
            f"the trace was recorded with ({trace.manifest['target']['name']})"
        )
    sampling = SamplingSettings(**trace.manifest["sampling"])
    slack = allowed(trace, target)
    found = []
    for number in _spread(len(trace.rounds), rounds):
        step = trace.rounds.iloc[number]
        positions, rows = _replayed(trace, step, target)
        for record in positions.to_dict("records"):
            before, logits = rows[record["parent"] + 1]
            found.append(record | compared(record["p"], record["token"], logits, before, sampling, slack))
    return pd.DataFrame(found, columns=[*KEPT, "fresh", "difference"])


KEPT = ("sequence", "round", "position", "node", "token", "outcome", "p")


def allowed(trace: Trace, target: LanguageModel) -> float:
    """By how much rounding may change what `recheck` compares: probabilities, at temperature 0 logits.

    When no logit moves by more than a, before temperature T and penalty r, the log odds of a token move by at most
    2 a max(r, 1/r) / T, and its probability by at most a quarter of that.

    >>> from specworkbench.equivalence import record, table_setup
    >>> setup = table_setup(length=6)
    >>> allowed(record(setup, sequences=1), setup.target)
    5e-07
    """
    sampling = SamplingSettings(**trace.manifest["sampling"])
    own = str(target.dtype).removeprefix("torch.")
    of_logit = max(LOGIT_ALLOWANCE[dtype] for dtype in (own, trace.manifest["target"]["dtype"]))
    of_logit *= max(sampling.repetition_penalty, 1 / sampling.repetition_penalty)
    return 2 * of_logit if sampling.greedy else of_logit / (2 * sampling.temperature)


def run(trace: Trace, target: LanguageModel, rounds: int | None = ROUNDS) -> tuple[Contract, Finding]:
    """The contract "fresh rows" with what it found, as `contracts.run` gives those of the registry."""
    meaning = "p is what a fresh forward over the whole prefix gives, up to rounding"
    contract = Contract("fresh rows", meaning, False, lambda view: check_fresh_rows(view.trace, target, rounds))
    return contract, check_fresh_rows(trace, target, rounds)


def check_fresh_rows(trace: Trace, target: LanguageModel, rounds: int | None = ROUNDS) -> Finding:
    """Pass, or fail at the first round with a p further from the fresh one than `allowed`. Raises as `recheck` does.

    >>> from specworkbench.equivalence import MUTANTS, record, table_setup
    >>> right = table_setup(length=12)
    >>> wrong = next(mutant for mutant in MUTANTS if mutant.name == "rejected_token_stays").apply(right)
    >>> [check_fresh_rows(record(setup, sequences=2), right.target).status for setup in (right, wrong)]
    ['pass', 'fail']
    """
    try:
        View(trace)
        found, allowance = recheck(trace, target, rounds), allowed(trace, target)
    except InputError:
        raise
    except (Broken, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        return Finding("fail", f"the trace is too broken to replay ({type(error).__name__}: {error})")
    if found.empty:
        return Finding("not recorded", "the trace has no rounds")
    bad = found[~(found["difference"] <= allowance)]
    unit = "a logit" if SamplingSettings(**trace.manifest["sampling"]).greedy else "p"
    replayed = len(found.groupby(["sequence", "round"]))
    detail = (
        f"{replayed} of {len(trace.rounds)} rounds replayed, {len(found)} tokens: the largest difference of {unit} is "
        f"{found['difference'].max():.2g}, {allowance:.2g} is allowed in {trace.manifest['target']['dtype']}"
    )
    if bad.empty:
        return Finding("pass", detail)
    first = bad.iloc[0]
    lead = f"position {first['position']} ({first['outcome']}): p is {first['p']:.6g}, fresh {first['fresh']:.6g}; "
    return Finding("fail", lead + detail, int(first["sequence"]), int(first["round"]))


def _replayed(trace: Trace, step: pd.Series, target: LanguageModel) -> tuple[pd.DataFrame, list]:
    """The positions of a round, and what `round_logits` gives for it."""
    sequence, length = trace.sequences[int(step["sequence"])], int(step["context_length"])
    context = [*sequence["prompt_tokens"], *sequence["token_ids"]][:length]
    positions = trace.round_positions(int(step["sequence"]), int(step["round"]))
    guesses = positions[positions["node"] >= 0].sort_values("node")
    if len(context) < length:
        raise ValueError(f"round {step['round']} begins after {length} tokens, and there are {len(context)}")
    if length + len(guesses) > target.max_context:
        raise InputError(f"{target.name} reads at most {target.max_context} tokens, the trace has longer contexts")
    if max([*context, *positions["token"]]) >= target.vocab_size:
        raise ValueError("a token is not in the vocabulary")
    return positions, round_logits(context, guesses["token"].tolist(), target, parents=guesses["parent"].tolist())


def compared(
    p: float, token: int, logits: np.ndarray, before: list[int], sampling: SamplingSettings, slack: float
) -> dict[str, float]:
    """fresh: the token's probability from these logits (vocab,) after the tokens `before`; difference: p from it.

    Where top-k, top-p or min-p cut, a token at the edge may fall on either side by a rounding (`slack`, of a
    probability): the difference is that from the nearest value that p can have then. At temperature 0, where p is 0 or
    1, it is zero where the two agree and otherwise how far apart the logits are that decided.
    """
    fresh = float(processed(logits, before, sampling)[token])
    scores = penalised(logits, before, sampling)
    if sampling.greedy:
        second, best = np.sort(scores)[-2:]
        return {"fresh": fresh, "difference": 0.0 if p == fresh else float(best - (scores[token] if p else second))}
    scores /= sampling.temperature
    weights = np.exp(scores - scores.max())
    loose, tight = (_kept(scores, weights, sampling, sign * slack) for sign in (1, -1))
    low = high = 0.0
    if loose[token]:
        low = weights[token] / weights[loose].sum()
        surely = tight | (np.arange(len(scores)) == token)
        high = weights[token] / weights[surely].sum()
    difference = max(low - p, p - high, 0.0)
    return {"fresh": fresh, "difference": float(difference if tight[token] else min(difference, p))}


def _kept(scores: np.ndarray, weights: np.ndarray, sampling: SamplingSettings, slack: float) -> np.ndarray:
    """(vocab,) bools: the tokens that may be kept (slack above 0), or that surely are (below 0)."""
    kept, k = np.ones(len(scores), dtype=bool), sampling.top_k
    falling = np.argsort(-scores, kind="stable")
    if 0 < k < len(scores):  # log odds move four times as far as probabilities
        kept &= scores >= scores[falling[k - 1 if slack > 0 else k]] - 4 * slack
        kept[falling[0]] = True
    if sampling.top_p < 1.0:
        mass = np.where(kept, weights, 0.0) / weights[kept].sum()
        upto = np.cumsum(np.append(0.0, mass[falling]))
        if slack > 0:  # among its near equals a token may come first, or last
            before = upto[np.searchsorted(-scores[falling], -scores - 4 * slack, side="left")]
        else:
            before = upto[np.searchsorted(-scores[falling], -scores - 4 * slack, side="right")] - mass
        kept &= before < sampling.top_p + slack
        kept[falling[0]] = True
    if sampling.min_p:
        kept &= weights >= sampling.min_p * (1 - 4 * slack) * weights.max()
    return kept


def _spread(count: int, wanted: int | None) -> Iterator[int]:
    """So many of 0..count - 1, evenly spread, the first and the last among them; all where it is not said how many."""
    if wanted is None or wanted >= count:
        return iter(range(count))
    return iter(np.unique(np.linspace(0, count - 1, wanted).round().astype(int)).tolist())
