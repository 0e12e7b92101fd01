"""`specworkbench report`: every prompt plainly and with every proposer, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.questions import prompts_asked_for
from specworkbench.cli.screen import (
    INTERRUPTED,
    StopOnInterrupt,
    check_writable,
    figure,
    only_json,
    printable,
    quiet_transformers,
    say,
    screen,
)
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.experiments.bench import Bench
    from specworkbench.experiments.plan import Plan
    from specworkbench.experiments.report import Report

QUICK_PER_BUCKET, QUICK_TOKENS, TOKENS = 2, 32, 96
Number = TypeVar("Number", int, float)

Drafts = Annotated[
    list[str] | None,
    opt.option("--draft", help="A draft to compare, short for --proposer draft_model:DRAFT; may be given again."),
]
Proposers = Annotated[
    list[str] | None,
    opt.option(
        "--proposer",
        metavar="SPEC",
        help="NAME[:WEIGHTS][,SETTING=VALUE...]: a proposer to compare; may be given again; specworkbench proposers "
        "lists them. [default: all that work on this target without being told more]",
    ),
]
Out = Annotated[str, opt.option("--out", help="Folder of report.json, report.html and the traces.")]
Quick = Annotated[bool, opt.option("--quick", help=f"{QUICK_PER_BUCKET} prompts a bucket, {QUICK_TOKENS} tokens each.")]


def report(
    target: opt.Target = "embedded",
    proposer: Proposers = None,
    draft: Drafts = None,
    prompts: opt.Prompts = None,
    gamma: Annotated[str, opt.option("--gamma", help="Tokens proposed per round, such as 2,4.")] = "4",
    temperature: Annotated[str, opt.option("--temperature", help="Temperatures, such as 0,1.")] = "0,1",
    max_new_tokens: Annotated[
        int | None, opt.option("--max-new-tokens", help=f"Most tokens a prompt. [default: {TOKENS}]")
    ] = None,
    seed: opt.Seed = 0,
    chat: opt.Chat = False,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    engine: opt.Engine = "eager",
    out: Out = "report",
    quick: Quick = False,
    as_json: opt.Json = False,
) -> None:
    """Decode the prompts plainly and with each proposer, interleaved; compare prediction and measurement.

    Ctrl-C loses nothing that was finished: the report is written over it.
    """
    from specworkbench.experiments.plan import Plan, proposers_for

    folder = Path(out)
    check_writable(folder / "report.json", "the report")
    source, questions = prompts_asked_for(prompts, target, QUICK_PER_BUCKET if quick else None)
    plan = Plan(
        target=target,
        proposers=proposers_for(target, proposer or (), draft or ()),
        prompts=tuple(questions),
        gammas=numbers(gamma, int, "gamma", "whole numbers"),
        temperatures=numbers(temperature, float, "temperature", "numbers"),
        max_new_tokens=(QUICK_TOKENS if quick else TOKENS) if max_new_tokens is None else max_new_tokens,
        seed=seed,
        chat=chat,
        dtype=dtype,
        device=device,
        fused=fused,
        products=products,
        engine=engine,
        lenient=not (proposer or draft),
    )
    with only_json(as_json):
        found = decode_plan(plan, folder, source, quick)
    if as_json:
        print(found.as_json())
    else:
        show(found)
    if found.environment["interrupted"]:
        runs = found.environment["runs"]
        say(f"interrupted after {runs['finished']} of {runs['planned']} runs; the report is on those")
        raise typer.Exit(INTERRUPTED)


def numbers(text: str, kind: Callable[[str], Number], name: str, what: str) -> tuple[Number, ...]:
    """'2,4' as numbers, each once. Raises `InputError` for anything else."""
    try:
        return tuple(dict.fromkeys(kind(part) for part in text.split(",")))
    except ValueError as error:
        raise InputError(f"{name} is {text!r}; give {what} separated by commas, such as 1,2") from error


def decode_plan(plan: Plan, folder: Path, source: str, quick: bool) -> Report:
    """Decode, and write the report over whatever was finished, even if an error ends it early.

    Where nothing was finished, an older report is left alone.
    """
    from specworkbench.experiments.bench import Bench

    quiet_transformers()
    bench = Bench(plan, folder)
    for label, why in bench.left_out.items():
        say(f"{label} is left out: {why}")
    try:
        with StopOnInterrupt() as interrupt:
            decode_cells(bench, interrupt)
    finally:
        found = write(bench, source, quick) if bench.finished else None
    if found is None:
        say("interrupted before anything was finished")
        raise typer.Exit(INTERRUPTED)
    return found


def decode_cells(bench: Bench, interrupt: StopOnInterrupt) -> None:
    """All cells, or those before an interrupt, with a progress bar on standard error."""
    from tqdm import tqdm

    bench.warm_up(stop=lambda: interrupt.asked)
    with tqdm(total=bench.planned, unit="run", file=sys.stderr, dynamic_ncols=True) as bar:

        def advance(cell: Any) -> None:
            bar.set_postfix_str(printable(cell.prompt.id), refresh=False)
            bar.update()

        bench.run(advance, stop=lambda: interrupt.asked)


def write(bench: Bench, source: str, quick: bool) -> Report:
    """report.json and report.html on what is finished."""
    from specworkbench.cli.report_html import page
    from specworkbench.experiments.files import write_whole
    from specworkbench.experiments.report import report_of

    found = report_of(bench, source)
    found.environment["quick"] = quick
    found.save(bench.out)
    path = write_whole(bench.out / "report.html", page(found))
    say(f"report written to {path}")
    return found


def show(found: Report) -> None:
    """The rows as tables, one a configuration."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = screen()
    for key, rows in groupby(found.rows, key=lambda row: (row["proposer"], row["gamma"], row["temperature"])):
        table = Table(
            "bucket", *heads(f"v({key[1] + 1})"), title=printable("{}, gamma {}, temperature {:g}".format(*key)),
            title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
        )  # fmt: skip
        for row in rows:
            table.add_row(printable(row["bucket"]), *cells(row))
        console.print(table)


def heads(verify_cost: str) -> list[str]:
    """The heads of the columns of `cells`; verify_cost: of v."""
    return ["alpha", "overlap", "E[N]", "theory", "c", verify_cost, "predicted", "speedup", "interval", "tokens"]


def cells(row: dict[str, Any]) -> list[str]:
    """The figures of a row as text, in the order of the columns of `show` and of the page."""
    names = ("alpha_counts", "alpha_overlap", "block_efficiency", "expected_tokens", "c", "verify_cost")
    ends = [row["speedup_low"], row["speedup_high"]]
    interval = "–" if None in ends else "{:.2f} to {:.2f}".format(*ends)
    speedups = [figure(row[name], 2) for name in ("speedup_predicted", "speedup_measured")]
    return [*(figure(row[name]) for name in names), *speedups, interval, str(row["tokens"])]
