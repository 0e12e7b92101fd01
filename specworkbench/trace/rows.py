"""The rows p and q that a trace holds, and the check that they are those of its positions. See `contracts`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specworkbench.trace.view import Finding, View, not_recorded, passed, tolerance, worded

FLOAT32_ROWS = 1e-6


class WholeRows:
    """Whole rows (capture 'full') by position, float64: `p(i)` is the target's row that position i was judged by or
    drawn from, `q(i)` the draft's. `has`: (positions,) which of them have a record.
    """

    def __init__(self, view: View):
        record = records(view)
        self._rows = view.trace.rows
        self._number = view.trace.distributions["row"].to_numpy(dtype=np.int64)[record]
        self.has = record >= 0

    def p(self, i: int) -> np.ndarray:
        """(vocab,) the target's row."""
        return self._rows["target"][self._number[i]].astype(np.float64)

    def q(self, i: int) -> np.ndarray:
        """(vocab,) the draft's row, NaN where nothing was proposed."""
        return self._rows["draft"][self._number[i]].astype(np.float64)


def whole_rows(view: View) -> WholeRows | None:
    """The whole rows of a trace; None where it was recorded without them."""
    table = view.trace.distributions
    return None if view.trace.rows is None or table is None or not len(table) else WholeRows(view)


def records(view: View) -> np.ndarray:
    """(positions,) the row in `distributions` of each position, -1 for none."""
    table = view.trace.distributions
    keys = _row_key(*(table[name].to_numpy() for name in ("sequence", "round", "node")))
    order = np.argsort(keys, kind="stable")
    own = _row_key(view.positions["sequence"], view.positions["round"], _node_of_row(view))
    found = np.minimum(np.searchsorted(keys[order], own), len(keys) - 1)
    return np.where(keys[order][found] == own, order[found], -1)


def distributions_agree(view: View) -> Finding:
    if view.trace.distributions is None:
        return not_recorded("the trace was recorded without distributions")
    table = view.trace.distributions
    if not len(table):
        return not_recorded("no distribution was recorded")
    record = records(view)
    full = view.trace.rows is not None
    fault = _full_rows(view, record) if full else _listed_rows(view, record)
    return fault or passed(f"{int((record >= 0).sum())} positions")


def _node_of_row(view: View) -> np.ndarray:
    """(positions,) the node whose rows a token was judged by or drawn from: of a corrected one, the first refused's."""
    node = view.positions["node"].astype(np.int64)
    rejected = np.flatnonzero(view.having(("rejected",)))[::-1]
    after = np.full(len(view.rounds["round"]), -1)
    last = view.positions["parent"][view.drawn][np.searchsorted(view.of[view.drawn], view.of[rejected])]
    there = rejected[view.positions["parent"][rejected] == last]
    after[view.of[there]] = node[there]  # the first one is written last
    return np.where(view.having(("corrected",)), after[view.of], node)


def _row_key(sequence: np.ndarray, round: np.ndarray, node: np.ndarray) -> np.ndarray:
    return (sequence.astype(np.int64) << 40) | (round.astype(np.int64) << 16) | node.astype(np.int64) + 1


def _listed_rows(view: View, record: np.ndarray) -> Finding | None:
    """Rows as lists (capture 'top-k'): p and q of every token of the positions are among them, and sums stay <= 1."""
    table, near = view.trace.distributions, tolerance(view)
    tokens = table["tokens"].tolist()
    lengths = np.array([len(row) for row in tokens])
    owner = np.repeat(np.arange(len(tokens)), lengths)
    wide = np.int64(1) << 32
    keys = owner * wide + np.concatenate(tokens)
    order = np.argsort(keys, kind="stable")
    wanted = np.maximum(record, 0) * wide + view.positions["token"]
    found = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    listed = (record < 0) | (keys[found] == wanted)
    if fault := view.judge(listed, lambda i: f"token {view.positions['token'][i]} is not in its distribution"):
        return fault
    for name in ("p", "q"):
        rows = [
            np.full(length, np.nan) if row is None else row for row, length in zip(table[name], lengths, strict=True)
        ]
        values = np.concatenate(rows)
        sums = np.bincount(owner, np.nan_to_num(values), minlength=len(tokens))
        if fault := _of_record(view, sums <= 1 + near, lambda i, n=name, s=sums: worded(f"its {n} sum to {{}}", s[i])):
            return fault
        wrong = (record >= 0) & _differ(values[found], view.positions[name], near)
        fault = view.judge(
            ~wrong,
            lambda i, n=name, v=values: worded(n + " is {}, in its distribution {}", view.positions[n][i], v[found[i]]),
        )
        if fault:
            return fault
    return None


def _full_rows(view: View, record: np.ndarray) -> Finding | None:
    """Whole float32 rows (capture 'full'): they sum to 1, and p, q and the overlap of the positions come from them."""
    rows, near = view.trace.rows, FLOAT32_ROWS
    number = view.trace.distributions["row"].to_numpy(dtype=np.int64)
    row = number[record]
    for name, column in (("target", "p"), ("draft", "q")):
        sums = rows[name].sum(axis=1, dtype=np.float64)[number]
        whole = ~(np.abs(sums - 1) > 10 * near)
        if fault := _of_record(view, whole, lambda i, c=column, s=sums: worded(f"its row of {c} sums to {{}}", s[i])):
            return fault
        value = rows[name][row, view.positions["token"]]
        wrong = (record >= 0) & _differ(value, view.positions[column], near)
        fault = view.judge(
            ~wrong, lambda i, c=column, v=value: worded(c + " is {}, in its row {}", view.positions[c][i], v[i])
        )
        if fault:
            return fault
    overlap = np.minimum(rows["target"], rows["draft"]).sum(axis=1, dtype=np.float64)[row]
    apart = (record >= 0) & _differ(overlap, view.positions["overlap"], 10 * near)
    return view.judge(
        ~apart, lambda i: worded("overlap is {}, of its rows {}", view.positions["overlap"][i], overlap[i])
    )


def _differ(one: np.ndarray, other: np.ndarray, near: float) -> np.ndarray:
    """Whether two columns differ by more than the allowance, or only one of them is null."""
    return (np.isnan(one) != np.isnan(other)) | (np.abs(one - other) > near)


def _of_record(view: View, good: np.ndarray, detail: Callable[[int], str]) -> Finding | None:
    """A finding on the first row of the table `distributions` that is not good."""
    bad = np.flatnonzero(~good)
    if not bad.size:
        return None
    at = view.trace.distributions.iloc[bad[0]]
    said = f"position {at['position']}: {detail(bad[0])}"
    return Finding("fail", said, int(at["sequence"]), int(at["round"]))
