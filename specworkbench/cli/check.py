"""`specworkbench check`: hold a trace to every contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from specworkbench.cli.options import Json
from specworkbench.cli.screen import printable, screen

if TYPE_CHECKING:
    from specworkbench.trace.contracts import Contract, Finding

BROKEN = 1
STYLES = {"pass": "green", "fail": "bold red", "not recorded": "dim"}


def check(
    trace: Annotated[str, typer.Argument(help="A trace file, as decode --trace and report write it.")],
    as_json: Json = False,
) -> None:
    """Check a trace against every contract: pass, fail (with the first offending round) or not recorded.

    Exit code 0 if no contract is broken, 1 if one is, 2 for a file that cannot be read.
    """
    from specworkbench.experiments.files import to_json
    from specworkbench.trace import contracts, load_trace

    results = contracts.run(load_trace(trace, check=False))
    broken = [contract for contract, finding in results if finding.status == "fail"]
    if as_json:
        listed = [{"name": contract.name, "meaning": contract.meaning, **vars(found)} for contract, found in results]
        print(to_json({"trace": trace, "passed": not broken, "contracts": listed}))
    else:
        _show(results, len(broken))
    if broken:
        raise typer.Exit(BROKEN)


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
