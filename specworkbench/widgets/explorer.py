"""`explore(trace)`: strip and inspector of a trace, linked by one selection."""

from __future__ import annotations

from html import escape
from os import PathLike
from typing import Any

import ipywidgets as widgets
import traitlets

from specworkbench.errors import InputError
from specworkbench.trace import Trace, load_trace
from specworkbench.trace.schema import STOP_REASONS
from specworkbench.widgets.inspector import Inspector
from specworkbench.widgets.tables import caption, tokens_of
from specworkbench.widgets.token_strip import TokenStrip

_INK = "color: var(--jp-ui-font-color1, inherit)"


class Explorer(widgets.VBox):
    """A sequence of a trace, its tokens, and the selected token under the glass.

    `trace` and `sequence` say what is shown, `selected` (index in the strip, -1 for none) which token; set any of
    them. An error becomes a sentence in `message`, never a traceback.
    """

    trace = traitlets.Instance(Trace, allow_none=True)
    sequence = traitlets.Int(0)
    selected = traitlets.Int(-1)

    def __init__(self, trace: Trace | None = None, sequence: int = 0, *, top: int = 12, **options: Any):
        self._shown = None
        self.message = widgets.HTML()
        self.chooser = widgets.Dropdown(description="sequence", layout={"width": "min(40em, 98%)"})
        self.prompt = widgets.HTML()
        self.strip = TokenStrip()
        self.inspector = Inspector(top=top)
        super().__init__([self.message, self.chooser, self.prompt, self.strip, self.inspector], **options)
        traitlets.link((self, "selected"), (self.strip, "selected"))
        traitlets.link((self, "selected"), (self.inspector, "selected"))
        self.chooser.observe(self._chosen, "value")
        self.show(trace, sequence)

    def show(self, trace: Trace | None, sequence: int = 0) -> None:
        """Show another trace."""
        self._shown = None
        with self.hold_trait_notifications():
            self.trace, self.sequence = trace, sequence
        self._refresh()

    def say(self, text: str) -> None:
        """A sentence above everything; empty for none."""
        self.message.value = sentence_html(text)

    @traitlets.observe("trace", "sequence")
    def _changed(self, _change: Any) -> None:
        self._refresh()

    def _refresh(self) -> None:
        """Show `trace` and `sequence`, unless they are shown already."""
        if self._shown == (id(self.trace), self.sequence):
            return
        self._shown = (id(self.trace), self.sequence)
        self._offer()
        self._show()

    def _chosen(self, change: Any) -> None:
        if change["new"] is not None:
            self.sequence = change["new"]

    def _offer(self) -> None:
        """The sequences to choose from; hidden where there is no choice."""
        entries = self.trace.sequences if self.trace else []
        options = [(_sequence_name(entry), index) for index, entry in enumerate(entries)]
        self.chooser.unobserve(self._chosen, "value")
        self.chooser.options = options
        self.chooser.value = self.sequence if 0 <= self.sequence < len(options) else None
        self.chooser.observe(self._chosen, "value")
        self.chooser.layout.display = None if len(options) > 1 else "none"

    def _show(self) -> None:
        self.say("")
        self.prompt.value, self.strip.title = "", ""
        self.selected = -1
        if self.trace is None:
            self.strip.tokens = []
            self.inspector.show(None)
            return
        try:
            tokens = tokens_of(self.trace, self.sequence)
            self.inspector.show(self.trace, self.sequence)
        except (InputError, KeyError, ValueError) as error:
            self.strip.tokens = []
            self.inspector.show(None)
            self.say(sentence_of(error))
            return
        entry = self.trace.sequences[self.sequence]
        self.prompt.value = _prompt_html(entry["prompt"])
        why = STOP_REASONS.get(entry["stop_reason"], "not ended")
        stopped = f"{len(entry['token_ids'])} tokens, {why}"
        self.strip.title = caption(self.trace, f"{_sequence_name(entry)}: {stopped}")
        self.strip.tokens = tokens
        self.selected = first_rejected(tokens)

    def to_html(self) -> str:
        """Strip and inspector as HTML that needs neither scripts nor a kernel."""
        return self.message.value + self.prompt.value + self.strip.to_html() + self.inspector.to_html()

    def _repr_html_(self) -> str:
        return self.to_html()


def explore(trace: Trace | str | PathLike | None, sequence: int = 0, **options: Any) -> Explorer:
    """A widget to look at a trace, or at a trace file, token by token.

    What cannot be opened is told in the widget as a sentence. Option: `top`, how many tokens have a bar of their own.
    """
    if trace is None or isinstance(trace, Trace):
        return Explorer(trace, sequence, **options)
    try:
        return Explorer(load_trace(trace), sequence, **options)
    except (InputError, OSError) as error:
        explorer = Explorer(**options)
        explorer.say(sentence_of(error))
        return explorer


def first_rejected(tokens: list[dict[str, Any]]) -> int:
    """The first rejected token, where there is the most to see; else the first token, -1 without any."""
    rejected = (index for index, token in enumerate(tokens) if token["outcome"] == "rejected")
    return next(rejected, 0 if tokens else -1)


def sentence_of(error: BaseException) -> str:
    """An error as a sentence: its message, with a capital and a full stop."""
    text = (str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)).strip()
    text = text or type(error).__name__
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def sentence_html(text: str) -> str:
    """The sentence as a line that stands out; nothing for an empty one."""
    if not text:
        return ""
    style = f"border-left: 4px solid var(--jp-error-color1, #d55e00); padding: 2px 8px; {_INK}"
    return f'<div role="alert" style="{style}">{escape(text)}</div>'


def _sequence_name(entry: dict[str, Any]) -> str:
    return f"{entry['id']} · {entry['bucket']}" if entry.get("bucket") else str(entry["id"])


def _prompt_html(prompt: str) -> str:
    style = f"white-space: pre-wrap; max-height: 12em; overflow: auto; margin: 4px 0; {_INK}"
    text = f'<pre style="{style}">{escape(prompt)}</pre>'
    return f'<details style="{_INK}"><summary>Prompt</summary>{text}</details>'
