"""`TraceBuilder`: rounds in, a `Trace` out. Whole columns of many rounds at a time, or of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.trace import schema
from specworkbench.trace.trace import Trace

Columns = Mapping[str, np.ndarray | Sequence]
CAPTURED = ("tokens", "p", "q", "row")
"""Columns of `distributions` of which a capture fills some."""


class TraceBuilder:
    """Collects rounds as they come; nothing is converted before `build`.

    Arrays and lists are kept by reference: the caller must not write to them afterwards.

    >>> builder = TraceBuilder()
    >>> len(builder), list(builder.build({"capture": "none"}).rounds.columns[:3])
    (0, ['sequence', 'round', 'context_length'])
    """

    def __init__(self) -> None:
        self._blocks: dict[str, list[Columns]] = {table: [] for table in schema.TABLES}

    def __len__(self) -> int:
        return sum(len(block["round"]) for block in self._blocks["rounds"])

    def add_rounds(self, rounds: Columns, positions: Columns, distributions: Columns | None = None) -> None:
        """Take some rounds: of each table a 1-D array or a list a column of its schema, all of one length.

        Null is NaN or None, in every column that may be null, integer and boolean ones too. Of `distributions`, tokens,
        p and q hold 1-D arrays (or None); they and row may be left out, which is null.
        """
        self._blocks["rounds"].append(rounds)
        self._blocks["positions"].append(positions)
        if distributions is not None:
            self._blocks["distributions"].append(distributions)

    def build(self, manifest: dict[str, Any], rows: dict[str, np.ndarray] | None = None) -> Trace:
        """The trace, its tables conforming to the schema. rows: the full rows of capture 'full' (see `Trace`).

        Raises `KeyError` for a column that is lacking, `ValueError` for columns of unequal length.
        """
        if rows is not None:
            rows = {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in rows.items()}
        distributions = None if manifest["capture"] == "none" else self._table("distributions")
        return Trace(manifest, self._table("rounds"), self._table("positions"), distributions, rows)

    def _table(self, table: str) -> pd.DataFrame:
        blocks = self._blocks[table]
        if not blocks:
            return schema.empty(table)
        optional = CAPTURED if table == "distributions" else ()
        columns = {}
        for column in schema.TABLES[table]:
            name, parts = column.name, []
            for block in blocks:
                length = len(block["round"])
                parts.append([None] * length if name in optional and name not in block else block[name])
                if len(parts[-1]) != length:
                    raise ValueError(f"column {name!r} of {table!r} has {len(parts[-1])} values for {length} rows")
            columns[name] = _column(column, _joined(parts))
        return pd.DataFrame(columns)


def objects(values: Sequence[Any]) -> np.ndarray:
    """(n,) object array of the values as they are (numpy would stack arrays of equal length)."""
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def _joined(parts: list) -> np.ndarray | list:
    """One array where all parts are arrays, one list otherwise."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts))


def _column(column: schema.Column, values: np.ndarray | list) -> Any:
    """Values of one column in its dtype, with None and NaN as its null."""
    if column.dtype == "str":
        return np.asarray(values, dtype=object)  # pandas makes of it what it calls str
    if column.dtype == "object":
        dtype = np.int32 if column.name == "tokens" else np.float64
        return objects([None if value is None else np.asarray(value, dtype=dtype) for value in values])
    if column.dtype in ("Int32", "boolean"):
        numbers = np.asarray(values, dtype=np.float64)
        null = np.isnan(numbers)
        whole = np.where(null, 0, numbers)
        if column.dtype == "boolean":
            return pd.arrays.BooleanArray(whole.astype(bool), null)
        return pd.arrays.IntegerArray(whole.astype(np.int32), null)
    return np.asarray(values, dtype=column.dtype)
