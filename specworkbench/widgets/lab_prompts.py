"""The prompts of a panel: typed, or picked from those that are shipped, by bucket."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from specworkbench.workloads import Prompt, buckets_of, load_prompts, shipped_for

TYPED, ALL = "typed text", "all buckets"
_PICKED = 3
_WIDE = {"width": "min(40em, 98%)"}
_STYLE = {"description_width": "9em"}


class PromptPicker(widgets.VBox):
    """A text field, or a list of the shipped prompts that suit the target; `prompts` are those chosen.

    >>> picker = PromptPicker("embedded")
    >>> picker.source.value = "code"
    >>> [prompt.id for prompt in picker.prompts]
    ['code-01', 'code-02', 'code-03']
    """

    def __init__(self, target: str, text: str = "", **options: Any):
        self.source = widgets.Dropdown(description="prompts", layout=_WIDE, style=_STYLE)
        self.text = widgets.Textarea(text, description="text", rows=4, layout=_WIDE, style=_STYLE)
        self.chosen = widgets.SelectMultiple(
            description="chosen", rows=6, layout=_WIDE, style=_STYLE, tooltip="Ctrl or Shift picks several"
        )
        self.shipped: list[Prompt] = []
        super().__init__([self.source, self.text, self.chosen], layout={"width": "100%"}, **options)
        self.source.observe(self._offer, "value")
        self.suit(target)

    def suit(self, target: str) -> None:
        """Offer the shipped set for the target of that name; what was typed stays."""
        self.shipped = load_prompts(shipped_for(target))
        options = [TYPED, ALL, *buckets_of(self.shipped)]
        if tuple(options) != self.source.options:
            before = self.source.value
            self.source.options = options
            self.source.value = before if before in options else ALL
        self._offer()

    def pick(self, ids: tuple[str, ...]) -> None:
        """Choose shipped prompts by their ids."""
        self.source.value = ALL
        self.chosen.value = ids

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """What is chosen, in the order of the list."""
        if self.source.value == TYPED:
            return (Prompt("typed", "typed", self.text.value),)
        return tuple(prompt for prompt in self.shipped if prompt.id in self.chosen.value)

    def _offer(self, _change: Any = None) -> None:
        """The prompts of the bucket; of all buckets the first of each is chosen, of one the first three."""
        typed, bucket = self.source.value == TYPED, self.source.value
        self.text.layout.display = None if typed else "none"
        self.chosen.layout.display = "none" if typed else None
        inside = [prompt for prompt in self.shipped if bucket in (ALL, prompt.bucket)]
        self.chosen.options = [(f"{prompt.id}: {_first_line(prompt.text)}", prompt.id) for prompt in inside]
        of_each = {prompt.bucket: prompt.id for prompt in reversed(inside)}
        first = reversed(of_each.values()) if bucket == ALL else (prompt.id for prompt in inside)
        self.chosen.value = tuple(first)[:_PICKED]


def _first_line(text: str) -> str:
    line = next(line.strip() for line in text.splitlines() if line.strip())
    return line if len(line) <= 60 else f"{line[:59]}…"
