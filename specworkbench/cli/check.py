"""`specworkbench check`: hold a trace to every contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import only_json, printable, quiet_transformers, screen
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.trace import Trace
    from specworkbench.trace.contracts import Contract, Finding

BROKEN = 1
STYLES = {"pass": "green", "fail": "bold red", "not recorded": "dim"}


def check(
    trace: Annotated[str, typer.Argument(help="A trace file, as decode --trace and report write it.")],
    fresh: Annotated[
        bool, opt.option("--fresh", help="Also load the target and compare every p with that of a fresh forward.")
    ] = False,
    target: Annotated[
        str | None, opt.option("--target", help="The target for --fresh. [default: the one that the trace names]")
    ] = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    rounds: Annotated[int, opt.option("--rounds", help="Rounds to replay for --fresh, evenly spread; 0: all.")] = 64,
    as_json: opt.Json = False,
) -> None:
    """Check a trace against every contract: pass, fail (with the first offending round) or not recorded.

    Exit code 0 if no contract is broken, 1 if one is, 2 for a file that cannot be read.
    """
    from specworkbench.experiments.files import to_json
    from specworkbench.trace import contracts, load_trace

    loaded = load_trace(trace, check=False)
    results = contracts.run(loaded)
    if fresh:
        with only_json(as_json):
            results.append(_fresh(loaded, target, rounds, fused=fused, products=products))
    elif target is not None:
        raise InputError(f"the target {target!r} is needed for --fresh only; give --fresh as well")
    broken = [contract for contract, finding in results if finding.status == "fail"]
    if as_json:
        listed = [{"name": contract.name, "meaning": contract.meaning, **vars(found)} for contract, found in results]
        print(to_json({"trace": trace, "passed": not broken, "contracts": listed}))
    else:
        _show(results, len(broken))
    if broken:
        raise typer.Exit(BROKEN)


def _fresh(trace: Trace, name: str | None, rounds: int, **options: bool) -> tuple[Contract, Finding]:
    """The contract that needs the target, and what it found; options: of `load_model`.

    Raises `InputError` where there is no such target.
    """
    from specworkbench.engine import load_model
    from specworkbench.equivalence.numerics.recheck import run

    own = trace.manifest.get("target")
    own = own if isinstance(own, dict) else {}
    chosen = name or own.get("name")
    if not isinstance(chosen, str):
        raise InputError("the trace names no target; name it with --target")
    quiet_transformers()
    revision = own.get("revision") if chosen == own.get("name") else None
    weights = {"dtype": own.get("dtype"), "quantisation": own.get("quantisation", "none")}
    return run(trace, load_model(chosen, revision=revision, **weights, **options), rounds or None)


def _show(results: list[tuple[Contract, Finding]], broken: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("contract", "result", "sequence", "round", "what was found")
    for contract, finding in results:
        places = ["" if place is None else str(place) for place in (finding.sequence, finding.round)]
        detail = finding.detail if finding.status == "fail" else f"{contract.meaning}: {finding.detail}"
        table.add_row(
            contract.name, Text(finding.status, STYLES[finding.status]), *places, Text(printable(detail))
        )  # fmt: skip
    console = screen()
    console.print(table)
    console.print(f"{len(results)} contracts, {broken} broken")
