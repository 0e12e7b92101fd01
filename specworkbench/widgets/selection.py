"""`Selection`: which token of which trace is looked at. Panels that share one move together."""

from __future__ import annotations

from typing import Any

import pandas as pd
import traitlets

from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.widgets.tables import strip_rows


class Selection(traitlets.HasTraits):
    """A trace, one of its sequences and one token of that; give the same one to every panel, and observe its traits.

    trace: None for none. sequence: its index. selected: the token's index in the order of the strip (`strip_rows`), -1
    for none. round and position follow from these: of the selected token, -1 without one. A panel observes `trace` and
    `sequence`, which `show` changes (both before either is told), and `selected`, which it sets when a person picks.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> selection = Selection(load_trace(traces_dir() / "quickstart.trace"))
    >>> selection.at(1, 2)
    >>> selection.selected, selection.row["outcome"]
    (6, 'rejected')
    """

    trace = traitlets.Instance(Trace, allow_none=True)
    sequence = traitlets.Int(0)
    selected = traitlets.Int(-1)
    round = traitlets.Int(-1, read_only=True)
    position = traitlets.Int(-1, read_only=True)

    def __init__(self, trace: Trace | None = None, sequence: int = 0):
        super().__init__()
        self._rows = pd.DataFrame()
        self.show(trace, sequence)

    @property
    def rows(self) -> pd.DataFrame:
        """The tokens of the sequence, as `strip_rows` orders them; without a trace, none."""
        return self._rows

    @property
    def row(self) -> pd.Series | None:
        """The selected token as a row of `trace.positions`; None without one."""
        return self._rows.iloc[self.selected] if self.selected >= 0 else None

    def show(self, trace: Trace | None, sequence: int = 0, selected: int | None = None) -> None:
        """Look at another sequence, by default at its first rejected token.

        Raises `InputError` for a sequence that is not there; what was shown then stays.
        """
        rows = pd.DataFrame() if trace is None else strip_rows(trace, sequence)
        self._rows = rows
        with self.hold_trait_notifications():
            self.trace, self.sequence = trace, sequence
            self.selected = first_rejected(rows) if selected is None else selected
            self._locate()

    def at(self, round_index: int, position: int) -> None:
        """Select the first token of a round at this position. Raises `InputError` where there is none."""
        rows = self._rows
        found = [] if rows.empty else rows.index[(rows["round"] == round_index) & (rows["position"] == position)]
        if not len(found):
            raise InputError(f"sequence {self.sequence} has no token at position {position} of round {round_index}")
        self.selected = int(found[0])

    def within(self, index: int) -> int:
        """The index as it can be selected: past the last token is the last token; before the first is none."""
        return max(-1, min(index, len(self._rows) - 1))

    @traitlets.validate("selected")
    def _within(self, proposal: Any) -> int:
        return self.within(proposal["value"])

    @traitlets.observe("selected")
    def _locate(self, _change: Any = None) -> None:
        row = self.row
        self.set_trait("round", -1 if row is None else int(row["round"]))
        self.set_trait("position", -1 if row is None else int(row["position"]))


def first_rejected(rows: pd.DataFrame) -> int:
    """The first rejected token, where there is the most to see; else the first token, -1 without any."""
    if rows.empty:
        return -1
    rejected = rows.index[rows["outcome"] == "rejected"]
    return int(rejected[0]) if len(rejected) else 0
