"""What a round costs, in target steps, and what its tokens are worth against that.

T_target(n) is the time of a target forward over n positions, v(n) = T_target(n) / T_target(1), c the proposer's time
per proposed token over T_target(1), o the loop's own time per round over T_target(1). All formulas here are derived:
a speedup is the plain time per token, T_target(1), over the speculative time per token, the round's time over E[N].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.theory.arguments import (
    cost,
    count,
    duration,
    positive,
    positive_cost,
    scalar_or_array,
    tokens_per_round,
)

VerifyCosts = float | ArrayLike | Callable[[int], float]
"""v over n: one number for every n, a table v(1), v(2), ..., or a function of n."""

MAX_GAMMA = 64
"""How far a best gamma is looked for where no table of v ends before."""

TIE = 1e-12
"""Two speedups that differ by less than this share are equal, and the smaller gamma is taken."""


def round_cost(
    gamma: ArrayLike, c: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """gamma c + v(gamma + 1) + o, target steps per round.

    verify_cost: v(gamma + 1). Left alone the keywords give Leviathan et al. 2023, Theorem 3.8's gamma c + 1. It takes
    proposer, target and loop to work one after the other; what overlaps in time is to be left out of o.

    >>> round_cost(4, 0.25), round_cost(4, 0.25, verify_cost=1.5, overhead=0.125)
    (2.0, 2.625)
    """
    gamma, c = count("gamma", gamma), cost("c", c)
    return scalar_or_array(gamma * c + positive_cost("verify_cost", verify_cost) + cost("overhead", overhead))


def implied_tokens(
    speedup: ArrayLike, gamma: ArrayLike, c: ArrayLike, *, verify_cost: ArrayLike = 1.0, overhead: ArrayLike = 0.0
) -> float | np.ndarray:
    """E[N] that a speedup stands for at these costs, tokens per round: S (gamma c + v + o).

    `theory.speedup` solved for E[N]: what a report that gives only times says about acceptance. A value above
    gamma + 1 says that the costs are not those of the report.

    >>> implied_tokens(1.5, 4, 0.25, verify_cost=1.5, overhead=0.125)
    3.9375
    """
    steps = round_cost(gamma, c, verify_cost=verify_cost, overhead=overhead)
    return scalar_or_array(positive("speedup", speedup) * steps)


def batched_speedup(
    expected_tokens: ArrayLike,
    gamma: ArrayLike,
    plain_time: ArrayLike,
    draft_time: ArrayLike,
    verify_time: ArrayLike,
    overhead_time: ArrayLike = 0.0,
) -> float | np.ndarray:
    """S = E[N] T_t(B, 1) / (gamma T_d(B) + T_t(B, gamma + 1) + T_o), for B sequences decoded together.

    expected_tokens: E[N] of one sequence. Times of one batch, in any one unit: plain_time T_t(B, 1), the target's plain
    step; draft_time T_d(B), the proposer's per token proposed; verify_time T_t(B, gamma + 1); overhead_time T_o. Plain
    and speculative decoding have the same B, and no sequence waits for another: rounds start together, and each keeps
    its own accepted length. With times over T_t(B, 1) it is the cost-aware form of `theory.speedup`.

    >>> batched_speedup(3.0, 4, plain_time=[20, 22, 40], draft_time=[2, 2.5, 4], verify_time=[22, 32, 130]).round(2)
    array([2.  , 1.57, 0.82])
    """
    tokens, gamma = tokens_per_round("expected_tokens", expected_tokens), count("gamma", gamma)
    spent = gamma * duration("draft_time", draft_time) + positive("verify_time", verify_time)
    spent = spent + duration("overhead_time", overhead_time)
    return scalar_or_array(tokens * positive("plain_time", plain_time) / spent)


def verify_cost_at(verify_costs: VerifyCosts, positions: ArrayLike) -> np.ndarray:
    """v(n) for n = positions, from v over n in any of its three shapes; see `VerifyCosts`.

    Raises `InputError` where a table ends before n, and for what is no positive cost.
    """
    positions = count("positions", positions).astype(np.int64)
    if callable(verify_costs):
        found = [verify_costs(int(n)) for n in positions.flat]
        return positive_cost("verify_costs", found).reshape(positions.shape)
    table = positive_cost("verify_costs", verify_costs)
    if table.ndim == 0:
        return np.full(positions.shape, float(table))
    if table.ndim > 1:
        raise InputError(f"verify_costs has shape {table.shape}; it must be a list of v(1), v(2), ...")
    if positions.max(initial=1) > len(table):
        raise InputError(
            f"verify_costs has {len(table)} entries, v(1) to v({len(table)}), and v({positions.max()}) is asked for; "
            "measure that many positions, or ask for a smaller gamma"
        )
    return table[positions - 1]


def last_gamma(verify_costs: VerifyCosts, max_gamma: int | None) -> int:
    """The greatest gamma to look at: what is asked for, else how far a table of v reaches, else `MAX_GAMMA`."""
    if max_gamma is not None:
        return int(count("max_gamma", max_gamma))
    if callable(verify_costs) or np.ndim(verify_costs) == 0:
        return MAX_GAMMA
    return len(verify_costs) - 1


def best_gamma(tokens: np.ndarray, c: np.ndarray, verify_costs: VerifyCosts, overhead: np.ndarray) -> np.ndarray:
    """The gamma with the greatest tokens / (gamma c + v(gamma + 1) + o), the smallest such.

    tokens: (..., max_gamma + 1) E[N] for gamma = 0, 1, ..; c, overhead: (...). gamma = 0 is plain decoding, whose
    speedup is 1: it has no speculative loop to pay for.
    """
    gamma = np.arange(tokens.shape[-1])
    steps = gamma * c[..., None] + verify_cost_at(verify_costs, gamma + 1) + overhead[..., None]
    gain = tokens / np.where(gamma == 0, 1.0, steps)
    return np.argmax(gain >= gain.max(axis=-1, keepdims=True) * (1 - TIE), axis=-1)
