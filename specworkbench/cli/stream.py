"""Text on a terminal as it is decoded, each token marked by what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from specworkbench.cli.screen import printable

if TYPE_CHECKING:
    from specworkbench.engine import Round

STYLES = {
    "accepted": Style.parse("green"),
    "corrected": Style.parse("bold underline magenta"),
    "bonus": Style.parse("bold yellow"),
    "plain": Style.parse("cyan"),
}
"""By outcome: a weight or a line beside every colour, so that none carries the meaning alone."""

MEANINGS = {
    "accepted": "kept guess",
    "corrected": "drawn in place of a rejected guess",
    "bonus": "drawn after all guesses were kept",
    "plain": "drawn without a guess",
}


class TokenText:
    """The text that each further token adds; nothing while a character is incomplete.

    Only the last tokens are decoded anew: the text of a token depends on its neighbours, not on the whole.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]):
        self._decode = decode
        self._tokens: list[int] = []
        self._before = self._read = 0

    def add(self, token: int) -> str:
        self._tokens.append(token)
        known = self._decode(self._tokens[self._before : self._read])
        text = self._decode(self._tokens[self._before :])
        if text.endswith("\ufffd"):
            return ""
        self._before, self._read = self._read, len(self._tokens)
        return text[len(known) :]

    def rest(self) -> str:
        """What the end cut in the middle of a character."""
        known = self._decode(self._tokens[self._before : self._read])
        text = self._decode(self._tokens[self._before :])
        self._before = self._read = len(self._tokens)
        return text[len(known) :]


class Stream:
    """Shows rounds: marked on a terminal, the bare text (as it is) anywhere else."""

    def __init__(self, console: Console, decode: Callable[[Sequence[int]], str]):
        self._console, self._text = console, TokenText(decode)
        self._seen: set[str] = set()

    def show(self, step: Round) -> None:
        for token, outcome in zip(step.emitted, outcomes(step), strict=True):
            self._seen.add(outcome)
            self._write(self._text.add(token), STYLES[outcome])
        self._console.file.flush()

    def close(self) -> None:
        """The end of the text, and the legend of the marks in it."""
        self._write(self._text.rest() + "\n", Style.null())
        if self._console.is_terminal:
            for kind in (kind for kind in STYLES if kind in self._seen):
                self._print([Segment(kind, STYLES[kind]), Segment(f" {MEANINGS[kind]}   ")])
            self._print([Segment("\n")])

    def _write(self, text: str, style: Style) -> None:
        if self._console.is_terminal:
            self._print([Segment(printable(text), style)])
        else:
            self._console.file.write(text)

    def _print(self, segments: list[Segment]) -> None:
        """As it is: no wrapping, no markup, tabs kept."""
        self._console.print(Segments(segments), crop=False, end="")


def outcomes(step: Round) -> list[str]:
    """What became of each emitted token of a round."""
    decision = step.decision
    return ([*["accepted"] * decision.accepted, decision.outcome])[: decision.emitted]
