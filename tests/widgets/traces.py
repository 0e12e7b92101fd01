"""Toy traces for the widgets: text that would do harm in HTML, and a round for every outcome."""

from __future__ import annotations

from specworkbench.trace import Trace
from specworkbench.widgets.tables import strip_rows
from tests.trace.toy import toy_trace

VOCABULARY = {"0": "<script>alert(1)</script>", "1": " x\n", "2": "\tb", "3": '"&'}


def spoken(**options) -> Trace:
    """A toy trace with such a vocabulary; by default with top-k distributions."""
    trace = toy_trace(**{"capture": "top-k", "gamma": 3, "max_new_tokens": 40, **options})
    trace.manifest["vocabulary"] = dict(VOCABULARY)
    return trace


def first(trace: Trace, outcome: str, *, emitted: bool | None = None):
    """(sequence, index in its strip, row) of the first token with this outcome."""
    for sequence in range(len(trace.sequences)):
        rows = strip_rows(trace, sequence)
        for index, row in rows.iterrows():
            if row["outcome"] == outcome and emitted in (None, bool(row["emitted"])):
                return sequence, index, row
    raise AssertionError(f"the trace has no token that is {outcome}, emitted {emitted}")
