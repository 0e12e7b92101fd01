"""`Evidence` of simulated tokens, in numpy, from whole rows: what the docstrings of `evidence.py` say, word by word."""

import numpy as np

from specworkbench.equivalence.evidence import ALTERNATIVES, CELLS, Evidence


def evidence_from_rows(
    p, q, tokens, slots=None, guided=None, accepted=None, row_before=None, sequence=None, round_=None, expected=None
):
    """p, q: (n, vocab) rows; tokens: (n,). Left alone: slot 1 with a row q everywhere, no row before, a ratio rule.

    row_before: (n, vocab), NaN in rows where there is none. accepted: (n,), NaN where unknown.
    """
    p, q, tokens = np.asarray(p, float), np.asarray(q, float), np.asarray(tokens, np.int64)
    n, count = len(tokens), np.arange(len(tokens))
    slots = np.ones(n, np.int64) if slots is None else np.asarray(slots, np.int64)
    guided = np.ones(n, bool) if guided is None else np.asarray(guided, bool)
    accepted = np.full(n, np.nan) if accepted is None else np.where(guided, accepted, np.nan)
    drafted = np.where(guided[:, None], q, p)
    own = p[count, tokens]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [row[count, tokens] / own for row in alternative_rows(p, drafted, row_before)]
        log_ratios = np.log(np.stack(ratios, axis=1)) if n else np.empty((0, len(ALTERNATIVES)))
    log_ratios[own <= 0] = np.inf
    over = drafted > p
    cells = cell_index(p, over)
    if expected is None:
        expected = np.where(np.isnan(accepted), np.nan, np.minimum(p, drafted).sum(axis=1))
    return Evidence(
        sequence=np.zeros(n, np.int64) if sequence is None else sequence,
        round=count if round_ is None else round_,
        slot=slots, guided=guided, token=tokens, p=own,
        log_ratios=log_ratios,
        overweight_p=np.where(guided, (p * over).sum(axis=1), np.nan),
        in_overweight=np.where(guided, over[count, tokens], np.nan),
        expected_accept=expected, accepted=accepted,
        cell=cells[count, tokens],
        cell_probs=np.stack([(p * (cells == cell)).sum(axis=1) for cell in range(len(CELLS))], axis=1),
    )  # fmt: skip


def alternative_rows(p, q, row_before=None):
    """The rows r of `ALTERNATIVES`, one (n, vocab) array each, in their order."""
    before = p if row_before is None else np.where(np.isnan(row_before), p, row_before)
    top = np.zeros_like(p)
    if len(p):
        top[np.arange(len(p)), p.argmax(axis=1)] = 1.0
    overlap = np.minimum(p, q)
    share = overlap.sum(axis=1, keepdims=True)
    overlap = np.where(share > 0, overlap / np.where(share > 0, share, 1.0), p)
    towards = {"to q": q, "to overlap": overlap, "to argmax": top, "to row before": before}
    rows = []
    for name in ALTERNATIVES:
        kind, amount = name.rsplit(" ", 1)
        if kind == "temperature":
            power = p ** (1 / float(amount))
            rows.append(power / power.sum(axis=1, keepdims=True))
        elif kind == "from q":
            away = np.clip(p + float(amount) * (p - q), 0.0, None)
            rows.append(away / away.sum(axis=1, keepdims=True))
        else:
            rows.append((1 - float(amount)) * p + float(amount) * towards[kind])
    return rows


def cell_index(p, over):
    """(n, vocab) index into `CELLS` of every token of every row; ties of rank go to the lower token."""
    rank = np.argsort(np.argsort(-p, axis=1, kind="stable"), axis=1, kind="stable") + 1
    band = np.searchsorted([1, 4, 16], rank)
    return np.where(over, band, band + 4)
