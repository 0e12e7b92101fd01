"""`Inspector`: one token of a trace: its fate in a sentence, the decision as a bar, p against q and the residual."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets
import pandas as pd
import traitlets

from specworkbench.plots import palette
from specworkbench.trace import Trace
from specworkbench.widgets.chart import distribution_svg, numbers_html
from specworkbench.widgets.decision import decision_svg, no_decision
from specworkbench.widgets.page_repairs import PageRepairs, live_text
from specworkbench.widgets.page_style import STYLE, unstyled
from specworkbench.widgets.picture import pictures
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.sentences import decision_of, scalars, sentence
from specworkbench.widgets.tables import distribution_table

EMPTY = "Pick a token in the strip to see how it was decided."
NO_DISTRIBUTIONS = "This trace holds no distributions: record with capture='top-k' to see p and q here."
KEPT_BY_A_LATER = "Its own uniform fell short; a later position passed, and the block rule keeps all before that one."
_STYLE = f"<style>{STYLE}" + """
.swb-card {font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px);
  line-height: 1.5; color: var(--jp-ui-font-color1, inherit); max-width: 62em;}
.swb-card p {margin: 4px 0;}
.swb-card .swb-sentence {font-size: 1.08em;}
.swb-card .swb-scalars, .swb-card .swb-note {color: var(--jp-ui-font-color2, inherit);}
.swb-card .swb-scalars span {margin-right: 1.2em; white-space: nowrap; display: inline-block;}
.swb-card .swb-table table {border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums;
  color: inherit; font-size: inherit;}
.swb-card .swb-table tr:nth-child(n) {background: none;}
.swb-card .swb-table :is(th, td) {padding: 0 0 0 1.6em; border: 0; font-weight: 400;}
.swb-card .swb-table th[scope=row] {padding: 0; text-align: left;}
.swb-card .swb-table tbody tr {border-top: 1px solid #8c8c8c4d;}
.swb-card.swb-card .swb-table code {padding: 0; background: none; color: inherit;}
.swb-card .swb-code {font-family: var(--jp-code-font-family, ui-monospace, monospace);}
.swb-decision, .swb-chart {display: block; width: 100%; height: auto;}
.swb-card .swb-decision {min-width: 360px; max-width: 600px;}
.swb-card .swb-chart {min-width: 520px; max-width: 760px; margin-top: 8px;}
.swb-scroll {overflow: auto hidden;}
</style>"""


class Inspector(widgets.VBox):
    """Shows the token `selected` (an index in the order of the strip, -1 for none) of one sequence of a trace.

    `show(trace, sequence)` changes what is inspected; with a `selection`, which may be shared with other panels, what
    is selected there is. The buttons lead to the token before and after, and tell its fate to those who hear the page;
    what another panel selects is for that one to tell. `top`: tokens with a bar of their own, all others share one.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> inspector = Inspector(load_trace(traces_dir() / "quickstart.trace"))
    >>> inspector.selected = 0
    >>> inspector.place
    'position 1 of 4 in round 0, token 1 of 166'
    """

    selected = traitlets.Int(-1)

    def __init__(
        self,
        trace: Trace | None = None,
        sequence: int = 0,
        *,
        selection: Selection | None = None,
        selected: int = -1,
        top: int = 12,
        **options: Any,
    ):
        self.top = top
        self.selection = Selection() if selection is None else selection
        self.card, self.place_line, self.voice = widgets.HTML(), widgets.HTML(), live_text(hidden=True)
        self.previous_button = _button("previous", "chevron-left", "the token before, in the order of the strip")
        self.next_button = _button("next", "chevron-right", "the token after, in the order of the strip")
        self.steps = widgets.Box(
            [self.previous_button, self.next_button, self.place_line], layout={"flex_flow": "row wrap"}
        )
        super().__init__([self.steps, self.card, self.voice, PageRepairs("Inspector")], **options)
        if selection is None or trace is not None:
            self.show(trace, sequence, selected)
        traitlets.link((self.selection, "selected"), (self, "selected"))
        self.selection.observe(self._follow, ["trace", "sequence", "selected"])
        self.previous_button.on_click(lambda _button: self.step(-1))
        self.next_button.on_click(lambda _button: self.step(1))
        self.update()

    @property
    def trace(self) -> Trace | None:
        return self.selection.trace

    @property
    def sequence(self) -> int:
        return self.selection.sequence

    @property
    def row(self) -> pd.Series | None:
        """The selected token as a row of `trace.positions`; None where none is selected."""
        return self.selection.row

    @property
    def place(self) -> str:
        """Where the selected token stands, in words; empty where none is selected."""
        if self.row is None:
            return ""
        positions = self.trace.round_positions(self.sequence, self.selection.round)["position"]
        at = f"position {self.selection.position} of {positions.max()} in round {self.selection.round}"
        return f"{at}, token {self.selection.selected + 1} of {len(self.selection.rows)}"

    def show(self, trace: Trace | None, sequence: int = 0, selected: int = -1) -> None:
        """Inspect another sequence, by default none of its tokens yet. Raises `InputError` for one not there."""
        self.selection.show(trace, sequence, selected)

    def step(self, by: int) -> None:
        """Select the token so many further on, as far as there are any, and tell its fate."""
        self.selection.selected = max(0, self.selection.selected + by)
        self.voice.value = "" if self.row is None else escape(sentence(self.trace, self.row))

    def focus(self) -> None:
        """Have the keyboard at the button to the next token (at the last one, to the one before)."""
        (self.previous_button if self.next_button.disabled else self.next_button).focus()

    @traitlets.validate("selected")
    def _within(self, proposal: Any) -> int:
        return self.selection.within(proposal["value"])

    def _follow(self, _change: Any) -> None:
        """Draw what is selected, once where several things of it changed."""
        trace, *where = self._shown
        if trace is not self.trace or where != [self.sequence, self.selection.selected]:
            self.update()

    def update(self) -> None:
        """Draw the selected token anew."""
        self._shown = self.trace, self.sequence, self.selection.selected
        self.voice.value = ""
        self.card.value = card_html(self.trace, self.row, self.top)
        last = len(self.selection.rows) - 1
        self.place_line.value = f'<span class="swb-card">{escape(self.place)}</span>'
        at = self.selection.selected
        self.previous_button.disabled, self.next_button.disabled = at <= 0, at >= last
        self.steps.layout.display = "none" if last < 0 else None

    def to_html(self) -> str:
        """What is shown, as HTML that needs neither scripts nor a kernel, and the chart's numbers beside it."""
        return pictures(card_html(self.trace, self.row, self.top, numbers=True))

    def _repr_html_(self) -> str:
        return self.to_html()


def _button(description: str, icon: str, tooltip: str) -> widgets.Button:
    layout = {"flex": "0 0 auto", "width": "auto"}
    return widgets.Button(description=description, icon=icon, tooltip=tooltip, layout=layout)


def card_html(trace: Trace | None, row: pd.Series | None, top: int = 12, numbers: bool = False) -> str:
    """Sentence, decision, scalars and chart of one token; all text of the trace is escaped.

    numbers: the chart as a table as well.
    """
    if trace is None or row is None:
        return f'{_STYLE}<div class="swb-card"><p class="swb-note">{EMPTY}</p></div>'
    figures = unstyled(" · ").join(f"<span>{escape(name)} {escape(value)}</span>" for name, value in scalars(row))
    table = distribution_table(trace, row, top)
    chart, below = f'<p class="swb-note">{escape(NO_DISTRIBUTIONS)}</p>', ""
    if table is not None:
        chart, below = distribution_svg(table), numbers_html(table) if numbers else ""
    return (
        f'{_STYLE}<div class="swb-card"><p class="swb-sentence">'
        f"{palette.OUTCOMES[row['outcome']].glyph} {_unbroken(escape(sentence(trace, row)))}</p>"
        f'<div class="swb-scroll">{_decision_html(trace, row)}</div><p class="swb-scalars">{figures}</p>'
        f'<div class="swb-scroll">{chart}</div>{below}</div>'
    )


def _decision_html(trace: Trace, row: pd.Series) -> str:
    decision = decision_of(trace, row)
    if decision is None:
        return f'<p class="swb-note">{no_decision(row["outcome"])}</p>'
    bar = decision_svg(decision)
    if decision.block and decision.accepted and decision.u >= decision.accept_prob:
        return f'<p class="swb-note">{KEPT_BY_A_LATER}</p>{bar}'
    if row["outcome"] != "corrected":
        return bar
    return f'<p class="swb-note">The decision that led here, on the rejected token:</p>{bar}'


def _unbroken(html: str) -> str:
    """The same with the formulas kept on one line."""
    for formula in ("min(1, p/q)", "max(p − q, 0)", "max(b·p − q, 0)"):
        html = html.replace(formula, f'<span style="white-space: nowrap">{formula}</span>')
    return html
