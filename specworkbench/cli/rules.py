"""`specworkbench rules`: what can decide on guesses, and whether it keeps the target's distribution."""

from __future__ import annotations

from typing import Any

from specworkbench.cli.listing import show_listed
from specworkbench.cli.options import Json
from specworkbench.cli.screen import only_json

NOTE = """decode --rule NAME[,SETTING=VALUE...]
lossless: the output has exactly the target's distribution, whoever guesses"""


def rules(as_json: Json = False) -> None:
    """List the rules of verification: what each does, whether it is lossless, what it judges, its settings."""
    with only_json(as_json):
        from specworkbench.engine.verifiers import VERIFIERS
        from specworkbench.trace.rule import LOSSY

        listed = [described(kind) for kind in VERIFIERS.values()]
    columns = {
        "rule": lambda entry: entry["name"],
        "lossless": _lossless,
        "what it does": lambda entry: entry["summary"],
        "judges": lambda entry: "chains, trees" if entry["judges_trees"] else "chains",
    }
    show_listed("rules", listed, columns, f"{NOTE}\n{LOSSY}", ("rule", "lossless", "judges"), as_json)


def described(kind: Any) -> dict[str, Any]:
    """What a class of rules says of itself."""
    return {
        "name": kind.name,
        "summary": kind.summary,
        "lossless": kind.lossless,
        "greedy_only": kind.greedy_only,
        "judges_trees": kind.judges_trees,
        "settings": kind.settings(),
        "paper": kind.paper,
    }


def _lossless(entry: dict[str, Any]) -> str:
    if not entry["lossless"]:
        return "no: lossy"
    return "at temperature 0" if entry["greedy_only"] else "yes"
