"""`specworkbench controllers`: who can choose gamma round by round."""

from __future__ import annotations

from typing import Any

from specworkbench.cli.listing import show_listed
from specworkbench.cli.options import Json
from specworkbench.cli.screen import only_json

NOTE = """decode --controller NAME[,SETTING=VALUE...]; --gamma is the most that it may choose
Whichever chooses, a lossless rule stays lossless: the choice rests on the past alone. One that rests on measured times
need not choose the same again for the same seed."""


def controllers(as_json: Json = False) -> None:
    """List the controllers, which choose the number of guesses round by round: what each does, and its settings."""
    with only_json(as_json):
        from specworkbench.engine.controllers import CONTROLLERS

        listed = [described(kind) for kind in CONTROLLERS.values()]
    columns = {
        "controller": lambda entry: entry["name"],
        "how it chooses gamma": lambda entry: entry["summary"],
        "by": lambda entry: "measured times" if entry["uses_times"] else "tokens",
    }
    show_listed("controllers", listed, columns, NOTE, ("controller", "by"), as_json)


def described(kind: Any) -> dict[str, Any]:
    """What a class of controllers says of itself."""
    return {
        "name": kind.name,
        "summary": kind.summary,
        "uses_times": kind.uses_times,
        "settings": kind.settings(),
        "paper": kind.paper,
    }
