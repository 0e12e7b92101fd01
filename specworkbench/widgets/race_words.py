"""What the race says of an implementation, and the table of slots: words and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

import pandas as pd

COLUMNS = {
    "slot": "position",
    "guided": "guess judged there",
    "tokens": "tokens",
    "log_e": "log10 E",
    "best": "the tokens look as if drawn from",
}
"""Columns of a table of slots (see `EProcess.by_slot`), and what they are called."""

ALTERNATIVES = {
    "to q": "{share} of p moved to q",
    "from q": "{share} of q taken off p",
    "to overlap": "{share} of p moved to min(p, q)",
    "to argmax": "{share} of p moved to its most probable token",
    "to row before": "{share} of p moved to the row of the position before",
    "temperature": "p at temperature {amount}",
    "overweight": "p with another weight on what the draft overweights, q > p (bet {amount})",
}
"""What a wrong sampler may follow in place of p, by kind (see `PROCESSES` of `equivalence.statistics.e_process`)."""

MARKS = {"rejected": "✗", "kept": "✓", "running": "…", "failed": "!"}


@dataclass
class Runner:
    """One implementation in the race. history: (tokens, log E), natural logarithm; slots: which position says what.

    decided_at: after how many tokens it was rejected, or None; state: `running`, `ended`, `stopped` or `failed`.
    """

    name: str
    history: list[tuple[int, float]] = field(default_factory=list)
    slots: pd.DataFrame | None = None
    decided_at: int | None = None
    state: str = "running"
    error: str = ""

    @property
    def tokens(self) -> int:
        return self.history[-1][0] if self.history else 0

    @property
    def log_e(self) -> float:
        return self.history[-1][1] if self.history else 0.0

    @property
    def mark(self) -> str:
        """A key of `MARKS`."""
        if self.state == "failed" or self.decided_at is not None:
            return "failed" if self.state == "failed" else "rejected"
        return "running" if self.state == "running" else "kept"


def sentence_on(runner: Runner, detectable: Callable[[int], float | None]) -> str:
    """What became of it. detectable: tokens to the smallest total variation that so many could have shown."""
    if runner.state == "failed":
        return f"failed: {runner.error}"
    if runner.decided_at is not None:
        return f"rejected after {runner.decided_at:,} tokens{betrayed(runner.slots)}"
    if runner.state == "running":
        return f"{runner.tokens:,} tokens judged, log10 E = {log10(runner.log_e)}"
    smallest = detectable(runner.tokens) if runner.tokens else None
    seen = "" if smallest is None else f"; the smallest TV it could have seen is about {smallest:.2g} a token"
    stopped = "stopped, and " if runner.state == "stopped" else ""
    return f"{stopped}not rejected after {runner.tokens:,} tokens{seen}"


def betrayed(slots: pd.DataFrame | None) -> str:
    """The position with the most evidence, as the end of a sentence."""
    if slots is None or not len(slots):
        return ""
    row = slots.loc[slots["log_e"].idxmax()]
    where = "where a guess is judged" if row["guided"] else "where nothing is judged (a bonus or a plain round)"
    return f": position {int(row['slot'])}, {where}, gives it away (as if drawn from {drawn_from(row['best'])})"


def drawn_from(alternative: str) -> str:
    """An alternative in words; one that is not known as it is named.

    >>> drawn_from("to row before 0.5")
    '50 % of p moved to the row of the position before'
    """
    kind, _, amount = alternative.rpartition(" ")
    if kind not in ALTERNATIVES:
        return alternative
    return ALTERNATIVES[kind].format(share=f"{100 * float(amount):g} %", amount=amount)


def log10(log_e: float) -> str:
    """The logarithm to base 10 of an E-value given by its natural one."""
    return "infinite" if math.isinf(log_e) else f"{log_e / math.log(10):.2f}"


def verdicts_html(runners: list[Runner], detectable: Callable[[int], float | None]) -> str:
    """A line an implementation, with a glyph for its state."""
    lines = [
        f'<li><span aria-hidden="true">{MARKS[runner.mark]}</span> <strong>{escape(runner.name)}</strong>: '
        f"{escape(sentence_on(runner, detectable))}</li>"
        for runner in runners
    ]
    return f'<ul class="swb-verdicts" style="list-style: none; padding: 0; margin: 4px 0">{"".join(lines)}</ul>'


def slots_html(runner: Runner) -> str:
    """The table of slots, the one with the most evidence in bold; a sentence where there is none."""
    if runner.slots is None or not len(runner.slots):
        return f"<p><em>{escape(runner.name)} has no table of positions.</em></p>"
    most = runner.slots["log_e"].idxmax()
    look = 'style="text-align: left; padding: 1px 9px"'
    head = "".join(f'<th scope="col" {look}>{text}</th>' for text in COLUMNS.values())
    rows = []
    for index, row in runner.slots.iterrows():
        texts = [
            str(int(row["slot"])), "yes" if row["guided"] else "no", f"{int(row['tokens']):,}", log10(row["log_e"]),
            drawn_from(str(row["best"])),
        ]  # fmt: skip
        weight = "700" if index == most and row["log_e"] > 0 else "400"
        cells = "".join(f"<td {look}>{escape(text)}</td>" for text in texts)
        rows.append(f'<tr style="font-weight: {weight}">{cells}</tr>')
    name = f'aria-label="{escape(f"Evidence by position: {runner.name}")}"'
    return f'<table {name} style="font-variant-numeric: tabular-nums"><tr>{head}</tr>{"".join(rows)}</table>'
