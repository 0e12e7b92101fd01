"""The rows of a comparison as an HTML table, and its bars: what `ProposerLab` shows of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specworkbench.experiments.plan import PLAIN
from specworkbench.experiments.rows import phase_row
from specworkbench.experiments.study.figures import INTERVALS
from specworkbench.plots import phases
from specworkbench.plots.style import literal
from specworkbench.trace import Trace
from specworkbench.trace.rule import is_lossy, lossy_sentence

EMPTY = "No run yet: choose proposers and prompts, and press Run. Plain decoding is always part of it."
NOTES = (
    "E[N]: block efficiency, tokens per round. c: proposer time per guess, v: verification of all guesses, both in "
    "plain target steps. Speedup: plain time per token over this one's, prefills included, decoded in turns. Small "
    "print: 95 % intervals over prompts; one prompt has none."
)
COLUMNS = {
    "speedup_measured": ("speedup", 2),
    "block_efficiency": ("E[N]", 2),
    "alpha_counts": ("alpha counts", 2),
    "alpha_overlap": ("alpha overlap", 2),
    "c": ("c", 3),
    "verify_cost": ("v", 2),
    "ms_per_token": ("ms/ token", 2),
    "tokens": ("tokens", 0),
    "rounds": ("rounds", 0),
}
"""By figure: head and decimals."""
BEST = ("alpha_counts", "speedup_measured")
"""The largest of these stand out."""

_INK = "color: var(--jp-ui-font-color1, inherit)"
_LINE = "border-bottom: 1px solid var(--jp-border-color2, #8884)"
_CELL = "padding: 3px 4px 3px 0; vertical-align: top; line-height: 1.3"
_NUMBER = f"{_CELL}; text-align: right"
_HEAD = f"{_CELL}; text-align: right; vertical-align: bottom; max-width: 5em"
_SMALL = "font-size: 0.85em; line-height: 1.35; opacity: 0.85"
_INTERVAL = "font-size: 0.8em; opacity: 0.85"
_NAME = f"{_CELL}; text-align: left; overflow-wrap: anywhere"
_BREAK = "<wbr>"
_BAR_PIXELS, _LINE_PIXELS = 36, 16


def table_html(rows: Sequence[Mapping[str, Any]], failures: Mapping[str, str] | None = None) -> str:
    """Figures below the name of each proposer, plain decoding first as they come; then those that failed, and why.

    rows: as `experiments.comparison.comparison_rows` gives them. Without any, how to get some.
    """
    failures = failures or {}
    if not rows and not failures:
        return f'<p style="{_INK}"><em>{escape(EMPTY)}</em></p>'
    heads = "".join(f'<th scope="col" style="{_HEAD}">{escape(head)}</th>' for head, _ in COLUMNS.values())
    best = {name: max((row[name] for row in rows if _counts(row, name)), default=None) for name in BEST}
    body = "".join(_row(row, best) for row in rows) + "".join(_failed(*pair) for pair in failures.items())
    lossy = dict.fromkeys(lossy_sentence(row["rule"]) for row in rows if row["proposer"] != PLAIN)
    notes = " ".join(filter(None, [*lossy, NOTES]))
    return (
        f'<div style="overflow-x: auto; {_INK}"><table style="border-collapse: collapse"><thead>'
        f'<tr style="{_LINE}">{heads}</tr></thead>{body}</table></div>'
        f'<p style="max-width: 64em; {_INK}; {_SMALL}">{escape(notes)}</p>'
    )


def named(label: str) -> str:
    """A label in words.

    >>> named("none"), named("eagle")
    ('plain decoding', 'eagle')
    """
    return "plain decoding" if label == PLAIN else label


def lines(label: str, most: int = 26) -> list[str]:
    """A label in lines of at most so many characters, as far as it has places to break it.

    >>> lines("draft_tree:embedded/draft-m,nodes=16,width=4")
    ['draft_tree:embedded/', 'draft-m,nodes=16,width=4']
    """
    found = [""]
    for part in _parts(label):
        if found[-1] and len(found[-1]) + len(part) > most:
            found.append("")
        found[-1] += part
    return found


def time_figure(traces: Mapping[str, Trace]) -> go.Figure:
    """ms per token by phase, a bar a trace: lengths compare as speedups do. Without a trace, no bar."""
    found = [row for label, trace in traces.items() if (row := phase_row(named(label), trace))]
    columns = ["group", "ms_propose", "ms_verify", "ms_accept", "ms_rollback", "ms_other"]
    table = pd.DataFrame(found, columns=columns)
    names = [lines(group) for group in table["group"]]
    bar = max([_BAR_PIXELS, *(_LINE_PIXELS * (len(name) + 1) for name in names)])
    figure = phases(table, title="Where the time of a token goes", unit="ms per token", height=180 + bar * len(names))
    places = [literal(group) for group in table["group"]]
    shown = ["<br>".join(map(literal, name)) for name in names]
    return figure.update_yaxes(tickvals=places, ticktext=shown)


def fastest(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """The proposer of the largest speedup; where none was measured the first; None without any but plain decoding."""
    speculative = [row for row in rows if row["proposer"] != PLAIN]
    timed = [row for row in speculative if row["speedup_measured"] is not None]
    found = max(timed, key=lambda row: row["speedup_measured"], default=next(iter(speculative), None))
    return None if found is None else found["proposer"]


def _row(row: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    cells = "".join(_figure(row, name, decimals, best.get(name)) for name, (_, decimals) in COLUMNS.items())
    lossy = " (lossy)" if row["proposer"] != PLAIN and is_lossy(row["rule"]) else ""
    return _group(named(row["proposer"]) + lossy, cells)


def _figure(row: Mapping[str, Any], name: str, decimals: int, best: float | None) -> str:
    value = row[name]
    if value is None:
        return f'<td style="{_NUMBER}">–</td>'
    shown = f"{value:.{decimals}f}"
    if best is not None and value == best and row["proposer"] != PLAIN:
        shown = f"<b>▲ {shown}</b>"
    low, high = (row.get(end) for end in INTERVALS.get(name, (None, None)))
    if low is not None:
        shown += f'<br><span style="{_INTERVAL}">{low:.{decimals}f}–{_BREAK}{high:.{decimals}f}</span>'
    return f'<td style="{_NUMBER}">{shown}</td>'


def _failed(label: str, why: str) -> str:
    told = f'<td colspan="{len(COLUMNS)}" role="alert" style="{_CELL}">{escape(why)}</td>'
    return _group(label, told)


def _group(label: str, cells: str) -> str:
    """The cells below their label, which has a line of its own: it may be long, and pages narrow."""
    name = _BREAK.join(map(escape, _parts(label)))
    head = f'<tr><th scope="rowgroup" colspan="{len(COLUMNS)}" style="{_NAME}">{name}</th></tr>'
    return f'<tbody>{head}<tr style="{_LINE}">{cells}</tr></tbody>'


def _parts(label: str) -> list[str]:
    return re.split(r"(?<=[:/,])", label)


def _counts(row: Mapping[str, Any], name: str) -> bool:
    return row["proposer"] != PLAIN and row[name] is not None
