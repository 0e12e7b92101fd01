"""What the commands that list a registry share: `proposers`, `rules` and `controllers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specworkbench.cli.screen import screen

Entry = Mapping[str, Any]


def show_listed(
    what: str,
    listed: Sequence[Entry],
    columns: Mapping[str, Callable[[Entry], str]],
    note: str,
    unbroken: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Print what is registered: as one JSON object {what: [...]}, or as a table and a note on how to use it.

    columns: a heading to the text of an entry in it; settings and paper follow by themselves. unbroken: headings of
    columns whose text is not wrapped.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from specworkbench.experiments.files import to_json

    if as_json:
        print(to_json({what: listed}))
        return
    columns = {**columns, "settings": _settings, "paper": lambda entry: entry["paper"]}
    table = Table(box=SIMPLE_HEAD)
    for heading in columns:
        table.add_column(heading, no_wrap=heading in unbroken)
    for entry in listed:
        table.add_row(*(text(entry) for text in columns.values()))
    screen().print(table)
    screen().print(note)


def lines(*texts: str | None) -> str:
    """The texts that there are, one below the other."""
    return "\n".join(filter(None, texts))


def _settings(entry: Entry) -> str:
    from specworkbench.experiments.plan import written

    return "\n".join(f"{name}={written(value)}" for name, value in entry["settings"].items())
