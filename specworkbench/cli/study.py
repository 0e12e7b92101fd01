"""`specworkbench study`: a grid of cells, decoded one by one, kept, read back as a table and as figures."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import INTERRUPTED, StopOnInterrupt, only_json, printable, say
from specworkbench.cli.study_shown import hindsight, plot, table

if TYPE_CHECKING:
    from specworkbench.experiments.study.grid import Study
    from specworkbench.experiments.study.runner import Plan, Runner

CELLS_FAILED = 1
REFRESH_SECONDS = 1.0

study = typer.Typer(
    help="Studies: a grid over models, proposers, rules, sampling and lengths, kept cell by cell.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[str, typer.Argument(help="A TOML or Python file; specworkbench study example prints one.")]
Out = Annotated[str, opt.option("--out", metavar="DIR", help="Folder of the study; its finished cells stay.")]
Jobs = Annotated[
    int | None,
    opt.option(
        "--jobs",
        help="Processes side by side. On a CPU they share its threads and disturb each other's times: more than 1 is "
        "for acceptance, not for speed. [default: one a GPU; 1 on a CPU]",
    ),
]
Ray = Annotated[
    str | None,
    opt.option("--ray", metavar="ADDRESS", help="Decode on a Ray cluster: auto, HOST:PORT, or local."),
]
CpusPerWorker = Annotated[
    int | None,
    opt.option(
        "--cpus-per-worker", help="With --ray on machines without GPUs: cores of each worker. [default: one a machine]"
    ),
]


@study.command()
def run(
    file: File,
    out: Out = "study",
    jobs: Jobs = None,
    ray: Ray = None,
    cpus_per_worker: CpusPerWorker = None,
    retry_failed: Annotated[bool, opt.option("--retry-failed", help="Decode cells again that failed.")] = False,
    dry_run: Annotated[bool, opt.option("--dry-run", help="Show the plan and its estimate; write nothing.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Decode the cells of a study that are not yet in DIR, each with a plain baseline of its own, interleaved.

    Every finished cell is on disk at once: stopped by Ctrl-C or SIGTERM, or killed, and started again, a study loses
    none and repeats none. Exit code 1: a cell failed.
    """
    from specworkbench.experiments.study.reading import load_study

    with only_json(as_json):
        wanted = load_study(file)
        shown = run_in(wanted, Path(out), Where(jobs, ray, cpus_per_worker), retry_failed, dry_run)
    if as_json:
        from specworkbench.experiments.files import to_json

        print(to_json(shown))
    elif dry_run:
        print(printable("\n".join(shown["plan"])))
    if shown.get("interrupted"):
        raise typer.Exit(INTERRUPTED)
    if shown.get("failed"):
        raise typer.Exit(CELLS_FAILED)


study.command()(table)
study.command()(plot)
study.command()(hindsight)


@study.command()
def example() -> None:
    """Print a study to begin with, as TOML with comments."""
    from specworkbench.experiments.study.example import EXAMPLE

    print(EXAMPLE, end="")


@dataclass(frozen=True)
class Where:
    """Who decodes, as the options say."""

    jobs: int | None
    ray: str | None
    cpus_per_worker: int | None


def run_in(wanted: Study, folder: Path, where: Where, retry_failed: bool, dry_run: bool) -> dict[str, Any]:
    """Plan, and unless it is a dry run decode; what there is to tell, JSON-ready."""
    from specworkbench.experiments.study.runner import Runner, executor_for

    interrupt = StopOnInterrupt((signal.SIGINT, signal.SIGTERM))
    watch = Watch(interrupt)
    with executor_for(wanted, where.jobs, where.ray, where.cpus_per_worker, watch) as executor, interrupt:
        runner = Runner(wanted, folder, executor, retry_failed)
        if dry_run:
            return planned(runner.plan(stop=watch, tell=watch.tell))
        with runner.store.alone():
            plan = runner.plan(stop=watch, tell=watch.tell)
            for line in plan.lines():
                say(line)
            return decoded(runner, plan, watch)


class Watch:
    """Asked all the time whether to stop, it keeps the clock of the progress bar going."""

    def __init__(self, interrupt: StopOnInterrupt):
        self.interrupt, self.bar, self._drawn = interrupt, None, 0.0

    def __call__(self) -> bool:
        if self.bar is not None and time.monotonic() - self._drawn > REFRESH_SECONDS:
            self._drawn = time.monotonic()
            self.bar.refresh()
        return self.interrupt.asked

    def tell(self, sentence: str) -> None:
        """A sentence above the bar, if there is one."""
        if self.bar is not None:
            self.bar.clear()
        say(sentence)
        if self.bar is not None:
            self.bar.refresh()


def planned(plan: Plan) -> dict[str, Any]:
    """The plan of a dry run."""
    return {
        "plan": plan.lines(),
        "cells": [task.name for task in plan.waiting],
        "left_out": [{"cell": name, "why": why} for name, why in plan.left_out],
        "settled": len(plan.settled),
        "seconds": plan.forecast.seconds(plan.waiting, plan.places),
        "seconds_judged_by": plan.forecast.basis,
    }


def decoded(runner: Runner, plan: Plan, watch: Watch) -> dict[str, Any]:
    """Decode what is waiting, with a bar of cells on standard error; what became of it."""
    from tqdm import tqdm

    rows, left = dict(plan.settled), {task.id: task for task in plan.waiting}
    form = "{l_bar}{bar}| {n_fmt}/{total_fmt} cells [{elapsed}{postfix}]"
    with tqdm(
        total=len(plan.tasks), initial=len(rows), bar_format=form, file=sys.stderr, dynamic_ncols=True
    ) as watch.bar:
        for row in runner.run(plan, stop=watch, tell=watch.tell):
            rows[row["id"]] = row
            task = left.pop(row["id"])
            if row["status"] == "failed":
                watch.tell(f"failed: {task.name}: {row['error']}")
            seconds = plan.forecast.seconds(left.values(), plan.places)
            watch.bar.set_postfix_str(remaining(seconds), refresh=False)
            watch.bar.update()
    failed = [row["id"] for row in rows.values() if row["status"] == "failed"]
    folder = runner.store.folder
    said = f"{len(rows) - len(failed)} of {len(plan.tasks)} cells are finished in {folder}"
    said += f", {len(failed)} failed (--retry-failed decodes these again)" if failed else ""
    say(f"interrupted; {said}" if left else f"{said}; specworkbench study table {folder}")
    return {
        "out": str(folder),
        "cells": len(plan.tasks),
        "finished": len(rows) - len(failed),
        "failed": failed,
        "left_out": [{"cell": name, "why": why} for name, why in plan.left_out],
        "interrupted": bool(left),
        "rows": list(rows.values()),
    }


def remaining(seconds: float | None) -> str:
    from specworkbench.experiments.study.forecast import duration

    return f"about {duration(seconds)} left" if seconds else ""
