"""`specworkbench proposers`: whoever can guess, what each needs and what can be set."""

from __future__ import annotations

from typing import Any

from specworkbench.cli.listing import lines, show_listed
from specworkbench.cli.options import Json
from specworkbench.cli.screen import only_json

NOTE = """decode --proposer NAME [--draft WEIGHTS] [--set NAME=VALUE ...]
report --proposer NAME[:WEIGHTS][,NAME=VALUE...], and again for each further one
guesses: drawn from rows q of its own, or certain (q is one-hot)
default: the weights used with the embedded target when none are named
instrument: for checking formulas, not for speed; a report leaves it out unless it is named"""


def proposers(as_json: Json = False) -> None:
    """List the proposers: what each does, which weights it needs, how it guesses, its settings with their defaults."""
    with only_json(as_json):
        from specworkbench.engine import PROPOSERS

        listed = [described(kind) for kind in PROPOSERS.values()]
    columns = {
        "proposer": lambda entry: entry["name"],
        "what it does": lambda entry: entry["summary"],
        "weights": _weights,
        "guesses": _guesses,
    }
    show_listed("proposers", listed, columns, NOTE, ("proposer", "guesses"), as_json)


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


def _weights(entry: dict[str, Any]) -> str:
    needed = lines(entry["weights"], "works on the target itself" if entry["needs_target"] else None)
    default = f"default: {entry['default_weights']}" if entry["default_weights"] else None
    return lines(needed, default) or "none"


def _guesses(entry: dict[str, Any]) -> str:
    trees, instrument = ("trees" if entry["drafts_trees"] else None), ("instrument" if entry["instrument"] else None)
    return lines("certain" if entry["deterministic"] else "drawn", trees, instrument)
