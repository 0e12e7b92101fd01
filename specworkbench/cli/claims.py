"""`specworkbench claims`: what people say of speculative decoding, measured here and judged."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import INTERRUPTED, StopOnInterrupt, figure, only_json, printable, say, screen
from specworkbench.cli.study import CELLS_FAILED, Watch, decoded
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specworkbench.experiments.claims import Claim, Finding
    from specworkbench.experiments.study.grid import Study

Only = Annotated[str | None, opt.option("--only", metavar="NAME,...", help="Only these claims; --list names them.")]
Out = Annotated[str, opt.option("--out", metavar="DIR", help="Folder of the studies; what is finished there stays.")]
From = Annotated[str | None, opt.option("--from", metavar="DIR", help="Judge what is in this folder, decode nothing.")]
Drafts = Annotated[
    list[str] | None, opt.option("--draft", help="A draft model of a target of your own; may be given again.")
]
Quick = Annotated[bool, opt.option("--quick", help="Few prompts, short outputs: to see how it works, not to decide.")]
Traces = Annotated[bool, opt.option("--traces", help="Keep the traces of all cells, which judging does not need.")]
Listed = Annotated[bool, opt.option("--list", help="List the claims, where they are said, and how they are tested.")]


def claims(
    only: Only = None,
    out: Out = "claims",
    from_: From = None,
    target: opt.Target = "embedded",
    draft: Drafts = None,
    quick: Quick = False,
    traces: Traces = False,
    listed: Listed = False,
    as_json: opt.Json = False,
) -> None:
    """Test what people say of speculative decoding: an experiment, an effect with its interval, and a verdict each.

    All claims together take about half an hour on two cores. Every finished cell is on disk at once: after Ctrl-C what
    can be judged is judged, and the same command goes on. Exit code 1: a cell failed.
    """
    from specworkbench.experiments.claims import claims_named, judge_folder, studies_for
    from specworkbench.experiments.claims.findings import save
    from specworkbench.experiments.claims.studies import needed

    chosen, outcome = claims_named(only), Outcome()
    if listed:
        return show_claims(chosen, as_json)
    if from_ is None:
        with only_json(as_json):
            studies = needed(chosen, studies_for(target, draft or (), quick))
            outcome = run_studies(studies, Path(out), traces)
    folder = Path(from_ or out)
    findings = {finding.claim: finding for finding in judge_folder(folder)}
    if from_ is None:
        say(f"all findings in this folder are in {save(findings.values(), folder)}")
    show_findings(chosen, [findings[claim.name] for claim in chosen], as_json)
    if outcome.interrupted:
        say("interrupted; the same command goes on where it was")
        raise typer.Exit(INTERRUPTED)
    if outcome.failed:
        raise typer.Exit(CELLS_FAILED)


class Outcome:
    """How the studies ended."""

    interrupted = False
    failed = False


def run_studies(studies: Mapping[str, Study], folder: Path, traces: bool) -> Outcome:
    """Decode what is not yet finished of these studies, one after the other, in this process.

    A study of which no cell can be decoded is told and left out.
    """
    from specworkbench.experiments.claims.runner import ClaimsRunner
    from specworkbench.experiments.study.executors import Serial
    from specworkbench.experiments.study.forecast import duration
    from specworkbench.experiments.study.reading import checked

    outcome, interrupt = Outcome(), StopOnInterrupt((signal.SIGINT, signal.SIGTERM))
    watch = Watch(interrupt)
    with Serial(watch) as executor, interrupt:
        for number, (name, study) in enumerate(studies.items(), start=1):
            if interrupt.asked:
                break
            runner = ClaimsRunner(checked(study), folder / name, executor, traces)
            with runner.store.alone():
                try:
                    plan = runner.plan()
                except InputError as error:
                    say(f"study {number} of {len(studies)}, {name}, is left out: {error}")
                    continue
                runner.distil(*plan.settled.values())
                seconds = plan.forecast.seconds(plan.waiting)
                time = f", about {duration(seconds)}" if plan.waiting and seconds else ""
                say(f"study {number} of {len(studies)}, {name}: {len(plan.waiting)} of {len(plan.tasks)} cells{time}")
                if plan.waiting:
                    outcome.failed |= bool(decoded(runner, plan, watch)["failed"])
    outcome.interrupted = interrupt.asked
    return outcome


def show_claims(claims: Sequence[Claim], as_json: bool) -> None:
    """The claims with their experiments, as a table or one JSON object."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.files import to_json

    names = ("name", "statement", "said", "experiment", "effect", "quantifier")
    rows: list[dict[str, Any]] = [
        {name: getattr(claim, name) for name in names} | {"studies": list(claim.studies)} for claim in claims
    ]
    if as_json:
        print(to_json({"claims": rows}))
        return
    table = Table("name", "claim", "said", "experiment", "effect", "studies", box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(
            row["name"], row["statement"], row["said"], row["experiment"], row["effect"], ", ".join(row["studies"])
        )
    screen().print(table)


def show_findings(claims: Sequence[Claim], findings: Sequence[Finding], as_json: bool) -> None:
    """The verdicts, as a table or one JSON object with all parts."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.files import to_json

    if as_json:
        print(to_json({"findings": [finding.as_dict() for finding in findings]}))
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 1, 0))
    table.add_column("claim", ratio=3)
    table.add_column("verdict", no_wrap=True)
    for heading in ("effect", "interval", "prompts"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what was found", ratio=5)
    for claim, found in zip(claims, findings, strict=True):
        ends = (found.low, found.high)
        interval = "–" if None in ends else " to ".join(figure(end, claim.digits) for end in ends)
        effect = f"{claim.effect[0].upper()}{claim.effect[1:]}. " if found.parts else ""
        table.add_row(
            claim.statement, found.verdict, figure(found.effect, claim.digits), interval, str(found.n or "–"),
            printable(effect + found.sentence),
        )  # fmt: skip
    screen().print(table)
