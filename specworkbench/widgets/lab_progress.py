"""How far each proposer is: a bar and a few words a proposer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from time import monotonic
from typing import Any

import ipywidgets as widgets

from specworkbench.experiments.comparison import Comparison, Watch
from specworkbench.widgets.lab_words import named

_REFRESH_SECONDS = 0.1
_INK = "color: var(--jp-ui-font-color1, inherit)"


class Lanes(widgets.VBox):
    """A bar a proposer, full at the most tokens that it may decode; what has failed says so in its place."""

    def __init__(self, **options: Any):
        self.bars: dict[str, widgets.IntProgress] = {}
        self.words: dict[str, widgets.HTML] = {}
        self._tokens: dict[str, int] = {}
        self._shown = 0.0
        super().__init__(**options)

    def start(self, labels: Iterable[str], planned_tokens: int) -> None:
        """One bar for each, empty."""
        self._tokens = dict.fromkeys(labels, 0)
        self.bars = {
            label: widgets.IntProgress(
                0, 0, planned_tokens, description=named(label), tooltip=label, layout={"width": "min(28em, 98%)"},
                style={"description_width": "16em"},
            )
            for label in self._tokens
        }  # fmt: skip
        self.words = {label: widgets.HTML() for label in self._tokens}
        rows = zip(self.bars.values(), self.words.values(), strict=True)
        self.children = [widgets.Box(row, layout={"flex_flow": "row wrap", "align_items": "center"}) for row in rows]
        for label in self._tokens:
            self.tell(label, "waiting")

    def add(self, label: str, tokens: int) -> None:
        """So many tokens more; shown at most ten times a second."""
        self._tokens[label] += tokens
        if monotonic() - self._shown > _REFRESH_SECONDS:
            self._shown = monotonic()
            self.bars[label].value = self._tokens[label]
            self.tell(label, f"{self._tokens[label]} tokens")

    def tell(self, label: str, words: str, alert: bool = False) -> None:
        """What there is to say of one."""
        role = ' role="alert"' if alert else ""
        self.words[label].value = f'<span{role} style="{_INK}">{escape(words)}</span>'

    def reached(self, label: str, share: float) -> None:
        """This share of the work is done: an output may end early."""
        self.bars[label].value = round(share * self.bars[label].max)
        self.tell(label, f"{self._tokens[label]} tokens")

    def fail(self, label: str, why: str) -> None:
        self.bars[label].bar_style = "danger"
        self.tell(label, why, alert=True)


class LabWatch(Watch):
    """Tells the lanes what happens; stops when asked to. failures: why, by label."""

    def __init__(
        self, lanes: Lanes, asked: Comparison, stopped: Callable[[], bool], doing: Callable[[str], None],
        told: Callable[[Exception], str],
    ):  # fmt: skip
        self.lanes, self.asked, self.stopped, self.doing, self._told = lanes, asked, stopped, doing, told
        self.failures: dict[str, str] = {}
        lanes.start(asked.labels, asked.planned_tokens)

    def round(self, label: str, step: Any) -> None:
        self.lanes.add(label, len(step.emitted))

    def decoded(self, label: str, prompts: int) -> None:
        if not self.stopped():
            self.lanes.reached(label, prompts / len(self.asked.prompts))

    def failed(self, label: str, error: Exception) -> None:
        self.failures[label] = self._told(error)
        self.lanes.fail(label, self.failures[label])
