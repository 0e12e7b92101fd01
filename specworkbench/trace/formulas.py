"""The check that accept_prob is the rule's own function of p and q, a formula a rule. See `contracts`.

Written anew in numpy from the rules' definitions: it shares nothing with the engine that decided.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specworkbench.trace.rows import WholeRows, whole_rows
from specworkbench.trace.view import Finding, View, not_recorded, passed, worded

Formula = Callable[[View, np.ndarray], Finding | None]
"""A trace and (positions,) which of them have an accept_prob, to a fault or to what is not recorded."""

ROWS_NEAR = 1e-6
"""Allowance on a sum over float32 rows."""


def accept_prob_is_recomputed(view: View) -> Finding:
    rule = view.manifest["rule"]
    if rule["name"] not in FORMULAS:
        return not_recorded(f"the rule {rule['name']!r} has no formula here")
    recorded = view.proposed & ~np.isnan(view.positions["accept_prob"])
    found = FORMULAS[rule["name"]](view, recorded)
    return found or passed(f"{int(recorded.sum())} proposed positions")


# ---------------------------------------------------------------- rules that go by p/q


def _token(view: View, recorded: np.ndarray) -> Finding | None:
    """min(1, p/q), bit for bit; of later children of a node what the refused ones before leave of its row."""
    p, q, prob = (view.positions[name] for name in ("p", "q", "accept_prob"))
    first = view.siblings_before(view.proposed) == 0
    expected = _ratio(view)
    return (
        view.judge(
            ~(recorded & first) | (prob == expected),
            lambda i: worded(
                "accept_prob is {} and min(1, p/q) = {} with p = {}, q = {}", prob[i], expected[i], p[i], q[i]
            ),
        )
        or _later_siblings(view, recorded & ~first, q == 1.0)
        or _sampled_siblings(view, recorded & ~first)
    )


def _lenient(view: View, recorded: np.ndarray) -> Finding | None:
    """min(1, p / (leniency q))."""
    leniency = _settings(view).get("leniency")
    if leniency is None:
        return not_recorded("the manifest does not have the rule's leniency")
    return _near(view, recorded, _ratio(view, limited=False) / leniency, "min(1, p / (leniency q))")


def _ensemble(view: View, recorded: np.ndarray) -> Finding | None:
    """min(1, v/q), v = weight p + (1 - weight) q."""
    weight = _settings(view).get("weight")
    if weight is None:
        return not_recorded("the manifest does not have the rule's weight")
    expected = 1.0 - weight + weight * _ratio(view, limited=False)
    return _near(view, recorded, expected, "min(1, 1 - weight + weight p/q)")


def _near(view: View, recorded: np.ndarray, expected: np.ndarray, formula: str) -> Finding | None:
    prob, expected = view.positions["accept_prob"], np.minimum(1.0, expected)
    near = 1e-6 if _is_float32(view) else 1e-12
    return view.judge(
        ~recorded | (np.abs(prob - expected) <= near),
        lambda i: worded(f"accept_prob is {{}} and {formula} = {{}}", prob[i], expected[i]),
    )


def _ratio(view: View, limited: bool = True) -> np.ndarray:
    """p/q, at most 1 if limited; in float32 where a device recorded them that has nothing wider."""
    p, q = view.positions["p"], view.positions["q"]
    if _is_float32(view):
        p, q = p.astype(np.float32), q.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p / q
    return (np.minimum(1.0, ratio) if limited else ratio).astype(np.float64)


def _is_float32(view: View) -> bool:
    columns = (view.positions[name] for name in ("p", "q", "accept_prob"))
    return all(np.array_equal(values, values.astype(np.float32), equal_nan=True) for values in columns)


def _settings(view: View) -> dict[str, float]:
    return view.manifest["rule"].get("settings") or {}


# ---------------------------------------------------------------- siblings


def _equality(view: View, recorded: np.ndarray) -> Finding | None:
    """p of the guess; of later children over what the refused ones before leave of the row, whatever their q."""
    p, prob = view.positions["p"], view.positions["accept_prob"]
    first = view.siblings_before(view.proposed) == 0
    expected = np.minimum(1.0, p)
    return view.judge(
        ~(recorded & first) | (prob == expected),
        lambda i: worded("accept_prob is {}, and the target draws the guess with p = {}", prob[i], p[i]),
    ) or _later_siblings(view, recorded & ~first, np.ones(len(p), dtype=bool))


def _later_siblings(view: View, later: np.ndarray, certain: np.ndarray) -> Finding | None:
    """Of guesses that were certain with all their earlier siblings: p over what these leave of the row.

    later: (positions,) which have an earlier sibling. A token that an earlier sibling has had is never accepted. Where
    the siblings leave nothing, one of them was accepted, and what the rule makes of the rest says nothing.
    """
    if not later.any():
        return None
    p, prob, token, parent = (view.positions[name] for name in ("p", "accept_prob", "token", "parent"))
    expected, near = np.full(len(p), np.nan), np.ones(len(p))
    had: dict[tuple[int, int], dict[int, float]] = {}
    for i in np.flatnonzero(view.proposed):
        row = had.setdefault((view.of[i], parent[i]), {})
        if not certain[i] or any(np.isnan(value) for value in row.values()):
            row[-1] = np.nan
            continue
        rest = 1.0 - sum(row.values())
        if later[i] and rest > 1e-6:
            expected[i] = 0.0 if token[i] in row else min(1.0, p[i] / rest)
            near[i] = 1e-6 / rest
        row.setdefault(token[i], p[i])
    return view.judge(
        ~(np.abs(expected - prob) > near),
        lambda i: worded(
            "accept_prob is {}, and what its refused siblings leave of the row gives {}", prob[i], expected[i]
        ),
    )


def _sampled_siblings(view: View, later: np.ndarray) -> Finding | None:
    """min(1, r/q) of guesses that were drawn, where whole rows are held: r what the earlier siblings leave of p."""
    rows = whole_rows(view)
    if rows is None or not later.any():
        return None
    q, prob, token, parent = (view.positions[name] for name in ("q", "accept_prob", "token", "parent"))
    expected, near = np.full(len(q), np.nan), np.ones(len(q))
    left: dict[tuple[int, int], np.ndarray] = {}
    for i in np.flatnonzero(view.proposed & rows.has):
        row = left.get((view.of[i], parent[i]), rows.p(i))
        whole = row.sum()
        if later[i] and whole > ROWS_NEAR:
            expected[i], near[i] = min(1.0, row[token[i]] / (whole * q[i])), ROWS_NEAR / (whole * q[i])
        left[view.of[i], parent[i]] = np.maximum(row - whole * rows.q(i), 0.0)
    return view.judge(
        ~(np.abs(expected - prob) > near),
        lambda i: worded("accept_prob is {}, and what its refused siblings leave of p gives {}", prob[i], expected[i]),
    )


# ---------------------------------------------------------------- rules that go by more than p/q


def _block(view: View, recorded: np.ndarray) -> Finding | None:
    """h of every guess (see `kept_probs`): b of the last one, r / (r + 1 - b) of those before, r from the row after."""
    prob, kept = view.positions["accept_prob"], kept_probs(view)
    last = recorded & (view.positions["node"] == view.count(view.proposed)[view.of] - 1)
    near = 1e-6 if _is_float32(view) else 1e-12
    fault = view.judge(
        ~last | (np.abs(prob - kept) <= near),
        lambda i: worded("accept_prob is {}, and the block is kept to its end with {}", prob[i], kept[i]),
    )
    rows = whole_rows(view)
    if fault or not (recorded & ~last).any():
        return fault
    if rows is None:
        return not_recorded("the block rule goes by whole rows; record with capture 'full'")
    return _before_the_last(view, rows, kept, recorded & ~last)


def _before_the_last(view: View, rows: WholeRows, kept: np.ndarray, judged: np.ndarray) -> Finding | None:
    prob = view.positions["accept_prob"]
    expected, near = np.full(len(prob), np.nan), np.ones(len(prob))
    for i in np.flatnonzero(judged & rows.has):
        left = np.maximum(kept[i] * rows.p(i + 1) - rows.q(i + 1), 0.0).sum()
        whole = left + (1.0 - kept[i])
        if whole > ROWS_NEAR:
            expected[i], near[i] = left / whole, ROWS_NEAR / whole
    return view.judge(
        ~(np.abs(expected - prob) > near),
        lambda i: worded("accept_prob is {}, and r / (r + 1 - b) = {} with b = {}", prob[i], expected[i], kept[i]),
    )


def kept_probs(view: View) -> np.ndarray:
    """(positions,) b_i = min(1, b_(i-1) p/q) of every guess of a chain, b_0 = 1; NaN of drawn tokens."""
    ratio, node = _ratio(view, limited=False), view.positions["node"]
    kept = np.full(len(node), np.nan)
    for place in range(int(node.max(initial=-1)) + 1):
        at = np.flatnonzero(node == place)
        kept[at] = np.minimum(1.0, ratio[at] * (kept[at - 1] if place else 1.0))
    return kept


def _greedy(view: View, recorded: np.ndarray) -> Finding | None:
    prob, rank = view.positions["accept_prob"], view.positions["rank_p"]
    return view.judge(
        ~recorded | (prob == 0.0) | (prob == 1.0) & (rank == 1),
        lambda i: worded("accept_prob is {} for a token of rank {} in the target's row", prob[i], rank[i]),
    )


def _typical(view: View, recorded: np.ndarray) -> Finding | None:
    """1 where p > min(epsilon, delta exp(-entropy of p)), else 0; where they agree to rounding, either."""
    epsilon, delta = (_settings(view).get(name) for name in ("epsilon", "delta"))
    if epsilon is None or delta is None:
        return not_recorded("the manifest does not have the rule's epsilon and delta")
    p, prob = view.positions["p"], view.positions["accept_prob"]
    least = np.minimum(epsilon, delta * np.exp(-view.positions["entropy_p"]))
    close = np.abs(p - least) <= 1e-6 * least
    return view.judge(
        ~recorded | (prob == (p > least)) | close & np.isin(prob, (0.0, 1.0)),
        lambda i: worded("accept_prob is {} with p = {}, and the rule accepts above {}", prob[i], p[i], least[i]),
    )


FORMULAS: dict[str, Formula] = {
    "token": _token,
    "tree": _token,
    "block": _block,
    "equality": _equality,
    "lenient": _lenient,
    "ensemble": _ensemble,
    "greedy": _greedy,
    "typical": _typical,
}
"""By the rule's name."""
