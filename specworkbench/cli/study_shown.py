"""`specworkbench study table` and `plot`: a study read back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.report import cells, heads
from specworkbench.cli.screen import check_writable, printable, say, screen
from specworkbench.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

LONG = ("target", "proposer")

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The folder of a study.")]
By = Annotated[
    str | None,
    opt.option(
        "--by", metavar="AXIS,...", help="Medians over the cells that agree in these axes, with the lowest and highest."
    ),
]
Csv = Annotated[str | None, opt.option("--csv", metavar="FILE", help="Write all columns to a CSV file.")]


def table(folder: Folder, by: By = None, csv: Csv = None, as_json: opt.Json = False) -> None:
    """Show a study: a row a cell, its axes that vary and its figures; all columns with --csv or --json."""
    from specworkbench.experiments.files import to_json, write_whole
    from specworkbench.experiments.study.store import Store
    from specworkbench.experiments.study.table import medians, read_study, remarks

    found = read_study(folder)
    rows = medians(found, names(by)) if by else found
    left_out = Store(Path(folder)).description()["left_out"]
    if csv is not None:
        check_writable(Path(csv), "the table")
        write_whole(Path(csv), rows.to_csv(index=False), "the table")
        say(f"table written to {csv}")
    if as_json:
        print(to_json({"rows": plain(rows), "left_out": left_out}))
        return
    if csv is None:
        show(rows)
    for remark in remarks(folder, found):
        say(remark)


def hindsight(folder: Folder, csv: Csv = None, as_json: opt.Json = False) -> None:
    """Hold controllers against the constant gamma that turned out best, cell by cell."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.files import to_json, write_whole
    from specworkbench.experiments.study import hindsight, read_study
    from specworkbench.experiments.study.grid import shown

    found = hindsight(read_study(folder))
    if csv is not None:
        check_writable(Path(csv), "the table")
        write_whole(Path(csv), found.to_csv(index=False), "the table")
        say(f"table written to {csv}")
    if as_json:
        print(to_json({"rows": plain(found)}))
    elif csv is None:
        made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in found.columns:
            made.add_column(name.replace("_", " "), justify="right" if found[name].dtype.kind in "if" else "left")
        for row in plain(found.round(3)):
            made.add_row(*(printable(shown(value)) for value in row.values()))
        screen().print(made)
        screen().print("share: speedup over that of the best constant gamma, chosen afterwards from these figures.")


def names(text: str) -> list[str]:
    """'gamma,rule' as names."""
    return [part.strip() for part in text.split(",") if part.strip()]


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts of JSON's own types; None for what was not measured."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def show(table: pd.DataFrame) -> None:
    """The finished rows. Axes of one value stand above the tables, and so do target and proposer, whose names are long:
    a table for each of them, where something else varies too."""
    from specworkbench.experiments.study.grid import AXES, chosen, named
    from specworkbench.experiments.study.table import varying

    finished = table[table["status"] == "finished"] if "status" in table else table
    if finished.empty:
        return
    axes = varying(finished)
    fixed = {name: finished[name].iloc[0] for name in AXES if name in finished and name not in axes}
    if same := named(chosen(fixed)):
        screen().print(printable(same))
    long = [name for name in LONG if name in axes]
    inside = [name for name in axes if name not in long]
    if not long or not inside:
        show_part(finished, axes, "")
        return
    for values, part in finished.groupby(long, sort=False):
        show_part(part, inside, named(dict(zip(long, values, strict=True))))


def show_part(table: pd.DataFrame, axes: list[str], title: str) -> None:
    """One table: these axes, and the figures as in a report."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.study.grid import shown

    counts = ["cells"] if "cells" in table else []
    made = Table(title=printable(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in axes:
        made.add_column(name.replace("_", " "), overflow="fold")
    for name in [*counts, *heads("v")]:
        made.add_column("lowest to highest" if counts and name == "interval" else name, justify="right")
    for row in plain(table):
        values = [printable(shown(row[name])) for name in axes] + [str(row[name]) for name in counts]
        made.add_row(*values, *cells(row | {"tokens": int(row["tokens"])}))
    screen().print(made)


X = Annotated[
    str | None, opt.option("--x", metavar="AXIS", help="The axis from left to right. [default: the first that varies]")
]
Y = Annotated[str, opt.option("--y", metavar="FIGURE", help="The figure that is drawn, a column of the table.")]
Color = Annotated[str | None, opt.option("--color", metavar="AXIS", help="The axis told apart by colour and symbol.")]
Facet = Annotated[str | None, opt.option("--facet", metavar="AXIS", help="The axis with a panel for each value.")]
Html = Annotated[str, opt.option("--out", metavar="FILE", help="The HTML file; it opens without a network.")]


def plot(
    folder: Folder,
    x: X = None,
    y: Y = "speedup_measured",
    color: Color = None,
    facet: Facet = None,
    out: Html = "study.html",
) -> None:
    """Draw a figure over an axis: a point a cell, with its 95 % interval where it has one."""
    from specworkbench.experiments.files import write_whole
    from specworkbench.experiments.study.grid import counted
    from specworkbench.experiments.study.table import read_study

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"cannot write a figure to {out}; name a file that ends in .html")
    check_writable(Path(out), "the figure")
    found = read_study(folder)
    finished = found[found["status"] == "finished"]
    if finished.empty:
        raise InputError(f"no cell of the study in {folder} is finished; specworkbench study run decodes them")
    write_whole(Path(out), page(finished, x, y, color, facet), "the figure")
    say(f"figure of {counted(len(finished), 'cell')} written to {out}")


def page(table: pd.DataFrame, x: str | None, y: str, color: str | None, facet: str | None) -> str:
    """The figure as one HTML file. Raises `InputError` for what is no axis or no figure of the study."""
    from specworkbench.experiments.study.figures import MEASURES
    from specworkbench.experiments.study.table import check_axes, varying
    from specworkbench.plots import study_cells
    from specworkbench.plots.style import ink_css

    axes = varying(table)
    x = x or next(iter(axes), "gamma")
    check_axes([name for name in (x, color, facet) if name is not None])
    if y not in MEASURES:
        raise InputError(f"there is no figure {y!r}; there are {', '.join(MEASURES)}")
    if table[y].isna().all():
        raise InputError(f"no cell has {y}, so there is nothing to draw; take another figure")
    other = [name for name in axes if name not in (x, color, facet)]
    if other:
        say(f"points at one place differ in {', '.join(other)}; hovering tells")
    figure = study_cells(table, x=x, y=y, color=color, facet=facet)
    style = f"<style>:root{{color-scheme:light dark}} body{{margin:1rem}} {ink_css('CanvasText')}</style>"
    html = figure.to_html(include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
    return html.replace("<head>", f"<head>{style}<title>specworkbench study</title>", 1)
