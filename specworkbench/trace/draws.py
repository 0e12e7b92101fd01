"""The check that every token was drawn from the row it should come from. See `contracts`."""

from __future__ import annotations

import numpy as np

from specworkbench.trace import schema
from specworkbench.trace.formulas import kept_probs
from specworkbench.trace.rows import WholeRows, whole_rows
from specworkbench.trace.view import Finding, View, not_recorded, passed, worded

NEAR = 1e-5
"""Allowance on a cumulative probability of a float32 row."""
LEFT_NEAR = 5e-7
"""The same for every row that a residual lacks, before it is normalised: the less is left, the more it counts."""
RULES = (*schema.RESIDUALS, "equality")
"""Rules whose residual is known here; of others, corrected tokens are left out."""


def tokens_are_drawn_from_their_rows(view: View) -> Finding:
    """By inverse CDF at u_draw: guesses from q, a corrected token from the rule's residual, bonus and plain from p.

    A guess without a uniform is certain; so is what a rule emits that takes the target's first choice.
    """
    rows, rule = whole_rows(view), view.manifest["rule"]["name"]
    if rows is None:
        return not_recorded("only whole rows say what a token was drawn from; record with capture 'full'")
    u = view.positions["u_draw"]
    chosen = rows.has & view.drawn & (rule in schema.FIRST_CHOICE)
    judged = rows.has & ~chosen & (~view.having(("corrected",)) | (rule in RULES))
    certain = judged & view.proposed & np.isnan(u)
    fault = (
        _first_choice(view, rows, chosen)
        or view.judge(~certain | (view.positions["q"] == 1.0), lambda i: "it has no u_draw, and its q is not 1")
        or view.judge(~judged | certain | ~np.isnan(u), lambda i: "it has no u_draw, so that nothing drew it")
        or _inverse_cdf(view, rows, judged & ~certain)
    )
    drawn = int((judged & ~certain).sum())
    return fault or passed(f"{drawn} tokens drawn, {int((certain | chosen).sum())} certain")


def _first_choice(view: View, rows: WholeRows, chosen: np.ndarray) -> Finding | None:
    """A fault where one of these tokens is not the most probable of its row."""
    token, best = view.positions["token"], np.ones(len(chosen), dtype=bool)
    for i in np.flatnonzero(chosen):
        row = rows.p(i)
        best[i] = row[token[i]] == row.max()
    return view.judge(best, lambda i: f"token {token[i]} is not the most probable one of its row")


def _inverse_cdf(view: View, rows: WholeRows, drawn: np.ndarray) -> Finding | None:
    """A fault where the uniform of one of these tokens draws another one from its row."""
    token, u = view.positions["token"], view.positions["u_draw"]
    low, high, near = np.zeros((3, len(u)))
    kept = kept_probs(view) if view.manifest["rule"]["name"] in schema.RULES_OF_BLOCKS else None
    for i in np.flatnonzero(drawn):
        weights, allowance = _weights(view, rows, kept, i)
        cdf = np.cumsum(weights)
        low[i], high[i] = (cdf[token[i] - 1] if token[i] else 0.0) / cdf[-1], cdf[token[i]] / cdf[-1]
        near[i] = max(NEAR, allowance / cdf[-1])
    return view.judge(
        ~drawn | (u >= low - near) & (u < high + near),
        lambda i: worded(
            f"u_draw is {{}}, and {_in_words(view, i)} gives token {token[i]} from {{}} to {{}}", u[i], low[i], high[i]
        ),
    )


def _weights(view: View, rows: WholeRows, kept: np.ndarray | None, i: int) -> tuple[np.ndarray, float]:
    """(vocab,) weights that position i was drawn from, and the allowance on a sum of them. kept: see `kept_probs`."""
    if view.proposed[i]:
        return rows.q(i), NEAR
    if view.outcome[i] != "corrected":
        return rows.p(i), NEAR
    p, refused = rows.p(i), _refused_beside(view, i)
    left = p
    if view.manifest["rule"]["name"] == "equality":
        left = np.where(np.isin(np.arange(len(p)), view.positions["token"][refused]), 0.0, p)
    elif kept is not None:
        before = kept[refused[0] - 1] if view.positions["node"][refused[0]] else 1.0
        left = np.maximum(before * p - rows.q(refused[0]), 0.0)
    else:
        for node in refused:
            left = np.maximum(left - left.sum() * rows.q(node), 0.0)
    return (left if left.sum() > 0 else p), LEFT_NEAR * len(refused)


def _refused_beside(view: View, i: int) -> np.ndarray:
    """The refused guesses in whose place the token at i was drawn, in the order in which they were tried."""
    there = np.arange(*np.searchsorted(view.of, (view.of[i], view.of[i] + 1)))
    beside = view.positions["parent"][there] == view.positions["parent"][i]
    return there[beside & (view.outcome[there] == "rejected")]


def _in_words(view: View, i: int) -> str:
    if view.proposed[i]:
        return "its row of q"
    return "the residual" if view.outcome[i] == "corrected" else "its row of p"
