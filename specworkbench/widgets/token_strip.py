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
from specworkbench.widgets.page_style import STYLE, unstyled
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.sentences import sentence
from specworkbench.widgets.tables import caption, is_cut, sequence_title, tokens_of

_FOLDER = Path(__file__).parent
_SCRIPTS = ("keys.js", "token_lines.js", "token_nodes.js", "token_strip.js")
_CSS = palette.css_variables() + STYLE + (_FOLDER / "token_strip.css").read_text(encoding="utf-8")
_LEGEND = [{"outcome": name, "glyph": mark.glyph, "meaning": mark.meaning} for name, mark in palette.OUTCOMES.items()]

EMPTY = "No tokens yet: decode a prompt or open a trace, and its tokens appear here."


class TokenStrip(anywidget.AnyWidget):
    """A listbox of tokens: click one, or move by keys (left and right by token, up and down by round, Page by screen).

    tokens: dicts of text (whitespace visible), outcome, emitted, round, position and label, as `tokens_of` makes
    them. selected: index of the selected token, -1 for none; set it or observe it. opened: how often Enter was pressed
    on the selected token; observe it to do something with that. title: a line above. sentence: what those hear who do
    not see the selection, once they made it here. With a `selection` the strip shows and moves that one, and writes
    title (unless one is given) and sentence itself.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> strip = TokenStrip.of(load_trace(traces_dir() / "quickstart.trace"))
    >>> strip.selected = 3
    >>> strip.tokens[strip.selected]["label"] in strip.to_html()
    True
    """

    _esm = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    _css = _CSS

    tokens = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    opened = traitlets.Int(0).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    sentence = traitlets.Unicode("").tag(sync=True)
    legend = traitlets.List(traitlets.Dict(), default_value=_LEGEND, read_only=True).tag(sync=True)

    def __init__(self, *, selection: Selection | None = None, **traits: Any):
        super().__init__(**traits)
        self.selection, self._titled = selection, "title" in traits
        if selection is not None:
            self._follow()
            selection.observe(self._follow, ["trace", "sequence"])
            traitlets.link((selection, "selected"), (self, "selected"))
            selection.observe(self._say, "selected")  # once the page knows that another panel selected it

    @classmethod
    def of(cls, trace: Trace, sequence: int = 0, **traits: Any) -> TokenStrip:
        """The strip of one sequence of a trace; a lossy rule is told in the title.

        Raises `InputError` for a sequence that is not there.
        """
        selection = Selection()
        selection.show(trace, sequence, selected=traits.pop("selected", -1))
        return cls(selection=selection, title=caption(trace, traits.pop("title", "")), **traits)

    def _follow(self, _change: Any = None) -> None:
        """Show the sequence of the selection; the token selected in it at the same time."""
        trace, sequence = self.selection.trace, self.selection.sequence
        with self.hold_sync(), self.hold_trait_notifications():
            self.tokens = [] if trace is None else tokens_of(trace, sequence)
            self.selected = self.selection.selected
            if not self._titled:
                self.title = "" if trace is None else sequence_title(trace, sequence)
        self._say()

    def _say(self, _change: Any = None) -> None:
        row = self.selection.row
        self.sentence = "" if row is None else sentence(self.selection.trace, row)

    @traitlets.validate("selected")
    def _within(self, proposal: Any) -> int:
        """Past the last token is the last token; before the first is none."""
        return max(-1, min(proposal["value"], len(self.tokens) - 1))

    @traitlets.observe("tokens")
    def _tokens_changed(self, change: Any) -> None:
        self.selected = min(self.selected, len(self.tokens) - 1)

    def to_html(self) -> str:
        """All of the strip as HTML that needs neither scripts nor a kernel, and reads where no style is kept."""
        parts = [f"<style>{_CSS}</style>", '<div class="swb swb-strip swb-twin">']
        if self.title:
            parts.append(f'<div class="swb-title">{escape(self.title)}</div>')
        if self.tokens:
            parts += [_legend_html(self.tokens), '<div class="swb-flow">']
            numbered = enumerate(self.tokens)
            for round_index, group in groupby(numbered, key=lambda pair: pair[1]["round"]):
                tokens = " ".join(_token_html(token, index == self.selected) for index, token in group)
                parts.append(f'<div class="swb-round">{_number_html(round_index)} {tokens}</div>')
            parts.append("</div>")
        else:
            parts.append(f'<p class="swb-empty">{EMPTY}</p>')
        return "".join([*parts, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()


def _token_html(token: dict[str, Any], selected: bool) -> str:
    cut = is_cut(token["outcome"], token["emitted"])
    glyph = palette.OUTCOMES[token["outcome"]].glyph + (palette.CUT.glyph if cut else "")
    look = f'class="swb-token{" swb-cut" if cut else ""}" data-outcome="{token["outcome"]}"'
    text = f"<code>{escape(token['text'])}</code>"
    text = f"{_glyph_html(glyph)}{f'<s>{text}</s>' if token['outcome'] == 'rejected' else text}"
    if selected:
        look, text = f"{look} aria-current=true", f"{unstyled('▸ ')}<strong>{text}</strong>"
    return f'<span {look} title="{escape(token["label"])}">{text}</span>'


def _glyph_html(glyph: str) -> str:
    return f'<span class="swb-glyph">{glyph} </span>'


def _number_html(round_index: int) -> str:
    return f'{unstyled("round ")}<span class="swb-number">{round_index}</span>{unstyled(": ")}'


def _legend_html(tokens: list[dict[str, Any]]) -> str:
    items = []
    for name, mark in palette.OUTCOMES.items():
        count = sum(token["outcome"] == name for token in tokens)
        shown = f'<span class="swb-token" data-outcome="{name}">{_glyph_html(mark.glyph)}{name}</span>'
        items.append(f'<span title="{escape(mark.meaning)}">{shown} {count}</span>')
    cut = sum(is_cut(token["outcome"], token["emitted"]) for token in tokens)
    if cut:
        items.append(f"<span>{palette.CUT.glyph} kept by the rule but cut off by the end: {cut}</span>")
    return f'<div class="swb-legend">{unstyled(" · ").join(items)}</div>'
