"""`specworkbench costs`: what steps, verifications, proposers and the loop cost here; saved, and shown again."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.report import numbers
from specworkbench.cli.screen import (
    INTERRUPTED,
    StopOnInterrupt,
    check_writable,
    only_json,
    quiet_transformers,
    say,
)
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.engine import LanguageModel, Proposer
    from specworkbench.experiments.costs.measure import Costs
    from specworkbench.experiments.costs.table import CostTable

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
Proposers = Annotated[
    list[str] | None,
    opt.option(
        "--proposer",
        metavar="SPEC",
        help="NAME[:WEIGHTS][,SETTING=VALUE...]: also time real rounds, plain ones and this proposer's: its cost, "
        "prefills, rollback, the loop; may be given again. none: plain rounds alone.",
    ),
]
Gamma = Annotated[int, opt.option("--gamma", help="Tokens that a proposer is asked for.")]
Out = Annotated[str | None, opt.option("--out", help="Also save what was measured to this file, as JSON.")]
Saved = Annotated[str | None, opt.option("--from", help="Show a file that --out wrote; nothing is measured.")]
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
    proposer: Proposers = None,
    gamma: Gamma = 4,
    out: Out = None,
    saved: Saved = None,
    calibrate: Calibrate = False,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    engine: opt.Engine = "eager",
    as_json: opt.Json = False,
) -> None:
    """Time forwards of the target: T(n) over n rows, v(n) = T(n) / T(1); medians of interleaved runs.

    With --proposer also real rounds, in the same turns: the target's step with its rows and rule, c of each proposer,
    rollback, the loop's own time, both prefills; all at batch size 1, which is how this engine decodes. With --limit
    also the bytes a forward reads, the machine's measured read bandwidth, the time that gives, and the share of it that
    a step and a verification reach. Ctrl-C shows (and saves) what was measured so far.
    """
    if saved is not None:
        from specworkbench.experiments.costs.table import read_costs

        if out is not None or proposer:
            raise InputError("--from shows what was measured before; leave --out and --proposer out, or --from")
        tell(read_costs(saved), as_json)
        return
    contexts, sizes = numbers(context, int, "context", "whole numbers"), numbers(rows, int, "rows", "whole numbers")
    if out is not None:
        check_writable(Path(out), "the costs")
    with only_json(as_json):
        from specworkbench.engine import load_model
        from specworkbench.engine.calibration import forget_times
        from specworkbench.experiments.costs.measure import Costs
        from specworkbench.experiments.costs.settings import CostSettings

        settings = CostSettings(contexts, sizes, runs, limit, gamma)
        specs = parsed(proposer or [], target)
        quiet_transformers()
        if calibrate:
            forget_times()
        model = load_model(
            target, revision=revision, dtype=dtype, device=device, fused=fused, products=products, engine=engine
        )
        costs_of = Costs(model, settings, made(specs, model) if proposer else None)
        interrupted = measure(costs_of)
        found = costs_of.table(interrupted)
    if as_json or found.forwards:
        tell(found, as_json)
    if out is not None and found.forwards:
        say(f"costs written to {found.save(out)}")
    if interrupted:
        measured = "what was measured is shown" if found.forwards else "nothing was measured"
        say(f"interrupted; {measured}")
        raise typer.Exit(INTERRUPTED)


def parsed(texts: list[str], target: str) -> list[Any]:
    """The proposers asked for, each once, with the weights they use for this target. Judged before a model is loaded.

    Raises `InputError` as `ProposerSpec.parse` and `fitted` do.
    """
    from specworkbench.experiments.plan import PLAIN, ProposerSpec

    specs = dict.fromkeys(ProposerSpec.parse(text).fitted(target) for text in texts)
    return [spec for spec in specs if spec.name != PLAIN]


def made(specs: list[Any], target: LanguageModel) -> dict[str, Proposer]:
    """The proposers by label, their weights loaded."""
    from specworkbench.engine import make_proposer

    return {
        spec.label: make_proposer(spec.name, target=target, draft=spec.weights, **dict(spec.settings)) for spec in specs
    }


def tell(found: CostTable, as_json: bool) -> None:
    """On standard output: as JSON, or as tables and sentences."""
    if as_json:
        print(found.as_json())
        return
    from specworkbench.cli.costs_words import show

    show(found)


def measure(found: Costs) -> bool:
    """Run the timings with a bar on standard error; whether Ctrl-C ended them early."""
    from tqdm import tqdm

    with (
        StopOnInterrupt() as interrupt,
        closing(found.run()) as timings,
        tqdm(total=found.planned, unit="timing", file=sys.stderr, dynamic_ncols=True, leave=False) as bar,
    ):
        for _ in timings:
            bar.update()
            if interrupt.asked:
                break
    return interrupt.asked
