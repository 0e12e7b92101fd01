"""`Inspector`: one token of a trace: its fate in a sentence, the decision as a bar, p against q and the residual."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets
import pandas as pd
import traitlets

from specworkbench.plots import palette
from specworkbench.trace import Trace
from specworkbench.widgets.chart import distribution_svg
from specworkbench.widgets.decision import decision_svg, no_decision
from specworkbench.widgets.sentences import decision_of, scalars, sentence
from specworkbench.widgets.tables import distribution_table, strip_rows

EMPTY = "Pick a token in the strip to see how it was decided."
NO_DISTRIBUTIONS = "This trace holds no distributions: record with capture='top-k' to see p and q here."
KEPT_BY_A_LATER = "Its own uniform fell short; a later position passed, and the block rule keeps all before that one."
_STYLE = """<style>
.swb-card {font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px);
  line-height: 1.5; color: var(--jp-ui-font-color1, inherit); max-width: 62em;}
.swb-card p {margin: 4px 0;}
.swb-card .swb-sentence {font-size: 1.08em;}
.swb-card .swb-scalars, .swb-card .swb-note {color: var(--jp-ui-font-color2, inherit);}
.swb-card .swb-scalars span {margin-right: 1.2em; white-space: nowrap; display: inline-block;}
.swb-card .swb-code {font-family: var(--jp-code-font-family, ui-monospace, monospace);}
.swb-decision, .swb-chart {display: block; width: 100%; height: auto;}
.swb-decision {max-width: 600px;}
.swb-chart {max-width: 760px; margin-top: 8px;}
</style>"""


class Inspector(widgets.VBox):
    """Shows the token `selected` (an index in the order of the strip) of one sequence of a trace.

    `show(trace, sequence)` changes what is inspected; `selected` is -1 for none. `top`: tokens with a bar of their
    own, all others share one.
    """

    selected = traitlets.Int(-1)

    def __init__(self, trace: Trace | None = None, sequence: int = 0, *, top: int = 12, **options: Any):
        self.top = top
        self.card = widgets.HTML()
        super().__init__([self.card], **options)
        self.show(trace, sequence)

    def show(self, trace: Trace | None, sequence: int = 0) -> None:
        """Inspect another sequence. Raises `InputError` for one that is not there."""
        self._rows = pd.DataFrame() if trace is None else strip_rows(trace, sequence)
        self.trace, self.sequence = trace, sequence
        self.update()

    @property
    def row(self) -> pd.Series | None:
        """The selected token as a row of `trace.positions`; None where none is selected."""
        return self._rows.iloc[self.selected] if 0 <= self.selected < len(self._rows) else None

    @traitlets.observe("selected")
    def _selected_changed(self, _change: Any) -> None:
        self.update()

    def update(self) -> None:
        """Draw the selected token anew."""
        self.card.value = self.to_html()

    def to_html(self) -> str:
        """What is shown, as HTML that needs neither scripts nor a kernel."""
        return card_html(self.trace, self.row, self.top)

    def _repr_html_(self) -> str:
        return self.to_html()


def card_html(trace: Trace | None, row: pd.Series | None, top: int = 12) -> str:
    """Sentence, decision, numbers and chart of one token; all text of the trace is escaped."""
    if trace is None or row is None:
        return f'{_STYLE}<div class="swb-card"><p class="swb-note">{EMPTY}</p></div>'
    numbers = "".join(f"<span>{escape(name)} {escape(value)}</span>" for name, value in scalars(row))
    table = distribution_table(trace, row, top)
    chart = f'<p class="swb-note">{escape(NO_DISTRIBUTIONS)}</p>' if table is None else distribution_svg(table)
    return (
        f'{_STYLE}<div class="swb-card"><p class="swb-sentence" aria-live="polite">'
        f"{palette.OUTCOMES[row['outcome']].glyph} {_unbroken(escape(sentence(trace, row)))}</p>"
        f'{_decision_html(trace, row)}<p class="swb-scalars">{numbers}</p>{chart}</div>'
    )


def _decision_html(trace: Trace, row: pd.Series) -> str:
    decision = decision_of(trace, row)
    if decision is None:
        return f'<p class="swb-note">{no_decision(row["outcome"])}</p>'
    if decision.block and decision.accepted and decision.u >= decision.accept_prob:
        return f'<p class="swb-note">{KEPT_BY_A_LATER}</p>{decision_svg(decision)}'
    if row["outcome"] != "corrected":
        return decision_svg(decision)
    return f'<p class="swb-note">The decision that led here, on the rejected token:</p>{decision_svg(decision)}'


def _unbroken(html: str) -> str:
    """The same with the formulas kept on one line."""
    for formula in ("min(1, p/q)", "max(p − q, 0)", "max(b·p − q, 0)"):
        html = html.replace(formula, f'<span style="white-space: nowrap">{formula}</span>')
    return html
