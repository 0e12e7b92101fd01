"""What stands around a token in its round: its round, whether that is a tree, its siblings, its other half."""

from __future__ import annotations

import pandas as pd

from specworkbench.trace import Trace


def round_of(trace: Trace, row: pd.Series) -> pd.Series:
    """The row of `trace.rounds` of this row of `trace.positions`."""
    rounds = trace.rounds
    return rounds[(rounds["sequence"] == row["sequence"]) & (rounds["round"] == row["round"])].iloc[0]


def in_tree(trace: Trace, row: pd.Series) -> bool:
    """Whether the token's round proposed a tree: a guess that does not continue the one before."""
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    return bool(((together["node"] >= 0) & (together["parent"] != together["node"] - 1)).any())


def beside(trace: Trace, row: pd.Series, outcome: str) -> pd.DataFrame:
    """The tokens of this outcome that continue the same token."""
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    return together[(together["parent"] == row["parent"]) & (together["outcome"] == outcome)]


def partner_of(trace: Trace, row: pd.Series, outcome: str, last: bool = False) -> pd.Series | None:
    """The other token of the same position: the corrected one of a rejected one, and the reverse."""
    found = beside(trace, row, outcome)
    return found.iloc[-1 if last else 0] if len(found) else None
