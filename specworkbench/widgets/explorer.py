"""`explore(trace)`: strip and inspector of a trace, linked by one selection."""

from __future__ import annotations

from html import escape
from os import PathLike
from typing import Any

import ipywidgets as widgets
import traitlets

from specworkbench.errors import InputError
from specworkbench.trace import Trace, load_trace
from specworkbench.widgets.inspector import Inspector
from specworkbench.widgets.page_repairs import PageRepairs
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.tables import sequence_name
from specworkbench.widgets.token_strip import TokenStrip

_INK = "color: var(--jp-ui-font-color1, inherit)"


class Explorer(widgets.VBox):
    """A sequence of a trace, its tokens, and the selected token under the glass.

    `trace` and `sequence` say what is shown, `selected` (index in the strip, -1 for none) which token; set any of
    them. An error becomes a sentence in `message`, never a traceback. `selection` is what strip and inspector follow:
    give it to other panels, or give the explorer theirs. Enter on a token leads to the inspector's buttons.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> explorer = Explorer(load_trace(traces_dir() / "quickstart.trace"))
    >>> explorer.selected = 0
    >>> explorer.selection.round, explorer.selection.position
    (0, 1)
    """

    trace = traitlets.Instance(Trace, allow_none=True)
    sequence = traitlets.Int(0)
    selected = traitlets.Int(-1)

    def __init__(
        self,
        trace: Trace | None = None,
        sequence: int = 0,
        *,
        selection: Selection | None = None,
        top: int = 12,
        **options: Any,
    ):
        self.selection = Selection() if selection is None else selection
        self._asking = False
        self.message = widgets.HTML()
        self.chooser = widgets.Dropdown(description="sequence", layout={"width": "min(40em, 98%)"})
        self.prompt = widgets.HTML()
        self.inspector = Inspector(selection=self.selection, top=top)
        self.strip = TokenStrip(selection=self.selection)
        parts = [self.message, self.chooser, self.prompt, self.strip, self.inspector]
        super().__init__([*parts, PageRepairs("Tokens of a trace")], **options)
        traitlets.link((self.selection, "selected"), (self, "selected"))
        self.selection.observe(self._follow, ["trace", "sequence"])
        self.chooser.observe(self._chosen, "value")
        self.strip.observe(lambda _change: self.inspector.focus(), "opened")
        if selection is None or trace is not None:
            self.show(trace, sequence)
        else:
            self._follow()

    def show(self, trace: Trace | None, sequence: int = 0) -> None:
        """Show another trace."""
        self._asking = True
        self.trace, self.sequence = trace, sequence
        self._asking = False
        self._ask()

    def say(self, text: str) -> None:
        """A sentence above everything; empty for none."""
        self.message.value = sentence_html(text)

    @traitlets.validate("selected")
    def _within(self, proposal: Any) -> int:
        return self.selection.within(proposal["value"])

    @traitlets.observe("trace", "sequence")
    def _changed(self, _change: Any) -> None:
        if not self._asking:
            self._ask()

    def _ask(self) -> None:
        """Have `trace` and `sequence` selected; what cannot be shown is told, and nothing is shown in its place."""
        self._asking, said = True, ""
        try:
            self.selection.show(self.trace, self.sequence)
        except (InputError, KeyError, ValueError) as error:
            self.selection.show(None)
            said = sentence_of(error)
        finally:
            self._asking = False
        self._tell()
        self.say(said)

    def _follow(self, _change: Any = None) -> None:
        """Show what another panel had selected."""
        if self._asking:
            return
        self._asking = True
        self.trace, self.sequence = self.selection.trace, self.selection.sequence
        self._asking = False
        self._tell()
        self.say("")

    def _chosen(self, change: Any) -> None:
        if change["new"] is not None:
            self.sequence = change["new"]

    def _tell(self) -> None:
        """The sequences to choose from, hidden where there is no choice, and the prompt."""
        entries = self.trace.sequences if self.trace else []
        options = [(sequence_name(entry), index) for index, entry in enumerate(entries)]
        self.chooser.unobserve(self._chosen, "value")
        self.chooser.options = options
        self.chooser.value = self.sequence if 0 <= self.sequence < len(options) else None
        self.chooser.observe(self._chosen, "value")
        self.chooser.layout.display = None if len(options) > 1 else "none"
        shown = self.selection.trace is not None
        self.prompt.value = prompt_html(entries[self.sequence]["prompt"]) if shown else ""

    def to_html(self) -> str:
        """Strip and inspector as HTML that needs neither scripts nor a kernel."""
        return self.message.value + self.prompt.value + self.strip.to_html() + self.inspector.to_html()

    def _repr_html_(self) -> str:
        return self.to_html()


def explore(trace: Trace | str | PathLike | None, sequence: int = 0, **options: Any) -> Explorer:
    """A widget to look at a trace, or at a trace file, token by token.

    What cannot be opened is told in the widget as a sentence. Options: `top`, how many tokens have a bar of their own;
    `selection`, one that other panels share.

    >>> from specworkbench.paths import traces_dir
    >>> explore(traces_dir() / "quickstart.trace").selection.row["outcome"]
    'rejected'
    """
    if trace is None or isinstance(trace, Trace):
        return Explorer(trace, sequence, **options)
    try:
        return Explorer(load_trace(trace), sequence, **options)
    except (InputError, OSError) as error:
        explorer = Explorer(**options)
        explorer.say(sentence_of(error))
        return explorer


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


def prompt_html(prompt: str) -> str:
    """The prompt, folded away."""
    style = f"white-space: pre-wrap; max-height: 12em; overflow: auto; margin: 4px 0; {_INK}"
    text = f'<pre style="{style}">{escape(prompt)}</pre>'
    return f'<details style="{_INK}"><summary>Prompt</summary>{text}</details>'
