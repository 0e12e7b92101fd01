"""`specworkbench proposers`: whoever can guess, what each needs and what can be set."""

from __future__ import annotations

from typing import Any

from specworkbench.cli.options import Json
from specworkbench.cli.screen import only_json, screen

NOTE = """decode --proposer NAME [--draft WEIGHTS] [--set NAME=VALUE ...]
report --proposer NAME[:WEIGHTS][,NAME=VALUE...], and again for each further one
guesses: drawn from rows q of its own, or certain (q is one-hot)
default: the weights used with the embedded target when none are named
instrument: for checking formulas, not for speed; a report leaves it out unless it is named"""


def proposers(as_json: Json = False) -> None:
    """List the proposers: what each does, which weights it needs, how it guesses, its settings with their defaults."""
    from specworkbench.engine import PROPOSERS
    from specworkbench.experiments.files import to_json

    with only_json(as_json):
        listed = [described(kind) for kind in PROPOSERS.values()]
    if as_json:
        print(to_json({"proposers": listed}))
    else:
        _show(listed)


def described(kind: Any) -> dict[str, Any]:
    """What a class of proposers says of itself. weights: in words, null where it takes none."""
    return {
        "name": kind.name,
        "summary": kind.summary,
        "weights": kind.weights or None,
        "default_weights": kind.default_weights,
        "needs_target": kind.needs_target,
        "deterministic": kind.deterministic,
        "drafts_trees": kind.drafts_trees,
        "instrument": kind.instrument,
        "settings": kind.settings(),
        "paper": kind.paper,
    }


def _show(listed: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.plan import written

    table = Table("proposer", "what it does", "weights", "guesses", "settings", "paper", box=SIMPLE_HEAD)
    table.columns[0].no_wrap = table.columns[3].no_wrap = True
    for entry in listed:
        needed = [entry["weights"], "works on the target itself" if entry["needs_target"] else None]
        default = f"default: {entry['default_weights']}" if entry["default_weights"] else None
        kinds = ["certain" if entry["deterministic"] else "drawn", "trees" if entry["drafts_trees"] else None]
        table.add_row(
            entry["name"],
            entry["summary"],
            "\n".join(filter(None, [*needed, default])) or "none",
            "\n".join(filter(None, [*kinds, "instrument" if entry["instrument"] else None])),
            "\n".join(f"{name}={written(value)}" for name, value in entry["settings"].items()),
            entry["paper"],
        )
    screen().print(table)
    screen().print(NOTE)
