"""How much of what was proposed is kept: both alphas, by position, bucket and output index, and tokens per round.

Of a tree every node counts as a position in `alpha_counts`, `alpha_overlap`, `accepted_per_proposed` and
`acceptance_by`; `acceptance_by_position` goes by depth, and counts rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from specworkbench.analysis.estimate import Estimate, ratio_of_totals, wilson
from specworkbench.analysis.parts import has_trees, prompt_totals
from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.trace.schema import EXAMINED, PROPOSED

POSITION_COLUMNS = (
    "position", "examined", "accepted", "acceptance", "low", "high", "overlap",
    "rounds", "survived", "survival", "survival_low", "survival_high",
)  # fmt: skip


def alpha_counts(trace: Trace) -> Estimate:
    """accepted / examined, interval by cluster bootstrap over prompts. n: examined positions.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> alpha = alpha_counts(trace)
    >>> round(alpha.value, 3), alpha.low < alpha.value < alpha.high, alpha.n
    (0.657, True, 350)
    """
    return _of_rounds(trace, trace.rounds["accepted"], trace.rounds["examined"])


def alpha_overlap(trace: Trace) -> Estimate:
    """Mean of sum_x min(p, q) over examined positions, interval by cluster bootstrap over prompts.

    Equal to `alpha_counts` in expectation under the token rule, and of less variance; under another rule it is the
    overlap and no acceptance. n: examined positions.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(alpha_overlap(trace).value, 3)
    0.667
    """
    examined = _examined(trace)
    examined = examined[examined["overlap"].notna()]
    totals = [
        prompt_totals(trace, examined["sequence"], values) for values in (examined["overlap"], np.ones(len(examined)))
    ]
    return ratio_of_totals(*totals)


def block_efficiency(trace: Trace) -> Estimate:
    """Measured E[N]: mean verdict length, tokens per round, interval by cluster bootstrap over prompts.

    Over all rounds whose proposal was not shortened by the remaining budget or the end of a context: a round whose
    proposer found no guess counts, with N = 1, and so does a round that EOS cuts afterwards. n: those rounds.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(block_efficiency(trace).value, 3), block_efficiency(trace).n
    (2.573, 143)
    """
    whole = (trace.rounds["shortened"] == "").to_numpy()
    return _of_rounds(trace, trace.rounds["verdict_length"] * whole, whole)


def emitted_per_forward(trace: Trace) -> Estimate:
    """Emitted tokens over target forwards of rounds (prefill apart). n: rounds.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(emitted_per_forward(trace).value, 3)
    2.494
    """
    return _of_rounds(trace, trace.rounds["emitted"], np.ones(len(trace.rounds)))


def accepted_per_proposed(trace: Trace) -> Estimate:
    """accepted / proposed, which counts discarded tokens as if they had been judged: no alpha. n: proposed tokens.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> round(accepted_per_proposed(trace).value, 3)
    0.395
    """
    return _of_rounds(trace, trace.rounds["accepted"], trace.rounds["proposed"])


def acceptance_by_position(trace: Trace) -> pd.DataFrame:
    """One row a position 1..gamma of the round: depth 1..gamma of a tree.

    examined, accepted: positions so many, of a tree rounds that tried, or kept, a node of that depth; acceptance:
    accepted / examined, conditional on everything before it being accepted, with Wilson's interval low..high; overlap:
    mean of sum_x min(p, q) over the examined positions or nodes; rounds: rounds that asked for at least so many tokens
    and proposed any; survived: those that accepted so many; survival: S_j = survived / rounds, unconditional, with
    Wilson's interval. NaN where nothing was examined.

    Where a draft stopped at the end of its context, what it made is what was asked for.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> acceptance_by_position(trace)[["position", "examined", "accepted", "acceptance", "survival"]].round(3)
       position  examined  accepted  acceptance  survival
    0         1       150       100       0.667     0.667
    1         2        99        60       0.606     0.411
    2         3        60        42       0.700     0.292
    3         4        41        28       0.683     0.196
    """
    rounds = trace.rounds
    examined, accepted, proposed = (rounds[name].to_numpy() for name in ("examined", "accepted", "proposed"))
    if has_trees(trace):
        examined, proposed = _deepest(trace, EXAMINED), _deepest(trace, PROPOSED)
    asked = np.where(rounds["shortened"] == "draft_context", proposed, rounds["asked"])
    overlap = _examined(trace).groupby("position")["overlap"].mean()
    rows = []
    for position in range(1, int(rounds["gamma"].max() if len(rounds) else 0) + 1):
        reached, kept = int((examined >= position).sum()), int((accepted >= position).sum())
        able = int(((asked >= position) & (proposed > 0)).sum())
        mean_overlap = overlap.get(position)
        rows.append((position, reached, kept, *wilson(kept, reached), mean_overlap, able, kept, *wilson(kept, able)))
    counts = {name: np.int64 for name in ("position", "examined", "accepted", "rounds", "survived")}
    types = {name: counts.get(name, np.float64) for name in POSITION_COLUMNS}
    return pd.DataFrame(rows, columns=list(POSITION_COLUMNS)).astype(types)


def survival_by_position(trace: Trace) -> list[float | None]:
    """S_1..S_gamma: the share of rounds whose first j tokens were all accepted; None where no round asked for j.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> [round(share, 3) for share in survival_by_position(trace)]
    [0.667, 0.411, 0.292, 0.196]
    """
    return _or_none(acceptance_by_position(trace)["survival"])


def conditional_by_position(trace: Trace) -> list[float | None]:
    """Acceptance at 1..gamma of the positions examined there; None where none was."""
    return _or_none(acceptance_by_position(trace)["acceptance"])


def acceptance_by(trace: Trace, by: str, *, bins: int | Sequence[int] = 8) -> pd.DataFrame:
    """Acceptance of examined positions by "bucket" or "output_index", with Wilson's interval.

    Columns: `by`, examined, accepted, acceptance, low, high, overlap. For "output_index", the place in the output
    that the token would take, rows are the bins from `output_index` up to, but without, `output_index_end`; bins: how
    many, of equal width, or their edges.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> acceptance_by(trace, "bucket")[["bucket", "examined", "accepted", "acceptance"]].round(3)
           bucket  examined  accepted  acceptance
    0        code       122        68       0.557
    1       prose       121        65       0.537
    2  structured       107        97       0.907
    """
    examined = _examined(trace)
    if by == "bucket":
        names = np.array([sequence["bucket"] for sequence in trace.sequences], dtype=object)
        group, labels = pd.factorize(names[examined["sequence"].to_numpy()])
        keys = pd.DataFrame({"bucket": labels})
    elif by == "output_index":
        place = output_index(trace, examined)
        edges = bin_edges(bins, int(place.max()) + 1 if len(place) else 1)
        group = np.searchsorted(edges, place, side="right") - 1
        keys = pd.DataFrame({"output_index": edges[:-1], "output_index_end": edges[1:]})
    else:
        raise InputError(f"acceptance can be told by 'bucket' or 'output_index', not by {by!r}")
    accepted = (examined["outcome"] == "accepted").to_numpy()
    overlap = examined["overlap"].to_numpy()
    rows = []
    for number in range(len(keys)):
        inside = group == number
        share = wilson(int(accepted[inside].sum()), int(inside.sum()))
        rows.append((share.n, int(accepted[inside].sum()), *share, overlap[inside].mean() if share.n else None))
    cells = pd.DataFrame(rows, columns=["examined", "accepted", "acceptance", "low", "high", "overlap"])
    return pd.concat([keys, cells.astype({name: np.float64 for name in cells.columns[2:]})], axis=1)


def output_index(trace: Trace, positions: pd.DataFrame) -> np.ndarray:
    """(positions,) the index in the output that the token of each of these positions has, or would have had."""
    keys = ["sequence", "round"]
    length = positions[keys].merge(trace.rounds[[*keys, "context_length"]], on=keys, how="left")["context_length"]
    prompt = np.array([len(sequence["prompt_tokens"]) for sequence in trace.sequences], dtype=np.int64)
    before = length.to_numpy() - prompt[positions["sequence"].to_numpy()]
    return before + positions["position"].to_numpy() - 1


def _of_rounds(trace: Trace, numerator: pd.Series | np.ndarray, denominator: pd.Series | np.ndarray) -> Estimate:
    sequence = trace.rounds["sequence"]
    return ratio_of_totals(prompt_totals(trace, sequence, numerator), prompt_totals(trace, sequence, denominator))


def _examined(trace: Trace) -> pd.DataFrame:
    return trace.positions[trace.positions["outcome"].isin(EXAMINED)]


def _deepest(trace: Trace, outcomes: tuple[str, ...]) -> np.ndarray:
    """(rounds,) the largest position of each round with such an outcome, 0 for none; in a chain, how many have it."""
    keys = ["sequence", "round"]
    among = trace.positions[trace.positions["outcome"].isin(outcomes)]
    largest = among.groupby(keys)["position"].max().rename("deepest").reset_index()
    return trace.rounds[keys].merge(largest, on=keys, how="left")["deepest"].fillna(0).to_numpy()


def bin_edges(bins: int | Sequence[int], end: int) -> np.ndarray:
    """Rising edges of so many bins from 0 to `end`, or those given. Raises `InputError` for what makes no bin."""
    if not np.ndim(bins):
        if bins < 1:
            raise InputError(f"bins is {bins}; it must be at least 1, or a list of edges")
        return np.unique(np.linspace(0, end, int(bins) + 1).round().astype(np.int64))
    edges = np.asarray(bins)
    if len(edges) < 2 or (np.diff(edges) <= 0).any():
        raise InputError(f"bins is {list(bins)}; edges must be at least two, and rise")
    return edges


def _or_none(column: pd.Series) -> list[float | None]:
    return [None if pd.isna(value) else float(value) for value in column]
