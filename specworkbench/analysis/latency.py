"""Where the time goes: T_target(n), the costs c, v(n) and o in target steps, and each sequence's TTFT and TPOT.

Every cost is in units of T_target(1), the time of one plain target step: the median of `ms_verify + ms_accept` over
rounds that forward one position. They come from the plain trace given alongside or, without one, from the plain rounds
of the trace itself; where there are none, costs are None.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from specworkbench.analysis.estimate import Estimate, median
from specworkbench.trace import Trace


def target_time(trace: Trace, plain: Trace | None = None) -> pd.DataFrame:
    """T_target(n), one row a number of target positions: target_positions, rounds, ms (median), low, high.

    A row covers forwards of any context length. low..high is NaN with fewer than six rounds.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> list(target_time(trace)["target_positions"])
    [1, 2, 3, 4, 5]
    """
    rounds = trace.rounds
    if plain is not None:
        rounds = pd.concat(
            [plain.rounds[plain.rounds["target_positions"] == 1], rounds[rounds["target_positions"] > 1]]
        )
    taken = _target_ms(rounds)
    rows = []
    for positions in np.unique(rounds["target_positions"]):
        time = median(taken[rounds["target_positions"].to_numpy() == positions])
        rows.append((int(positions), time.n, *time))
    table = pd.DataFrame(rows, columns=["target_positions", "rounds", "ms", "low", "high"])
    return table.astype({"target_positions": np.int64, "rounds": np.int64, "ms": float, "low": float, "high": float})


def plain_step_ms(trace: Trace, plain: Trace | None = None) -> float | None:
    """T_target(1) in ms, or None where no plain round was timed."""
    return _time_of(trace if plain is None else plain, 1).value


def cost_set(trace: Trace) -> float | None:
    """The cost c that was set for an instrument, a proposer that reads the target ahead; None for a real proposer.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> cost_set(trace) is None
    True
    """
    return trace.manifest["proposer"].get("cost_set")


def draft_cost(trace: Trace, plain: Trace | None = None) -> Estimate:
    """c: the proposer's time per token proposed (median over rounds that proposed), over T_target(1). n: rounds.

    Where the proposer's cost is set, it is that (n is 0): nothing was measured, and its time is not its cost.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> 0 < draft_cost(trace).value < 1
    True
    """
    if (cost := cost_set(trace)) is not None:
        return Estimate(cost, None, None, 0)
    rounds = trace.rounds[trace.rounds["proposed"] > 0]
    return median(rounds["ms_propose"] / rounds["proposed"]).over(plain_step_ms(trace, plain))


def verify_cost(trace: Trace, target_positions: int, plain: Trace | None = None) -> Estimate:
    """v(n) = T_target(n) / T_target(1) for n = target_positions. n: rounds; a round of gamma tokens has gamma + 1.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> verify_cost(trace, 5).value > 0
    True
    """
    source = plain if plain is not None and target_positions == 1 else trace
    return _time_of(source, target_positions).over(plain_step_ms(trace, plain))


def loop_overhead(trace: Trace, plain: Trace | None = None) -> Estimate:
    """o: what a round takes beside proposer, target and rule (median), over T_target(1). n: rounds.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> loop_overhead(trace).value > 0
    True
    """
    rounds = trace.rounds
    rest = rounds["ms_total"].to_numpy() - rounds["ms_propose"].to_numpy() - _target_ms(rounds)
    return median(rest).over(plain_step_ms(trace, plain))


def latency_by_sequence(trace: Trace) -> pd.DataFrame:
    """One row a sequence: sequence, id, bucket, tokens, rounds, ms_prefill, ms_ttft, ms_tpot, ms_total.

    ms_ttft: time to the first token: both prefills and the whole first round, all of whose tokens come at once.
    ms_tpot: time per token after the first, (ms_total - ms_ttft) / (tokens - 1); NaN for fewer than two tokens.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> latency_by_sequence(trace)[["id", "bucket", "tokens", "rounds"]].head(2)
            id bucket  tokens  rounds
    0  code-01   code      64      35
    1  code-02   code      64      25
    """
    first = trace.rounds[trace.rounds["round"] == 0].set_index("sequence")["ms_total"]
    rounds = trace.rounds["sequence"].value_counts()
    rows = []
    for index, sequence in enumerate(trace.sequences):
        tokens, prefill = len(sequence["token_ids"]), _ms(sequence["ms_prefill"])
        total = _ms(sequence["ms_total"])
        ttft = prefill + (sequence.get("ms_draft_prefill") or 0.0) + first.get(index, np.nan)
        tpot = (total - ttft) / (tokens - 1) if tokens > 1 else np.nan
        count = int(rounds.get(index, 0))
        rows.append((index, sequence["id"], sequence["bucket"], tokens, count, prefill, ttft, tpot, total))
    names = ["sequence", "id", "bucket", "tokens", "rounds", "ms_prefill", "ms_ttft", "ms_tpot", "ms_total"]
    return pd.DataFrame(rows, columns=names)


def _target_ms(rounds: pd.DataFrame) -> np.ndarray:
    return (rounds["ms_verify"] + rounds["ms_accept"]).to_numpy()


def _time_of(trace: Trace, target_positions: int) -> Estimate:
    return median(_target_ms(trace.rounds[trace.rounds["target_positions"] == target_positions]))


def _ms(value: float | None) -> float:
    return np.nan if value is None else float(value)
