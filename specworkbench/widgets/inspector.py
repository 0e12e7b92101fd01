"""`Inspector`: one token of a trace: its fate in a sentence, the decision as a bar, p against q and the residual."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets
import pandas as pd
import plotly.graph_objects as go
import traitlets

from specworkbench import plots
from specworkbench.plots import palette
from specworkbench.trace import Trace
from specworkbench.widgets.decision import decision_svg, no_decision
from specworkbench.widgets.sentences import decision_of, scalars, sentence
from specworkbench.widgets.tables import distribution_table, strip_rows

EMPTY = "Pick a token in the strip to see how it was decided."
NO_DISTRIBUTIONS = "This trace holds no distributions: record with capture='top-k' to see p and q here."
_STYLE = """<style>
.swb-card {font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px);
  line-height: 1.5; color: var(--jp-ui-font-color1, inherit); max-width: 60em;}
.swb-card p {margin: 4px 0;}
.swb-card .swb-sentence {font-size: 1.08em;}
.swb-card .swb-scalars, .swb-card .swb-note {color: var(--jp-ui-font-color2, inherit);}
.swb-card .swb-scalars span {margin-right: 1.2em; white-space: nowrap; display: inline-block;}
.swb-decision {display: block; width: 100%; max-width: 600px; height: auto;}
</style>"""


class Inspector(widgets.VBox):
    """Shows the token `selected` (an index in the order of the strip) of one sequence of a trace.

    `show(trace, sequence)` changes what is inspected; `selected` is -1 for none. `top`: tokens with a bar of their
    own; `template`: a plotly template for the figure, None for one that reads on light and dark pages.
    """

    selected = traitlets.Int(-1)

    def __init__(
        self,
        trace: Trace | None = None,
        sequence: int = 0,
        *,
        top: int = 12,
        template: str | go.layout.Template | None = None,
        **options: Any,
    ):
        self.top = top
        self.card = widgets.HTML()
        self.figure = go.FigureWidget(plots.distribution(template=template))
        super().__init__([self.card, self.figure], **options)
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
        row = self.row
        self.card.value = card_html(self.trace, row)
        table = None if row is None else distribution_table(self.trace, row, self.top)
        if table is None:
            self.children = [self.card]
            return
        plots.redraw(self.figure, table, _title(row))
        self.children = [self.card, self.figure]

    def to_html(self) -> str:
        """Sentence, numbers and decision as HTML that needs neither scripts nor a kernel."""
        return card_html(self.trace, self.row)

    def _repr_html_(self) -> str:
        return self.to_html()


def card_html(trace: Trace | None, row: pd.Series | None) -> str:
    """The part of the inspector above the figure; all text of the trace is escaped."""
    if trace is None or row is None:
        return f'{_STYLE}<div class="swb-card"><p class="swb-note">{EMPTY}</p></div>'
    mark = palette.OUTCOMES[row["outcome"]]
    decision = decision_of(trace, row)
    if decision is None:
        bar = f'<p class="swb-note">{no_decision(row["outcome"])}</p>'
    else:
        led_here = '<p class="swb-note">The decision that led here, on the rejected token:</p>'
        bar = (led_here if row["outcome"] == "corrected" else "") + decision_svg(decision)
    numbers = "".join(f"<span>{escape(name)} {escape(value)}</span>" for name, value in scalars(row))
    note = "" if trace.distributions is not None else f'<p class="swb-note">{escape(NO_DISTRIBUTIONS)}</p>'
    return (
        f'{_STYLE}<div class="swb-card"><p class="swb-sentence" aria-live="polite">{mark.glyph} '
        f'{_unbroken(escape(sentence(trace, row)))}</p>{bar}<p class="swb-scalars">{numbers}</p>{note}</div>'
    )


def _title(row: pd.Series) -> str:
    against = "" if pd.isna(row["overlap"]) else " against draft q"
    return f"Target p{against} at round {row['round']}, position {row['position']}"


def _unbroken(html: str) -> str:
    """The same with the formulas kept on one line."""
    for formula in ("min(1, p/q)", "max(p − q, 0)"):
        html = html.replace(formula, f'<span style="white-space: nowrap">{formula}</span>')
    return html
