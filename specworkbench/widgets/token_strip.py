"""`TokenStrip`: the tokens of one sequence, grouped by rounds, one of them selected."""

from __future__ import annotations

from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from specworkbench.plots import palette
from specworkbench.trace import Trace
from specworkbench.widgets.tables import caption, is_cut, tokens_of

_FOLDER = Path(__file__).parent
_CSS = palette.css_variables() + (_FOLDER / "token_strip.css").read_text(encoding="utf-8")
_LEGEND = [{"outcome": name, "glyph": mark.glyph, "meaning": mark.meaning} for name, mark in palette.OUTCOMES.items()]

EMPTY = "No tokens yet: decode a prompt or open a trace, and its tokens appear here."


class TokenStrip(anywidget.AnyWidget):
    """A listbox of tokens; click one, or move by arrow keys (left and right by token, up and down by round).

    tokens: dicts of text (whitespace visible), outcome, emitted, round, position and label, as `tokens_of` makes
    them. selected: index of the selected token, -1 for none; set it or observe it. title: a line above.
    """

    _esm = (_FOLDER / "token_strip.js").read_text(encoding="utf-8")
    _css = _CSS

    tokens = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    legend = traitlets.List(traitlets.Dict(), default_value=_LEGEND, read_only=True).tag(sync=True)

    @classmethod
    def of(cls, trace: Trace, sequence: int = 0, **traits: Any) -> TokenStrip:
        """The strip of one sequence of a trace; a lossy rule is told in the title.

        Raises `InputError` for a sequence that is not there.
        """
        title = caption(trace, traits.pop("title", ""))
        return cls(tokens=tokens_of(trace, sequence), title=title, **traits)

    @traitlets.validate("selected")
    def _within(self, proposal: Any) -> int:
        """Past the last token is the last token; before the first is none."""
        return max(-1, min(proposal["value"], len(self.tokens) - 1))

    @traitlets.observe("tokens")
    def _tokens_changed(self, change: Any) -> None:
        self.selected = min(self.selected, len(self.tokens) - 1)

    def to_html(self) -> str:
        """The strip as HTML that needs neither scripts nor a kernel, for exports."""
        parts = [f"<style>{_CSS}</style>", '<div class="swb swb-strip">']
        if self.title:
            parts.append(f'<div class="swb-title">{escape(self.title)}</div>')
        if self.tokens:
            parts += [_legend_html(self.tokens), '<div class="swb-tokens" style="max-height: none">']
            numbered = enumerate(self.tokens)
            for round_index, group in groupby(numbered, key=lambda pair: pair[1]["round"]):
                tokens = "".join(_token_html(token, index == self.selected) for index, token in group)
                parts.append(f'<span class="swb-round"><span class="swb-number">{round_index}</span>{tokens}</span>')
            parts.append("</div>")
        else:
            parts.append(f'<p class="swb-empty">{EMPTY}</p>')
        return "".join([*parts, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()


def _token_html(token: dict[str, Any], selected: bool) -> str:
    cut = is_cut(token["outcome"], token["emitted"])
    glyph = palette.OUTCOMES[token["outcome"]].glyph + (palette.CUT.glyph if cut else "")
    return (
        f'<span class="swb-token{" swb-cut" if cut else ""}" data-outcome="{token["outcome"]}" data-glyph="{glyph}"'
        f'{" aria-selected=true" if selected else ""} title="{escape(token["label"])}">{escape(token["text"])}</span>'
    )


def _legend_html(tokens: list[dict[str, Any]]) -> str:
    items = []
    for name, mark in palette.OUTCOMES.items():
        count = sum(token["outcome"] == name for token in tokens)
        shown = f'<span class="swb-token" data-outcome="{name}" data-glyph="{mark.glyph}">{name}</span>'
        items.append(f'<span title="{escape(mark.meaning)}">{shown} {count}</span>')
    cut = sum(is_cut(token["outcome"], token["emitted"]) for token in tokens)
    if cut:
        items.append(f"<span>{palette.CUT.glyph} kept by the rule but cut off by the end: {cut}</span>")
    return f'<div class="swb-legend">{"".join(items)}</div>'
