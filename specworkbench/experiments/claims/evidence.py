"""What a study leaves behind to judge claims by: totals by cell and prompt, and by the place in the output. No torch.

A study's folder keeps a row a cell, which is enough to look at, and traces, which are large. What lies between is all
that judging needs: what each prompt gave in each cell, so that cells are compared prompt by prompt. It is computed from
the traces once and kept beside the cells, in `prompts.parquet` and `places.parquet`; the traces may go then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.analysis.acceptance import output_index
from specworkbench.analysis.parts import prompt_totals, prompts
from specworkbench.errors import InputError
from specworkbench.experiments.study.grid import AXES
from specworkbench.experiments.study.store import CELLS, STUDY, Store
from specworkbench.experiments.study.table import read_study
from specworkbench.files import whole_file
from specworkbench.trace import Trace, load_trace
from specworkbench.trace.schema import EXAMINED

PROMPTS, PLACES = "prompts.parquet", "places.parquet"
SIDES = ("plain", "speculative")
CELL_AXES = tuple(name for name in AXES if name != "bucket")
"""A prompt has a bucket of its own, whatever the cell's axis says."""
PLACE_TOKENS = 32
"""Width of a bin of the output index."""
ORDER = 3
"""A token counts as repeated where the last three tokens stood before, and it followed them the last time."""


@dataclass(frozen=True)
class Evidence:
    """Of one study.

    cells: one row a finished cell, see `read_study`. prompts: one row a cell and prompt: cell (its id), the cell's axes
    (`CELL_AXES`), prompt, bucket and totals: examined, accepted, overlap (sum over examined tokens), rounds, tokens, ms
    (of the whole sequence), ms_rounds (without prefills), plain_tokens, plain_ms, plain_ms_rounds, repeated (plain
    tokens that an n-gram look-up of `ORDER` would have known), and parameters and draft_parameters of the models (NaN
    for a proposer without any). places: one row a cell, prompt and bin of `PLACE_TOKENS` output indices, `place` its
    first: examined, accepted, overlap. complete: whether every cell that can be decoded has been.
    """

    cells: pd.DataFrame
    prompts: pd.DataFrame
    places: pd.DataFrame
    complete: bool = True


def read_evidence(folder: Path) -> Evidence | None:
    """The evidence in the folder of a study; None where there is no study, or none of its cells is finished.

    What is not yet kept is computed from the cells' traces, and kept. Raises `InputError` for a damaged file.
    """
    if not (folder / STUDY).exists():
        return None
    store, settled = Store(folder), read_study(folder)
    complete = len(settled) >= len(store.study().cells()) - len(store.description()["left_out"])
    cells = settled[settled["status"] == "finished"].reset_index(drop=True)
    tables = update(folder, cells["id"])
    axes = cells[["id", *CELL_AXES]].rename(columns={"id": "cell"})
    found, places = (axes.merge(table, on="cell", how="inner") for table in tables)
    return None if found.empty else Evidence(cells, found, places, complete)


def update(folder: Path, ids: Iterable[str], traces: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The kept tables of prompts and of places, with these finished cells added. traces: whether to leave these."""
    tables = [_read(folder / name) for name in (PROMPTS, PLACES)]
    known = set(tables[0]["cell"]) if len(tables[0]) else set()
    new = [id for id in ids if id not in known and _trace(folder, id, SIDES[0]).exists()]
    if new:
        found = [_of_cell(folder, id) for id in new]
        for number in range(2):
            tables[number] = pd.concat([tables[number], *(pair[number] for pair in found)], ignore_index=True)
        for name, table in zip((PLACES, PROMPTS), tables[::-1], strict=True):  # what is known is written last
            _write(folder / name, table)
    if not traces:
        for path in (_trace(folder, id, side) for id in {*known, *new} for side in SIDES):
            path.unlink(missing_ok=True)
    return tables[0], tables[1]


def by_prompt(plain: Trace, speculative: Trace) -> pd.DataFrame:
    """One row a prompt of a cell: see `Evidence.prompts`, without the axes."""
    table = _totals(speculative).join(_totals(plain)[["tokens", "ms", "ms_rounds"]].add_prefix("plain_"))
    table["repeated"] = pd.Series({sequence["id"]: repeated(sequence) for sequence in plain.sequences})
    table["parameters"] = plain.manifest["target"]["parameters"]
    draft = speculative.manifest["proposer"].get("draft") or {}
    table["draft_parameters"] = float(draft.get("parameters") or np.nan)
    return table.reset_index(names="prompt")


def by_place(speculative: Trace) -> pd.DataFrame:
    """One row a prompt and bin of the output index: see `Evidence.places`, without the axes."""
    names, prompt = prompts(speculative)
    examined = speculative.positions[speculative.positions["outcome"].isin(EXAMINED)]
    keys = {
        "prompt": np.array(names, dtype=object)[prompt[examined["sequence"].to_numpy()]],
        "place": output_index(speculative, examined) // PLACE_TOKENS * PLACE_TOKENS,
    }
    found = pd.DataFrame(keys | {
        "examined": 1, "accepted": (examined["outcome"] == "accepted").to_numpy(),
        "overlap": examined["overlap"].to_numpy(),
    })  # fmt: skip
    return found.groupby(["prompt", "place"], as_index=False, sort=True).sum()


def repeated(sequence: dict[str, Any]) -> int:
    """Output tokens of a sequence that followed the `ORDER` tokens before them when these stood there last."""
    tokens, start = [*sequence["prompt_tokens"], *sequence["token_ids"]], len(sequence["prompt_tokens"])
    followed_by: dict[tuple[int, ...], int] = {}
    count = 0
    for place in range(ORDER, len(tokens)):
        before = tuple(tokens[place - ORDER : place])
        count += place >= start and followed_by.get(before) == tokens[place]
        followed_by[before] = tokens[place]
    return count


def _totals(trace: Trace) -> pd.DataFrame:
    """By prompt id: bucket, and totals of the rounds."""
    rounds, (names, prompt) = trace.rounds, prompts(trace)
    examined = trace.positions[trace.positions["outcome"].isin(EXAMINED)]
    table = pd.DataFrame({
        "bucket": {sequence["id"]: sequence["bucket"] for sequence in trace.sequences},
        **{name: pd.Series(prompt_totals(trace, rounds["sequence"], rounds[column]), index=names)
           for name, column in (("examined", "examined"), ("accepted", "accepted"), ("ms_rounds", "ms_total"))},
        "overlap": pd.Series(prompt_totals(trace, examined["sequence"], examined["overlap"].fillna(0)), index=names),
        "rounds": pd.Series(prompt_totals(trace, rounds["sequence"], np.ones(len(rounds))), index=names),
    })  # fmt: skip
    for name, values in (
        ("tokens", [len(sequence["token_ids"]) for sequence in trace.sequences]),
        ("ms", [sequence["ms_total"] for sequence in trace.sequences]),
    ):
        table[name] = np.bincount(prompt, values, minlength=len(names))
    return table


def _of_cell(folder: Path, id: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    plain, speculative = (load_trace(_trace(folder, id, side)) for side in SIDES)
    found = by_prompt(plain, speculative), by_place(speculative)
    for table in found:
        table.insert(0, "cell", id)
    return found


def _trace(folder: Path, id: str, side: str) -> Path:
    return folder / CELLS / id / f"{side}.trace"


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame({"cell": pd.Series(dtype=object)})
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); remove it if its study's traces are still there") from error


def _write(path: Path, table: pd.DataFrame) -> None:
    with whole_file(path, "the evidence") as file:
        table.to_parquet(file, index=False, compression="zstd")
