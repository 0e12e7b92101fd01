"""`StudyControls`: what is drawn of a study's cells, and which cells; part of `StudyBrowser`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

import ipywidgets as widgets
import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.study.figures import MEASURES
from specworkbench.experiments.study.grid import shown
from specworkbench.experiments.study.table import varying
from specworkbench.widgets.study_tables import View, chosen_view, first_view, offered

LABELS = {
    "x": ("x", "what lies from left to right"),
    "measure": ("figure", "what is drawn from bottom to top, with its 95 % interval"),
    "color": ("colour", "the axis told apart by colour and symbol"),
    "facet": ("panels", "the axis with a panel for each value"),
}
WRAP = {"flex_flow": "row wrap", "align_items": "flex-start"}
WIDE, STYLE = {"width": "min(28em, 98%)"}, {"description_width": "7em"}
MOST_LINES = 8
"""Of a filter; it scrolls beyond."""


class StudyControls(widgets.VBox):
    """A choice for each field of a `View`, and a filter for every axis that varies.

    `view` is what is to be drawn, `kept` the values chosen of each axis. changed: called after either did.
    """

    def __init__(self, changed: Callable[[], None], **options: Any):
        self._changed, self._quiet = changed, False
        self._finished = pd.DataFrame()
        self.choices = {
            name: widgets.Dropdown(description=label, tooltip=words, layout=WIDE, style=STYLE)
            for name, (label, words) in LABELS.items()
        }
        self.filters: dict[str, widgets.SelectMultiple] = {}
        self.all_button = widgets.Button(description="All cells", tooltip="take every filter away")
        self.filter_row = widgets.Box(layout=WRAP)
        super().__init__([widgets.Box(list(self.choices.values()), layout=WRAP), self.filter_row], **options)
        self.all_button.on_click(lambda _button: self.keep())
        for control in self.choices.values():
            control.observe(self._moved, "value")

    @property
    def view(self) -> View:
        """What is to be drawn."""
        return View(**{name: control.value or "" for name, control in self.choices.items()})

    @property
    def kept(self) -> dict[str, Collection[Any]]:
        """The values chosen of every axis that varies."""
        return {axis: control.value for axis, control in self.filters.items()}

    def offer(self, finished: pd.DataFrame, again: bool = False) -> None:
        """Offer what these cells allow. again: they are the same study's, so that choices stay as far as they can, and
        only what was filtered out stays so; else a new study opens with `first_view` and all its cells.
        """
        before = self.view if again else None
        dropped = {axis: {*_values(control)} - {*control.value} for axis, control in self.filters.items() if again}
        self._quiet, self._finished = True, finished
        allowed = offered(finished)
        for name, control in self.choices.items():
            control.options = [(_words(value), value) for value in allowed[name]]
        start = asdict(first_view(finished))
        for name, control in self.choices.items():
            wanted = getattr(before, name) if before else start[name]
            control.value = wanted if wanted in allowed[name] else start[name] or None
        for control in self.filters.values():
            control.close()
        self.filters = {axis: _filter(axis, finished[axis], dropped.get(axis, ())) for axis in varying(finished)}
        for control in self.filters.values():
            control.observe(self._moved, "value")
        self.filter_row.children = [*self.filters.values(), self.all_button] if self.filters else []
        self._quiet = False

    def show(self, **choices: str | None) -> None:
        """Draw something else: x, measure, color, facet, by name. Raises `InputError` for what these cells lack."""
        self._set(asdict(chosen_view(self.view, self._finished, **choices)), self.choices)

    def keep(self, **values: Collection[Any]) -> None:
        """Only cells with one of these values on each of these axes, and with any on the others.

        Raises `InputError` for an axis that does not vary, or a value that no finished cell has.
        """
        for axis, wanted in values.items():
            if axis not in self.filters:
                raise InputError(f"{axis!r} does not vary in this study; {', '.join(self.filters) or 'nothing'} does")
            there = _values(self.filters[axis])
            for value in wanted:
                if value not in there:
                    raise InputError(
                        f"no finished cell has {axis} {shown(value)}; there are {', '.join(map(shown, there))}"
                    )
        there = {axis: _values(control) for axis, control in self.filters.items()}
        self._set({axis: [value for value in all if value in values.get(axis, all)] for axis, all in there.items()},
                  self.filters)  # fmt: skip

    def _set(self, values: dict[str, Any], controls: dict[str, Any]) -> None:
        """Set several controls, and tell it once."""
        self._quiet = True
        for name, value in values.items():
            controls[name].value = value
        self._quiet = False
        self._changed()

    def _moved(self, _change: Any) -> None:
        if not self._quiet:
            self._changed()


def _filter(axis: str, values: pd.Series, dropped: Collection[Any]) -> widgets.SelectMultiple:
    """A list of an axis's values, in the study's order; all chosen but those dropped."""
    there = list(dict.fromkeys(values))
    return widgets.SelectMultiple(
        options=[(shown(value), value) for value in there], value=[value for value in there if value not in dropped],
        rows=min(len(there), MOST_LINES), description=axis.replace("_", " "), layout=WIDE, style=STYLE,
        tooltip="Ctrl or Shift with a click, or Shift with the arrow keys, chooses several",
    )  # fmt: skip


def _values(control: widgets.SelectMultiple) -> list[Any]:
    """All values of a filter, chosen or not."""
    return [value for _, value in control.options]


def _words(name: str) -> str:
    """An axis or a figure in words; the empty name is none."""
    return MEASURES.get(name, name.replace("_", " ")) if name else "none"
