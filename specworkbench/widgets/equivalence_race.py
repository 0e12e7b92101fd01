"""`EquivalenceRace`: watch the evidence against implementations grow, token by token, until one is rejected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from time import monotonic
from typing import Any

import ipywidgets as widgets
import pandas as pd
import plotly.graph_objects as go
import traitlets

from specworkbench.errors import InputError
from specworkbench.plots import e_race
from specworkbench.widgets.page_repairs import PageRepairs, live_figure
from specworkbench.widgets.race_words import Runner, sentence_on, slots_html, verdicts_html
from specworkbench.widgets.running import Running, told

EMPTY = "No race yet: press Run, or add points with race.add(name, tokens, log_e)."
NOTHING_TO_RUN = "There is nothing to run: give implementations, or add points with race.add(name, tokens, log_e)."
_REFRESH_SECONDS = 1.0
_INK = "color: var(--jp-ui-font-color1, inherit)"

Factory = Callable[[], Iterable[Any]]
"""Starts an implementation: an iterable of what is known after each step, with `tokens`, `log_e`, `history`,
`decided_at` and `by_slot()`, as an `equivalence.statistics.EProcess` has them."""


class EquivalenceRace(Running):
    """Lines of log10 E over the tokens judged, the threshold 1 / level, and which position of the round says what.

    implementations: names to factories (see `Factory`), which Run starts side by side, one step each in turn; each goes
    on until it is rejected or `budget` tokens are judged. Without any, points come by `add`, `show` or `follow`.
    `verdicts` are the findings by name. Runs in a thread, so that Stop is heard; `wait()` waits for it.

    >>> race = EquivalenceRace()
    >>> race.verdicts
    {}
    """

    level = traitlets.Float(1e-3)
    budget = traitlets.Int(5000)

    def __init__(self, implementations: Mapping[str, Factory] | None = None, **options: Any):
        self.implementations = dict(implementations or {})
        self.runners: dict[str, Runner] = {}
        self._shown, self._offering, self._follows = -math.inf, False, True
        super().__init__(**options)
        self.progress = widgets.FloatProgress(0.0, min=0.0, max=1.0, layout={"width": "14em"})
        self.verdict_lines, self.slot_table = widgets.HTML(), widgets.HTML()
        self.chooser = widgets.Dropdown(description="positions of", layout={"width": "min(30em, 98%)"})
        self.figure = live_figure(e_race(_points([]), 0.5))
        row = widgets.HBox([self.run_button, self.stop_button, self.progress, self.voice])
        row.layout.display = None if self.implementations else "none"
        shown = (self.message, self.figure, self.verdict_lines, self.chooser, self.slot_table)
        self.children = [row, *shown, PageRepairs("Equivalence race")]
        self.chooser.observe(self._chosen, "value")
        self.refresh()

    @traitlets.validate("level")
    def _is_level(self, proposal: Any) -> float:
        if not 0.0 < proposal["value"] < 1.0:
            raise InputError(f"level is {proposal['value']}; it must be between 0 and 1")
        return proposal["value"]

    @traitlets.validate("budget")
    def _is_budget(self, proposal: Any) -> int:
        if proposal["value"] < 1:
            raise InputError(f"budget is {proposal['value']}; at least 1 token must be judged")
        return proposal["value"]

    @property
    def threshold(self) -> float:
        """log(1 / level): what log E is compared with."""
        return -math.log(self.level)

    @property
    def verdicts(self) -> dict[str, str]:
        """What became of each implementation, in words."""
        return {name: sentence_on(runner, self.detectable) for name, runner in self.runners.items()}

    # ---------------------------------------------------------------- points from outside

    def add(self, name: str, tokens: int, log_e: float) -> None:
        """One more point of a line. log_e: natural logarithm of the E-value. Raises `InputError` for fewer tokens than
        before, or a NaN.
        """
        runner = self._runner(name)
        if math.isnan(log_e):
            raise InputError(f"log_e of {name!r} is NaN; it must be a number, or infinite after an impossible token")
        if tokens < runner.tokens:
            raise InputError(f"{name!r} has {runner.tokens} tokens already and is given {tokens}; add points in order")
        runner.history.append((int(tokens), float(log_e)))
        if runner.decided_at is None and log_e >= self.threshold:
            runner.decided_at = int(tokens)
        self._refresh_now_and_then()

    def show(
        self, name: str, history: Iterable[tuple[int, float]], slots: pd.DataFrame | None = None, ended: bool = True
    ) -> None:
        """A whole line: (tokens, log E) in order; slots: columns slot, guided, tokens, log_e, best."""
        self.runners[name] = Runner(name)
        self._shown = monotonic()  # once for all points
        for tokens, log_e in history:
            self.add(name, tokens, log_e)
        runner = self._runner(name)
        runner.slots, runner.state = slots, "ended" if ended else "running"
        self.refresh()

    def follow(self, name: str, process: Any) -> None:
        """The line of an E-process as it stands."""
        runner = self._runner(name)
        runner.history = [point for point in process.history if point[0] < process.tokens]
        runner.history.append((process.tokens, process.log_e))
        runner.decided_at, runner.slots = process.decided_at, process.by_slot()
        self._refresh_now_and_then()

    def _runner(self, name: str) -> Runner:
        return self.runners.setdefault(name, Runner(name))

    # ---------------------------------------------------------------- running

    def _begin(self) -> Callable[[], None]:
        """All implementations anew."""
        if not self.implementations:
            raise InputError(NOTHING_TO_RUN)
        self.runners = {name: Runner(name) for name in self.implementations}
        self.refresh()
        return self._race

    def _race(self) -> None:
        going = {name: self._steps(name) for name in self.implementations}
        while going and not self.stopping:
            for name, steps in list(going.items()):
                if next(steps, None) is None:
                    del going[name]
                if self.stopping:
                    break
        for name in going:
            self.runners[name].state = "stopped"
            self.tell(f"{name}: {self.verdicts[name]}")
        self.refresh()

    def _steps(self, name: str) -> Iterator[bool]:
        """The steps of one implementation, until it is rejected, has had its budget, ends or fails."""
        runner = self.runners[name]
        try:
            for process in self.implementations[name]():
                self.follow(name, process)
                if process.decided_at is not None or process.tokens >= self.budget:
                    break
                yield True
            runner.state = "ended"
            self.tell(f"{name}: {self.verdicts[name]}")
        except Exception as error:
            runner.state, runner.error = "failed", told(error)
            self.say(f"{name}: {runner.error}")

    # ---------------------------------------------------------------- display

    @traitlets.observe("level", "budget")
    def _changed(self, _change: Any) -> None:
        if hasattr(self, "figure"):
            self.refresh()

    def refresh(self) -> None:
        """Show everything as it stands."""
        self._shown = monotonic()
        runners = list(self.runners.values())
        self._draw(e_race(_points(runners), self.level))
        lines = verdicts_html(runners, self.detectable) if runners else f"<p><em>{escape(EMPTY)}</em></p>"
        self.verdict_lines.value = f'<div style="{_INK}">{lines}</div>'
        shares = [1.0 if r.state != "running" else min(1.0, r.tokens / self.budget) for r in runners]
        self.progress.value = sum(shares) / len(shares) if shares else 0.0
        self._offer()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Whoever shows it sees all of it, points that came too fast to be drawn as well."""
        self.refresh()
        return super()._repr_mimebundle_(**options)

    def _refresh_now_and_then(self) -> None:
        if monotonic() - self._shown > _REFRESH_SECONDS:
            self.refresh()

    def _draw(self, figure: go.Figure) -> None:
        """Lines and threshold into the figure on the page."""
        with self.figure.batch_update():
            for old, new in zip(self.figure.data, figure.data, strict=False):
                old.update(x=new.x, y=new.y, customdata=new.customdata, name=new.name)
            self.figure.layout.shapes, self.figure.layout.annotations = figure.layout.shapes, figure.layout.annotations
        here, there = len(self.figure.data), len(figure.data)
        if there > here:
            self.figure.add_traces(figure.data[here:])
        elif there < here:
            self.figure.data = self.figure.data[:there]
        self.figure._repr_mimebundle_()  # plotly brings the state that a page is opened with up to date only when asked

    def _offer(self) -> None:
        """The implementations with a table of positions: the one with the most evidence, until another is chosen."""
        names = [name for name, runner in self.runners.items() if runner.slots is not None]
        self._offering = True
        if tuple(names) != tuple(self.chooser.options):
            self.chooser.options, self._follows = names, True
        if names and self._follows:
            self.chooser.value = max(names, key=lambda name: self.runners[name].log_e)
        self._offering = False
        self.chooser.layout.display = None if len(names) > 1 else "none"
        self._show_slots()

    def _chosen(self, _change: Any) -> None:
        if not self._offering:
            self._follows = False
            self._show_slots()

    def _show_slots(self) -> None:
        runner = self.runners.get(self.chooser.value)
        self.slot_table.value = f'<div style="{_INK}">{slots_html(runner)}</div>' if runner else ""

    def detectable(self, tokens: int) -> float | None:
        """The smallest total variation a token that so many tokens could have shown; None where torch is missing."""
        try:
            from specworkbench.equivalence.statistics import detectable_by_e_process
            from specworkbench.equivalence.statistics.e_process import PROCESSES
        except ModuleNotFoundError:
            return None
        return detectable_by_e_process(tokens, self.level, 0.5 / len(PROCESSES))

    def to_html(self) -> str:
        """Findings and tables of positions as HTML that needs neither scripts nor a kernel, for exports."""
        tables = [f"<h4>{escape(name)}</h4>{slots_html(r)}" for name, r in self.runners.items() if r.slots is not None]
        return self.message.value + self.verdict_lines.value + "".join(tables)


def _points(runners: Iterable[Runner]) -> pd.DataFrame:
    rows = [(runner.name, *point) for runner in runners for point in runner.history or [(0, 0.0)]]
    return pd.DataFrame(rows, columns=["name", "tokens", "log_e"])
