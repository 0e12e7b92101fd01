"""`ClaimsBoard`: all claims with their verdicts, and one of them with its figure. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from specworkbench.experiments.claims import CLAIMS, Claim, Finding, evidence_in, judge
from specworkbench.experiments.claims.claim import Part
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.findings import parts_table
from specworkbench.plots import claim_parts, palette
from specworkbench.widgets.page_repairs import PageRepairs, live_figure, live_text, redraw

_PLACE = "vertical-align: top; padding: 0.25em 0.6em 0.25em 0; line-height: 1.35"
_CELL = f"text-align: left; {_PLACE}"
_NUMBER = f"text-align: right; white-space: nowrap; {_PLACE}"
_TABLE = "border-collapse: collapse; color: var(--jp-ui-font-color1, inherit)"
HEADS = ("verdict", "claim", "effect", "interval", "prompts")
PART_HEADS = ("verdict", "part", *HEADS[2:])


class ClaimsBoard(widgets.VBox):
    """The table of claims, a chooser, and of the chosen claim the figure and the sentences.

    folder: of the claims' studies, as `specworkbench claims --out` makes it; claims: those that are shown. `findings`
    are the findings by the claims' names, `evidence` the studies' evidence by theirs. `board.show(name)` chooses.

    >>> from specworkbench.paths import claims_dir
    >>> board = ClaimsBoard(claims_dir() / "embedded")
    >>> board.findings["stronger-slower"].verdict
    'holds here'
    """

    def __init__(self, folder: Path, claims: Sequence[Claim] = CLAIMS, **options: Any):
        self.claims = {claim.name: claim for claim in claims}
        self.evidence: Mapping[str, Evidence | None] = evidence_in(folder, claims)
        self.findings = {finding.claim: finding for finding in judge(self.evidence, claims)}
        self.table = widgets.HTML(table_html(claims, self.findings))
        names = [(claim.statement, claim.name) for claim in claims]
        self.chooser = widgets.Dropdown(options=names, description="claim", layout={"width": "min(60em, 98%)"})
        self.words = live_text()
        self.figure = live_figure()
        super().__init__([self.table, self.chooser, self.words, self.figure, PageRepairs("Claims")], **options)
        self.chooser.observe(lambda change: self._draw(change["new"]), "value")
        self._draw(self.chooser.value)

    def show(self, name: str) -> None:
        """Choose a claim by its name."""
        self.chooser.value = name

    def figure_of(self, name: str) -> go.Figure:
        """The figure of a claim: its parts beside the region in which it is right."""
        claim, finding = self.claims[name], self.findings[name]
        return claim_parts(
            parts_table(finding), claim.region.low, claim.region.high, effect=claim.effect, title=claim.statement
        )

    def to_html(self) -> str:
        """All verdicts, and the chosen claim with the numbers of its figure, as HTML without scripts, for exports."""
        name = self.chooser.value
        statement = f"<p><strong>{escape(self.claims[name].statement)}</strong></p>"
        return self.table.value + statement + self.words.value + parts_html(self.claims[name], self.findings[name])

    def _repr_html_(self) -> str:
        return self.to_html()

    def _draw(self, name: str) -> None:
        claim, finding = self.claims[name], self.findings[name]
        self.words.value = finding_html(claim, finding)
        redraw(self.figure, self.figure_of(name))


def table_html(claims: Sequence[Claim], findings: Mapping[str, Finding]) -> str:
    """A row a claim: verdict with its glyph, statement, effect with interval."""
    return _table("Claims and their verdicts", HEADS, (_row(claim, findings[claim.name]) for claim in claims))


def finding_html(claim: Claim, finding: Finding) -> str:
    """The verdict on one claim in sentences: how it was tested, what came out, what would change it."""
    level = "" if finding.level is None else f" Intervals of level {finding.level:.4g}."
    parts = (
        f"<b>{_verdict(finding.verdict)}</b> {escape(finding.sentence)}",
        f"<b>Said:</b> {escape(claim.said)}. <b>Experiment:</b> {escape(claim.experiment)}{level}",
        f"<b>What would change it:</b> {escape(claim.change)}",
    )
    return '<div style="max-width: 60em; line-height: 1.45">' + "<br>".join(parts) + "</div>"


def parts_html(claim: Claim, finding: Finding) -> str:
    """A row a part of the finding; nothing for a claim that was not measured."""
    if not finding.parts:
        return ""
    rows = (
        f'<tr><td style="{_CELL}">{_verdict(part.verdict)}</td><td style="{_CELL}">{escape(part.name)}</td>'
        f"{_numbers(part, claim.digits)}</tr>"
        for part in finding.parts
    )
    return _table("Settings of the claim", PART_HEADS, rows)


def _table(label: str, names: Sequence[str], rows: Iterable[str]) -> str:
    heads = "".join(f'<th scope="col" style="{_NUMBER if name in HEADS[2:] else _CELL}">{name}</th>' for name in names)
    body = "".join(rows)
    return f'<table aria-label="{label}" style="{_TABLE}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _row(claim: Claim, finding: Finding) -> str:
    words = f'<td style="{_CELL}; white-space: nowrap">{_verdict(finding.verdict)}</td>'
    name = f'<th scope="row" style="{_CELL}; font-weight: inherit">{escape(claim.statement)}</th>'
    return f"<tr>{words}{name}{_numbers(finding, claim.digits)}</tr>"


def _numbers(measured: Finding | Part, digits: int) -> str:
    """Cells of the effect, its interval and how many prompts it rests on; dashes where there is none."""
    numbers = ("–",) * 3
    if measured.effect is not None:
        interval = f"{measured.low:.{digits}f} to {measured.high:.{digits}f}"
        numbers = (f"{measured.effect:.{digits}f}", interval, str(measured.n))
    return "".join(f'<td align="right" style="{_NUMBER}">{number}</td>' for number in numbers)


def _verdict(verdict: str) -> str:
    mark = palette.VERDICTS[verdict]
    return f'<span style="color: {mark.color}" aria-hidden="true">{mark.glyph}</span> {escape(verdict)}'
