"""`specworkbench costs`: what a step and a verification of the target cost, and with --limit the least they could."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.report import numbers
from specworkbench.cli.screen import (
    INTERRUPTED,
    StopOnInterrupt,
    figure,
    only_json,
    printable,
    quiet_transformers,
    say,
    screen,
)

if TYPE_CHECKING:
    from specworkbench.experiments.costs import Costs

MB, GIGA, MIB = 1e6, 1e9, 2**20

Rows = Annotated[
    str, opt.option("--rows", help="Rows of a forward, such as 1,5: gamma + 1 of a verification; 1 is always timed.")
]
Context = Annotated[str, opt.option("--context", help="Tokens in the cache before it, such as 64,512.")]
Runs = Annotated[int, opt.option("--runs", help="How often every forward is timed.")]
Limit = Annotated[
    bool,
    opt.option(
        "--limit",
        help="Also measure how fast this machine reads and multiplies, and say what share of that a forward reaches.",
    ),
]
Calibrate = Annotated[
    bool,
    opt.option(
        "--calibrate",
        help="First measure anew which form of each product is the fastest here, and keep that for later loads; for an "
        "idle machine.",
    ),
]


def costs(
    target: opt.Target = "embedded",
    revision: opt.Revision = None,
    rows: Rows = "1,2,3,5,9",
    context: Context = "64",
    runs: Runs = 25,
    limit: Limit = False,
    calibrate: Calibrate = False,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    engine: opt.Engine = "eager",
    as_json: opt.Json = False,
) -> None:
    """Time forwards of the target: T(n) over n rows, v(n) = T(n) / T(1); medians of interleaved runs.

    With --limit also the bytes a forward reads, the machine's measured read bandwidth, the time that gives, and the
    share of it that a step and a verification reach. Ctrl-C shows what was measured so far.
    """
    contexts, sizes = numbers(context, int, "context", "whole numbers"), numbers(rows, int, "rows", "whole numbers")
    with only_json(as_json):
        from specworkbench.engine import load_model
        from specworkbench.engine.calibration import forget_times
        from specworkbench.experiments.costs import Costs, CostSettings

        settings = CostSettings(contexts, sizes, runs, limit)
        quiet_transformers()
        if calibrate:
            forget_times()
        model = load_model(
            target, revision=revision, dtype=dtype, device=device, fused=fused, products=products, engine=engine
        )
        found = Costs(model, settings)
        interrupted = measure(found)
        shown = described(found, interrupted)
    if as_json:
        from specworkbench.experiments.files import to_json

        print(to_json(shown))
    elif shown["forwards"]:
        show(shown)
    if interrupted:
        measured = "what was measured is shown" if shown["forwards"] else "nothing was measured"
        say(f"interrupted; {measured}")
        raise typer.Exit(INTERRUPTED)


def measure(found: Costs) -> bool:
    """Run the timings with a bar on standard error; whether Ctrl-C ended them early."""
    from tqdm import tqdm

    with (
        StopOnInterrupt() as interrupt,
        closing(found.run()) as timings,
        tqdm(total=found.planned, unit="forward", file=sys.stderr, dynamic_ncols=True, leave=False) as bar,
    ):
        for _ in timings:
            bar.update()
            if interrupt.asked:
                break
    return interrupt.asked


def described(found: Costs, interrupted: bool) -> dict[str, Any]:
    """All that was measured, JSON-ready."""
    from specworkbench.experiments.environment import environment_of

    return {
        "target": found.target.describe(),
        "forwards": found.rows(),
        "limit": found.limit(),
        "environment": environment_of(found.target),
        "runs": found.settings.runs,
        "interrupted": interrupted,
    }


def show(shown: dict[str, Any]) -> None:
    """The forwards as a table, the limit in sentences."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    forwards, limit, where = shown["forwards"], shown["limit"], shown["environment"]
    names = ["context", "rows n", "T(n) ms", "interval", "v(n)", "interval"]
    names += ["weights MB", "cache MB", "memory ms", "arithmetic ms", "of bandwidth", "of floor"] if limit else []
    title = "{name}, {dtype}, forward: {forward}".format(**shown["target"])
    table = Table(title=printable(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, justify="right")
    for row in forwards:
        table.add_row(*timed_cells(row), *(limit_cells(row) if limit else ()))
    console = screen()
    console.print(table)
    runs = min(row["runs"] for row in forwards)
    console.print(
        f"T(n): a forward over n rows, median of {runs} runs, interleaved; v(n) = T(n) / T(1); intervals 95 %.\n"
        f"{where['cpu']}, {where['threads']} threads; device {where['device']}."
    )
    if limit:
        console.print("\n".join(sentences(forwards, limit)))


def timed_cells(row: dict[str, Any]) -> list[str]:
    ms, v = row["ms"], row["verify_cost"]
    return [
        str(row["context"]), str(row["rows"]), figure(ms, 2), between(row, "ms"), figure(v, 2),
        between(row, "verify_cost"),
    ]  # fmt: skip


def between(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "–" if low is None else f"{low:.2f}–{high:.2f}"


def limit_cells(row: dict[str, Any]) -> list[str]:
    return [
        figure(row["weight_bytes"] / MB, 2), figure(row["cache_bytes"] / MB, 2), figure(row["ms_memory"], 2),
        figure(row["ms_arithmetic"], 2), share(row["bandwidth_share"]), share(row["floor_share"]),
    ]  # fmt: skip


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def sentences(forwards: list[dict[str, Any]], limit: dict[str, Any]) -> list[str]:
    """How fast the machine reads and multiplies, and how near a step and the largest verification come to it."""
    memory, weights, products = limit["memory"], limit["weights"], limit["products"]
    last_level = limit["cache_bytes"]
    times = f", {memory['size'] / last_level:.0f} times the last-level cache" if last_level else ""
    said = [f"Memory is read at {measured(memory, 'GB/s')}, {buffer(memory)}{times}."]
    if weights:
        said.append(
            f"The weights are smaller and may stay in the cache: {buffer(weights)}, as large as they are, is read at "
            f"{measured(weights, 'GB/s')}. The faster of the two is the limit."
        )
    side = products["size"]
    said.append(f"Matrices of {side} x {side} are multiplied at {measured(products, 'Gflop/s')}.")
    said += [nearness(row, limit["bandwidth"]) for row in ends(forwards)]
    return said + ([f"Note: {limit['note']}."] if limit["note"] else [])


def ends(forwards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the first context the step and the forward of the most rows."""
    first = [row for row in forwards if row["context"] == forwards[0]["context"]]
    return first[:1] + first[1:][-1:]


def nearness(row: dict[str, Any], bandwidth: float) -> str:
    name = "A step" if row["rows"] == 1 else f"A verification of {row['rows']} rows"
    bytes_read = row["weight_bytes"] + row["cache_bytes"]
    return (
        f"{name} after {row['context']} tokens reads {bytes_read / MB:.1f} MB, {row['ms_memory']:.2f} ms at "
        f"{bandwidth / GIGA:.1f} GB/s; it takes {row['ms']:.2f} ms: {share(row['bandwidth_share'])} of the bandwidth."
    )


def measured(rate: dict[str, Any], unit: str) -> str:
    best, middle = rate["best"] / GIGA, rate["median"] / GIGA
    return f"{best:.1f} {unit} at best (median {middle:.1f}, {rate['runs']} runs)"


def buffer(rate: dict[str, Any]) -> str:
    return f"a buffer of {rate['size'] / MIB:.1f} MiB"
