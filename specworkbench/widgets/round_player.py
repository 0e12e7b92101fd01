"""`RoundPlayer`: speculative decoding step by step: propose, verify, decide, emit, roll back, on a measured clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from specworkbench.errors import InputError
from specworkbench.plots import palette
from specworkbench.trace import Trace
from specworkbench.widgets.explorer import sentence_of
from specworkbench.widgets.page_style import STYLE
from specworkbench.widgets.player_rounds import player_rounds, step_of
from specworkbench.widgets.player_twin import player_html
from specworkbench.widgets.selection import Selection

_FOLDER = Path(__file__).parent
_SCRIPTS = ("keys.js", "elements.js", "player_steps.js", "player_figures.js", "round_player.js")
_SHEETS = ("scripted.css", "round_player.css")
_PHASES = " ".join(f"--swb-phase-{phase}: {color};" for phase, color in palette.PHASES.items())
_CSS = f"{palette.css_variables()}{STYLE}.swb-player {{{_PHASES}}}\n" + "".join(
    (_FOLDER / name).read_text(encoding="utf-8") for name in _SHEETS
)
_MARKS = {name: {"glyph": mark.glyph, "meaning": mark.meaning} for name, mark in palette.OUTCOMES.items()}


class RoundPlayer(anywidget.AnyWidget):
    """Plays a sequence of a trace, step by step or in time, in the browser; arrow keys step, space plays.

    plain: a trace of plain decoding of the same prompts with the same target, recorded beside this one; its run is the
    second lane. selection: a `Selection` to share with other panels: the token chosen there is shown here, and a step
    chooses its token there; without one the player has its own, and `show` changes the sequence either way. step: index
    into `played["steps"]`, set it or observe it. What cannot be shown is told as a sentence in `message`.

    >>> from specworkbench import load_trace
    >>> from specworkbench.paths import traces_dir
    >>> player = RoundPlayer(load_trace(traces_dir() / "quickstart.trace"))
    >>> player.step = 0
    >>> player.played["steps"][player.step]["kind"]
    'propose'
    """

    _esm = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    _css = _CSS

    played = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)
    marks = traitlets.Dict(default_value=_MARKS, read_only=True).tag(sync=True)
    plain = traitlets.Instance(Trace, allow_none=True)

    def __init__(
        self,
        trace: Trace | None = None,
        sequence: int = 0,
        *,
        plain: Trace | None = None,
        selection: Selection | None = None,
        **traits: Any,
    ):
        self.selection = selection or Selection()
        self._following, self._shown = False, None
        super().__init__(plain=plain, **traits)
        self.selection.observe(self._rebuild, ["trace", "sequence"])
        self.selection.observe(self._follow, "selected")
        if trace is not None:
            self.show(trace, sequence)
        else:
            self._rebuild()

    def show(self, trace: Trace | None, sequence: int = 0) -> None:
        """Play another sequence; one that is not there is told as a sentence, and what was played stays."""
        try:
            self.selection.show(trace, sequence)
        except InputError as error:
            self.message = sentence_of(error)
        else:
            self._rebuild()

    @traitlets.observe("plain")
    def _rebuild(self, _change: Any = None) -> None:
        """Prepare what the selection shows, unless that is prepared, and stand at its token."""
        shown = self.selection.trace, self.selection.sequence, self.plain
        if self._shown is not None and all(ours is theirs for ours, theirs in zip(shown, self._shown, strict=True)):
            return
        self._shown, played, message = shown, {}, ""
        try:
            if shown[0] is not None:
                played = player_rounds(*shown)
        except (InputError, KeyError, ValueError) as error:
            message = sentence_of(error)
        with self.hold_sync():
            self.played, self.message = played, message
            self.step = min(self.step, max(0, len(played.get("steps", [])) - 1))
            self._follow()

    def _follow(self, _change: Any = None) -> None:
        """Stand at the selected token, unless the step is about it already."""
        selected, steps = self.selection.selected, self.played.get("steps", [])
        if not steps or (self.step < len(steps) and steps[self.step]["index"] == selected):
            return
        self._following = True
        try:
            self.step = max(0, step_of(self.played, selected))
        finally:
            self._following = False

    @traitlets.validate("step")
    def _within(self, proposal: Any) -> int:
        """Past the last step is the last step."""
        return max(0, min(proposal["value"], len(self.played.get("steps", [])) - 1))

    @traitlets.observe("step")
    def _stepped(self, change: Any) -> None:
        """Select the token that the step is about."""
        if not self._following and self.played.get("steps"):
            self.selection.selected = self.played["steps"][change["new"]]["index"]

    def to_html(self) -> str:
        """The step's round laid out in full, with both lanes, as HTML that needs neither scripts nor a kernel."""
        return f"<style>{_CSS}</style>" + player_html(self.played, self.step, self.message)

    def _repr_html_(self) -> str:
        return self.to_html()
