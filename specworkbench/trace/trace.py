"""`Trace`: a manifest and its tables, and the questions one asks of a trace. No torch, no files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.errors import InputError


@dataclass(frozen=True)
class Distribution:
    """p and q at one position of a round.

    tokens: (k,) token ids by falling p; p: (k,) probabilities; q: (k,) probabilities, or None where no row was
    proposed (bonus and plain positions). `complete` is true when the k tokens are the whole vocabulary; otherwise
    `p_other` and `q_other` hold the mass that is not listed, so that every bar chart can still sum to 1.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> found = trace.distribution_of(trace.positions.iloc[0])
    >>> round(float(found.p.sum() + found.p_other), 6), found.complete
    (1.0, False)
    """

    tokens: np.ndarray
    p: np.ndarray
    q: np.ndarray | None
    complete: bool

    @property
    def p_other(self) -> float:
        return max(0.0, 1.0 - float(self.p.sum()))

    @property
    def q_other(self) -> float | None:
        return None if self.q is None else max(0.0, 1.0 - float(self.q.sum()))


@dataclass
class Trace:
    """Everything recorded of one run.

    manifest: what produced the trace (see `Manifest keys` in the package's docstring); rounds, positions: tables
    of `trace.schema`; distributions: table or None (capture 'none'); rows: {'target': (rows, vocab) float32,
    'draft': (rows, vocab) float32 with NaN rows where nothing was proposed} or None unless capture is 'full'.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> len(trace.sequences), len(trace.rounds), trace.manifest["rule"]["name"]
    (6, 154, 'token')
    >>> trace.positions[["round", "position", "outcome", "p", "q", "accept_prob", "u"]].head(2).round(3)
       round  position   outcome      p      q  accept_prob      u
    0      0         1  accepted  0.008  0.024        0.309  0.242
    1      0         2  accepted  0.018  0.016        1.000  0.278
    """

    manifest: dict[str, Any]
    rounds: pd.DataFrame
    positions: pd.DataFrame
    distributions: pd.DataFrame | None = None
    rows: dict[str, np.ndarray] | None = None
    _index: dict[tuple[int, int, int, int | None], int] = field(default_factory=dict, init=False, repr=False)
    _rounds: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, init=False, repr=False, compare=False)
    _rounds_of: pd.DataFrame | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def sequences(self) -> list[dict[str, Any]]:
        """One dict a sequence: id, bucket, prompt, prompt_tokens, token_ids, text, stop_reason, ms_prefill, ..."""
        return self.manifest["sequences"]

    @property
    def gamma(self) -> int:
        return int(self.manifest["gamma"])

    def token_text(self, token: int) -> str:
        """The token as text; a placeholder with its id where the manifest does not know it."""
        return self.manifest["vocabulary"].get(str(int(token)), f"<{int(token)}>")

    def output(self, sequence: int = 0) -> pd.DataFrame:
        """The emitted tokens of a sequence, in order of the output (rows of `positions`)."""
        rows = self.positions[(self.positions["sequence"] == sequence) & self.positions["emitted"]]
        return rows.sort_values("output_index")

    def round_positions(self, sequence: int, round_index: int) -> pd.DataFrame:
        """All tokens of one round, as proposed and then as drawn (rows of `positions`)."""
        if self._rounds_of is not self.positions:
            self._rounds_of = self.positions
            self._rounds = self.positions.groupby(["sequence", "round"]).indices
        return self.positions.iloc[self._rounds.get((sequence, round_index), [])]

    def distribution(
        self, sequence: int, round_index: int, position: int, node: int | None = None
    ) -> Distribution | None:
        """p and q at a position of a round; None when the trace was recorded without distributions.

        node: which of several at that position, as trees have; the first when not given.
        Raises `InputError` for a position that the trace does not have.
        """
        if self.distributions is None:
            return None
        if not self._index:
            keys = self.distributions[["sequence", "round", "position", "node"]].itertuples(index=False, name=None)
            for i, key in enumerate(keys):
                self._index[key] = i
                self._index.setdefault((*key[:3], None), i)
        where = self._index.get((sequence, round_index, position, node))
        if where is None:
            named = f"position {position}" if node is None else f"node {node} at position {position}"
            raise InputError(
                f"sequence {sequence} has no {named} in round {round_index}; "
                "see trace.positions for the rounds and positions there are"
            )
        record = self.distributions.iloc[where]
        if self.rows is not None and not pd.isna(record["row"]):
            return self._full_row(int(record["row"]))
        q = None if record["q"] is None else np.asarray(record["q"])
        return Distribution(np.asarray(record["tokens"]), np.asarray(record["p"]), q, False)

    def distribution_of(self, row: pd.Series) -> Distribution | None:
        """p and q of a token, a row of `positions`; a corrected token's q is that of the first guess refused there."""
        sequence, round_index, node = int(row["sequence"]), int(row["round"]), int(row["node"])
        if row["outcome"] == "corrected":
            together = self.round_positions(sequence, round_index)
            refused = together[(together["parent"] == row["parent"]) & (together["outcome"] == "rejected")]
            node = int(refused["node"].min()) if len(refused) else node
        return self.distribution(sequence, round_index, int(row["position"]), node)

    def _full_row(self, row: int) -> Distribution:
        p = self.rows["target"][row].astype(np.float64)
        q = self.rows["draft"][row].astype(np.float64)
        order = np.argsort(-p, kind="stable")
        return Distribution(order, p[order], None if np.isnan(q[0]) else q[order], True)
