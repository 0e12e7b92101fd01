"""Acceptance over two axes at once: the position in the round, and the place in the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from specworkbench.analysis.acceptance import bin_edges, output_index
from specworkbench.analysis.estimate import wilson
from specworkbench.trace import Trace
from specworkbench.trace.schema import EXAMINED

CELL = ("bucket", "position", "output_index")
"""What names a cell: the bucket, the position in the round, and the first output index of its bin."""

COLUMNS = (*CELL, "output_index_end", "examined", "accepted", "acceptance", "low", "high")
ALL = "all"
"""The bucket's name where buckets are not told apart."""

NO_BUCKET = "no bucket"


def acceptance_map(
    traces: Trace | Sequence[Trace], *, bins: int | Sequence[int] = 8, by_bucket: bool = True
) -> pd.DataFrame:
    """One row a cell in which anything was examined, by bucket, position in the round and output index.

    Columns: bucket ("all" without `by_bucket`), position (1, 2, ..; depth of a tree), output_index up to, but without,
    output_index_end; examined, accepted: positions, of a tree rounds that tried, or kept, a node of that depth;
    acceptance: accepted / examined with Wilson's interval low..high. bins: of the output index, how many of equal
    width, or their edges.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> table = acceptance_map(load_trace(traces_dir() / "quickstart.trace"), bins=[0, 32, 64], by_bucket=False)
    >>> table[["position", "output_index", "examined", "accepted"]].iloc[0].tolist()
    [1, 0, 77, 51]
    """
    cells = examined_cells(traces, bins=bins, by_bucket=by_bucket)
    counts = cells.groupby([*CELL, "output_index_end"], sort=False)["accepted"].agg(["size", "sum"]).reset_index()
    rows = []
    for *cell, examined, accepted in counts.itertuples(index=False, name=None):
        rows.append((*cell, examined, accepted, *wilson(accepted, examined)))
    numbers = {name: np.int64 for name in COLUMNS[1:6]} | {name: np.float64 for name in COLUMNS[6:]}
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(numbers)
    order = {name: number for number, name in enumerate(dict.fromkeys(cells["bucket"]))}
    table = table.assign(order=table["bucket"].map(order)).sort_values(["order", *CELL[1:]], ignore_index=True)
    return table.drop(columns="order")


def bins_for(traces: Trace | Sequence[Trace], few: int = 10, most: int = 8) -> int:
    """How many bins of the output index, at most `most`, leave half of the cells of all buckets with `few` examined.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> bins_for(load_trace(traces_dir() / "quickstart.trace"))
    2
    """
    found = _of_all(traces)
    for bins in range(most, 1, -1):
        counts = _in_bins(found, bins).groupby(list(CELL)).size()
        if len(counts) and counts.median() >= few:
            return bins
    return 1


def examined_cells(
    traces: Trace | Sequence[Trace], *, bins: int | Sequence[int] = 8, by_bucket: bool = True
) -> pd.DataFrame:
    """The examined positions of these traces (of a tree depths, once a round), each with the cell that it lies in.

    Columns: trace (its number among them), sequence, round, position, accepted, bucket, output_index and
    output_index_end of the bin. Arguments as in `acceptance_map`; what lies beyond given edges is left out.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> len(examined_cells(load_trace(traces_dir() / "quickstart.trace")))
    350
    """
    found = _of_all(traces)
    return _in_bins(found if by_bucket else found.assign(bucket=ALL), bins)


def _of_all(traces: Trace | Sequence[Trace]) -> pd.DataFrame:
    """The examined positions of all traces, without bins."""
    traces = [traces] if isinstance(traces, Trace) else list(traces)
    parts = [_examined(trace).assign(trace=number) for number, trace in enumerate(traces)]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["place"], dtype=np.int64)


def _in_bins(found: pd.DataFrame, bins: int | Sequence[int]) -> pd.DataFrame:
    edges = bin_edges(bins, int(found["place"].max()) + 1 if len(found) else 1)
    number = np.searchsorted(edges, found["place"].to_numpy(), side="right") - 1
    inside = (number >= 0) & (number < len(edges) - 1)
    found, number = found[inside], number[inside]
    found = found.assign(output_index=edges[number], output_index_end=edges[number + 1])
    names = ["trace", "sequence", "round", "position", "accepted", "bucket", "output_index", "output_index_end"]
    return found.reindex(columns=names).reset_index(drop=True)


def _examined(trace: Trace) -> pd.DataFrame:
    """sequence, round, position, accepted, place (in the output) and bucket, once a round and position."""
    rows = trace.positions[trace.positions["outcome"].isin(EXAMINED)]
    rows = rows.assign(accepted=rows["outcome"] == "accepted", place=output_index(trace, rows))
    keys = ["sequence", "round", "position"]
    rows = rows.groupby(keys, as_index=False).agg(accepted=("accepted", "max"), place=("place", "first"))
    names = np.array([entry.get("bucket") or NO_BUCKET for entry in trace.sequences], dtype=object)
    return rows.assign(bucket=names[rows["sequence"].to_numpy(dtype=np.int64)])
