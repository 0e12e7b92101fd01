"""Parts of a trace: some of its sequences, each bucket, each prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from specworkbench.errors import InputError
from specworkbench.trace import Trace


def select(trace: Trace, sequences: Iterable[int]) -> Trace:
    """The trace of these sequences alone, renumbered 0, 1, ... in the order given.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> [entry["id"] for entry in select(trace, [4, 0]).sequences]
    ['structured-01', 'code-01']
    """
    chosen = list(sequences)
    if outside := [index for index in chosen if not 0 <= index < len(trace.sequences)]:
        raise InputError(f"there is no sequence {outside[0]}; the trace has {len(trace.sequences)}, from 0 on")
    manifest = trace.manifest | {"sequences": [trace.sequences[index] for index in chosen]}
    tables = (trace.rounds, trace.positions, trace.distributions)
    return Trace(
        manifest, *(None if table is None else _renumbered(table, chosen) for table in tables), rows=trace.rows
    )


def by_bucket(trace: Trace, named: Callable[[str], str] = str) -> dict[str, Trace]:
    """{bucket: the trace of its sequences}, in the order in which buckets first occur.

    named: the name under which a bucket goes; several of one name are one.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> {bucket: len(part.sequences) for bucket, part in by_bucket(trace).items()}
    {'code': 2, 'prose': 2, 'structured': 2}
    """
    members: dict[str, list[int]] = {}
    for index, sequence in enumerate(trace.sequences):
        members.setdefault(named(sequence["bucket"]), []).append(index)
    return {bucket: select(trace, indices) for bucket, indices in members.items()}


def gamma_varies(trace: Trace) -> bool:
    """Whether a controller chose more than one gamma."""
    return trace.rounds["gamma"].nunique() > 1


def has_trees(trace: Trace) -> bool:
    """Whether any proposal is a tree: a proposed token that does not continue the one before."""
    proposed = trace.positions[trace.positions["node"] >= 0]
    return bool((proposed["parent"] != proposed["node"] - 1).any())


def prompts(trace: Trace) -> tuple[list[str], np.ndarray]:
    """The ids of the prompts, and (sequences,) which prompt each sequence continues: the clusters of a bootstrap."""
    ids = list(dict.fromkeys(sequence["id"] for sequence in trace.sequences))
    index = {name: number for number, name in enumerate(ids)}
    return ids, np.array([index[sequence["id"]] for sequence in trace.sequences], dtype=np.int64)


def prompt_totals(trace: Trace, sequence: pd.Series, values: np.ndarray) -> np.ndarray:
    """(prompts,) the values summed by the prompt of their row's sequence."""
    ids, prompt = prompts(trace)
    return np.bincount(prompt[sequence.to_numpy()], np.asarray(values, dtype=np.float64), minlength=len(ids))


def _renumbered(table: pd.DataFrame, chosen: list[int]) -> pd.DataFrame:
    number = {index: new for new, index in enumerate(chosen)}
    kept = table[table["sequence"].isin(chosen)]
    kept = kept.assign(sequence=kept["sequence"].map(number).astype(table["sequence"].dtype))
    return kept.sort_values("sequence", kind="stable").reset_index(drop=True)
