"""`specworkbench table`: a report's traces by category, in the layout of Spec-Bench or SPEED-Bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import figure, printable, say, screen
from specworkbench.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from specworkbench.trace import Trace

SPEC_BENCH, SPEED_BENCH = LAYOUTS = ("spec-bench", "speed-bench")
SPEED_METRICS = ("accept_length", "block_efficiency")
"""SPEED-Bench's own metric, and beside it this project's."""

Layout = Annotated[
    str,
    opt.option(
        "--layout",
        help="spec-bench: tasks by mean accepted tokens and speedup. speed-bench: models by category and Overall.",
    ),
]


def table(
    folder: Annotated[str, typer.Argument(help="The folder of a report, as given to report --out.")] = "report",
    layout: Layout = SPEC_BENCH,
    out: Annotated[str | None, opt.option("--out", help="Also write the table to this file, as CSV.")] = None,
    as_json: opt.Json = False,
) -> None:
    """The traces of a report as a table by category, a category being a bucket, as those projects print theirs.

    Spec-Bench: per task the mean accepted tokens (the bonus included) and the ratio of mean tokens per second, with
    block efficiency and the speedup in total time beside them. SPEED-Bench: acceptance length by category, with block
    efficiency beside it.
    """
    from specworkbench.experiments.files import to_json, write_whole
    from specworkbench.experiments.recorded import runs_of_report

    if layout not in LAYOUTS:
        raise InputError(f"there is no layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
    runs = runs_of_report(Path(folder))
    found = spec_bench(runs) if layout == SPEC_BENCH else speed_bench(runs)
    flat = flattened(found)
    if as_json:
        print(to_json({"layout": layout, "rows": flat.to_dict("records")}))
    else:
        for title, part in found.items():
            show(title, part)
    if out is not None:
        say(f"written to {write_whole(Path(out), flat.to_csv(index=False), 'the table')}")


def spec_bench(runs: list[Trace]) -> dict[str, pd.DataFrame]:
    """{run: its table}. Raises `InputError` where no speculative run has a plain one of the same sampling."""
    from specworkbench.analysis import spec_bench_table
    from specworkbench.experiments.recorded import label_of, with_plain

    tables = {label_of(run): spec_bench_table(plain, run) for plain, run in with_plain(runs)}
    if not tables:
        raise InputError("the report has no speculative run beside a plain one; let it finish a prompt with both")
    return tables


def speed_bench(runs: list[Trace]) -> dict[str, pd.DataFrame]:
    """{metric: its table, a row a speculative run}. Raises `InputError` where there is none."""
    from specworkbench.analysis import speed_bench_table
    from specworkbench.experiments.recorded import is_plain, label_of

    speculative = {label_of(run): run for run in runs if not is_plain(run)}
    if not speculative:
        raise InputError("the report has no speculative run, and plain decoding accepts nothing; let one finish")
    return {metric: speed_bench_table(speculative, metric) for metric in SPEED_METRICS}


def flattened(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """All of them as one: the first column says which (run or metric), the second is the table's own index."""
    import pandas as pd

    first = "metric" if next(iter(tables)) in SPEED_METRICS else "run"
    return pd.concat(tables, names=[first]).reset_index()


def show(title: str, found: pd.DataFrame) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(title=printable(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column(found.index.name)
    for name in found.columns:
        shown.add_column(printable(str(name)), justify="right")
    for label, row in zip(found.index, found.itertuples(index=False), strict=True):
        shown.add_row(printable(str(label)), *(figure(None if value != value else value, 2) for value in row))
    screen().print(shown)
