"""`specworkbench gap`: from the formula's speedup to the measured one, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import check_writable, figure, printable, say, screen
from specworkbench.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from specworkbench.analysis import Gap
    from specworkbench.experiments.traces import Compared
    from specworkbench.trace import Trace

ALL = "all"
OVERVIEW = {
    "acceptance": ("uneven acceptance",),
    "guesses": ("fewer guesses",),
    "ends": ("ends of outputs",),
    "proposing": ("proposing",),
    "verifying": ("verification",),
    "loop": ("commit and rollback", "rest of a round", "between rounds"),
    "pauses": ("pauses",),
    "prefill": ("prefill", "proposer's prefill"),
}
"""Columns of the table of several configurations, and the steps that each adds up."""
NOTE = (
    "A change depends on what was counted before it. Without: the speedup reached if that step alone were undone, "
    "whatever the order."
)

First = Annotated[
    str,
    typer.Argument(
        metavar="PLAIN", help="A trace of plain decoding, or a folder of its traces; or, alone, the folder of a report."
    ),
]
Second = Annotated[
    str | None,
    typer.Argument(metavar="SPECULATIVE", help="A trace of the same prompts with a proposer, or a folder of such."),
]
Bucket = Annotated[str | None, opt.option("--bucket", help="Only prompts of this bucket. [default: all]")]
Html = Annotated[str | None, opt.option("--html", help="Write the figures and tables to this page.")]


class Explained(NamedTuple):
    """A configuration's gap, what formulas predict of it, and how its acceptance departs from i.i.d."""

    name: str
    gap: Gap
    predictions: pd.DataFrame
    survival: pd.DataFrame
    autocorrelation: pd.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        tables = {name: getattr(self, name).to_dict("records") for name in self._fields[2:]}
        return {"name": self.name, **self.gap.as_dict(), **tables}


def gap(
    plain: First, speculative: Second = None, bucket: Bucket = None, html: Html = None, as_json: opt.Json = False
) -> None:
    """Explain a measured speedup: from the formula's down to it, in steps of total times that add up.

    Two traces of the same prompts, or every configuration in the folder of a report:

    specworkbench report --out report; specworkbench gap report
    """
    from specworkbench.experiments.files import to_json

    if html is not None:
        check_writable(Path(html), "the page")
    found = [explain(compared, bucket) for compared in read(plain, speculative)]
    if html is not None:
        from specworkbench.cli.gap_html import page
        from specworkbench.experiments.files import write_whole

        say(f"page written to {write_whole(Path(html), page(found, bucket or ALL))}")
    if as_json:
        print(to_json({"bucket": bucket or ALL, "gaps": [explained.as_dict() for explained in found]}))
    elif speculative is None:
        show_all(found)
    else:
        show(found[0])


def read(plain: str, speculative: str | None) -> list[Compared]:
    """What is to be explained. Raises `InputError` where it cannot be read."""
    from specworkbench.experiments.traces import Compared, read_report, read_traces

    if speculative is None:
        return read_report(Path(plain))
    return [Compared(speculative, read_traces(Path(plain)), read_traces(Path(speculative)))]


def explain(compared: Compared, bucket: str | None) -> Explained:
    """Raises `InputError`, naming the configuration, where there is nothing to explain."""
    from specworkbench import analysis

    try:
        plain, own = (_of_bucket(trace, bucket) for trace in compared[1:])
        found = analysis.gap(plain, own)
        tables = analysis.predictions(plain, own, found), analysis.survival_against_iid(own)
        return Explained(compared.name, found, *tables, analysis.autocorrelation(own))
    except InputError as error:
        raise InputError(f"{compared.name}: {error}") from error


def _of_bucket(trace: Trace, bucket: str | None) -> Trace:
    from specworkbench import analysis

    if bucket is None:
        return trace
    parts = analysis.by_bucket(trace)
    if bucket not in parts:
        raise InputError(f"there is no bucket {bucket!r}; there are {', '.join(parts)}")
    return parts[bucket]


def show(explained: Explained) -> None:
    """The steps, the predictions and the acceptance of one configuration as tables, and the sentence."""
    console = screen()
    console.print(steps_table(explained))
    console.print(NOTE)
    console.print(printable(explained.gap.sentence) + "\n")
    console.print(predictions_table(explained.predictions))
    if len(explained.survival):
        console.print(survival_table(explained.survival))
    if said := in_a_row(explained.autocorrelation):
        console.print(said)


def show_all(found: list[Explained]) -> None:
    """A row a configuration, and a sentence on each."""
    console = screen()
    table = _table(["configuration", "formula", *OVERVIEW, "measured", "interval"], "", left=1)
    for explained in found:
        table.add_row(printable(explained.name), *overview_cells(explained.gap))
    console.print(table)
    for explained in found:
        console.print(f"{printable(explained.name)}\n  {printable(explained.gap.sentence)}\n")


def overview_cells(gap: Gap) -> list[str]:
    """The figures of a gap as text, in the order of the columns after the configuration."""
    change = {step.name: step.change.value for step in gap.steps}
    moved = [signed(sum(change.get(name, 0.0) for name in names)) for names in OVERVIEW.values()]
    return [
        figure(gap.ideal.value, 2),
        *moved,
        figure(gap.speedup.value, 2),
        between(gap.speedup.low, gap.speedup.high),
    ]


def steps_table(explained: Explained) -> Table:
    gap = explained.gap
    table = _table(["step", "speedup", "interval", "change", "interval", "without", "figures"], explained.name, left=1)
    table.columns[-1].justify = "left"
    for cells in step_rows(gap):
        table.add_row(*cells)
    return table


def step_rows(gap: Gap) -> list[list[str]]:
    """A row of text a step: its name, the speedup after it and the change, each with its interval, the speedup reached
    without it, and the figures."""
    start = "formula" if gap.alpha is not None else "tokens a round"
    rows = [[start, figure(gap.ideal.value), between(gap.ideal.low, gap.ideal.high), "", "", "", ""]]
    for step in gap.steps:
        (after, *ends), (change, *moved) = step.speedup, step.change
        moved = [signed(change, 3), between(*moved, digits=3)]
        rows.append([step.name, figure(after), between(*ends), *moved, figure(step.without, 2), step.figures])
    return rows


def predictions_table(table: pd.DataFrame) -> Table:
    shown = _table(["prediction", "speedup", "error", "rounds alone", "undisturbed", "formula"], "predictions", left=1)
    shown.columns[-1].justify = "left"
    for row in table.itertuples():
        errors = (percent(error) for error in (row.error, row.error_rounds, row.error_undisturbed))
        shown.add_row(row.prediction, or_dash(row.speedup, 2), *errors, row.formula)
    return shown


def survival_table(table: pd.DataFrame) -> Table:
    names = ["position", "examined", "accepted", "survival", "interval", "alpha^j", "difference", "interval"]
    shown = _table(names, "the first j guesses all accepted, beside alpha^j", left=0)
    for row in table.itertuples():
        shown.add_row(
            str(row.position), str(row.examined), or_dash(row.acceptance), or_dash(row.survival),
            between(row.low, row.high), or_dash(row.iid), signed(row.difference, 3),
            between(row.difference_low, row.difference_high),
        )  # fmt: skip
    return shown


def in_a_row(table: pd.DataFrame) -> str:
    """Whether rounds that follow each other accept alike, in words; empty where there is nothing to tell."""
    first = table.iloc[0]
    if first.isna().any():
        return ""
    beyond = "beyond" if not first["band_low"] <= first["autocorrelation"] <= first["band_high"] else "within"
    return (
        f"Accepted lengths of rounds that follow each other correlate by {first['autocorrelation']:+.2f}, {beyond} the "
        f"{first['band_low']:+.2f} to {first['band_high']:+.2f} that shuffled rounds of the same prompts show."
    )


def between(low: float | None, high: float | None, digits: int = 2) -> str:
    return "–" if low is None or low != low else f"{low:.{digits}f} to {high:.{digits}f}"


def signed(change: float, digits: int = 2) -> str:
    """With its sign; a plain 0 where nothing changes."""
    return "0" if abs(change) < 1e-9 else f"{change:+.{digits}f}"


def percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:+.1f} %"


def or_dash(value: float, digits: int = 3) -> str:
    return figure(None if value != value else float(value), digits)


def _table(names: list[str], title: str, left: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=printable(title) or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < left else "right")
    return table
