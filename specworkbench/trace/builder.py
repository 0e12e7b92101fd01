"""`TraceBuilder`: rounds in, a `Trace` out. What a recorder feeds while decoding; a round costs a few list appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.trace import schema
from specworkbench.trace.trace import Trace

KEYS = ("sequence", "round")


class TraceBuilder:
    """Collects rounds as they come; nothing is converted before `build`.

    Arrays and lists are kept by reference: the caller must not write to them afterwards.
    """

    def __init__(self) -> None:
        self._rounds: list[Mapping[str, Any]] = []
        self._positions: list[Mapping[str, Any]] = []
        self._distributions: list[Mapping[str, Any]] = []
        self._distribution_rounds: list[int] = []

    def __len__(self) -> int:
        return len(self._rounds)

    def add_round(
        self,
        round: Mapping[str, Any],
        positions: Mapping[str, np.ndarray | Sequence],
        distributions: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Take one round.

        round: a scalar a column of `schema.ROUNDS`. positions: a 1-D array or list a column of `schema.POSITIONS`,
        all of one length; `sequence` and `round` are taken from the round. Null is NaN or None, in every column that
        may be null, integer and boolean ones too. distributions: one dict a row of `schema.DISTRIBUTIONS`, likewise
        without `sequence` and `round`; tokens, p and q are 1-D arrays, and what is left out is null (node: a chain's).
        """
        self._rounds.append(round)
        self._positions.append(positions)
        if distributions:
            self._distribution_rounds += [len(self._rounds) - 1] * len(distributions)
            self._distributions += distributions

    def build(self, manifest: dict[str, Any], rows: dict[str, np.ndarray] | None = None) -> Trace:
        """The trace, its tables conforming to the schema. rows: the full rows of capture 'full' (see `Trace`).

        Raises `KeyError` for a column that a round lacks, `ValueError` for columns of unequal length.
        """
        rounds = pd.DataFrame(
            {column.name: _column(column, [r[column.name] for r in self._rounds]) for column in schema.ROUNDS}
        )
        if rows is not None:
            rows = {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in rows.items()}
        return Trace(
            manifest=manifest,
            rounds=schema.conform("rounds", rounds),
            positions=schema.conform("positions", self._positions_table()),
            distributions=None if manifest["capture"] == "none" else self._distributions_table(rounds),
            rows=rows,
        )

    def _positions_table(self) -> pd.DataFrame:
        lengths = [len(positions["token"]) for positions in self._positions]
        columns = {}
        for column in schema.POSITIONS:
            name = column.name
            if name in KEYS:
                columns[name] = np.repeat(np.array([r[name] for r in self._rounds], dtype=np.int32), lengths)
                continue
            parts = [positions[name] for positions in self._positions]
            for where, (part, length) in enumerate(zip(parts, lengths, strict=True)):
                if len(part) != length:
                    keys = {key: self._rounds[where][key] for key in KEYS}
                    raise ValueError(f"column {name!r} has {len(part)} values for {length} tokens in {keys}")
            columns[name] = _column(column, _joined(parts))
        return pd.DataFrame(columns)

    def _distributions_table(self, rounds: pd.DataFrame) -> pd.DataFrame:
        if not self._distributions:
            return schema.empty("distributions")
        columns: dict[str, Any] = {
            key: [self._rounds[where][key] for where in self._distribution_rounds] for key in KEYS
        }
        columns["position"] = [row["position"] for row in self._distributions]
        if "node" in self._distributions[0]:
            columns["node"] = [row["node"] for row in self._distributions]
        for name, dtype in (("tokens", np.int32), ("p", np.float64), ("q", np.float64)):
            values = (row.get(name) for row in self._distributions)
            columns[name] = objects([None if value is None else np.asarray(value, dtype=dtype) for value in values])
        columns["row"] = pd.array([row.get("row") for row in self._distributions], dtype="Int32")
        return schema.conform("distributions", schema.with_nodes(pd.DataFrame(columns), rounds))


def objects(values: Sequence[Any]) -> np.ndarray:
    """(n,) object array of the values as they are (numpy would stack arrays of equal length)."""
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def _joined(parts: list) -> np.ndarray | list:
    """One array where all parts are arrays, one list otherwise."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts))


def _column(column: schema.Column, values: np.ndarray | list):
    """Values of one column with None and NaN as the column's null."""
    if column.dtype == "str":
        return np.asarray(values, dtype=object)
    if column.dtype in ("Int32", "boolean"):
        numbers = np.asarray(values, dtype=np.float64)
        null = np.isnan(numbers)
        whole = np.where(null, 0, numbers)
        if column.dtype == "boolean":
            return pd.arrays.BooleanArray(whole.astype(bool), null)
        return pd.arrays.IntegerArray(whole.astype(np.int32), null)
    return np.asarray(values, dtype=column.dtype)
