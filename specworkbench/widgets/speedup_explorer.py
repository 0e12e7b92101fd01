"""`SpeedupExplorer`: the speedup's formula under sliders, with measured points that stay while the theory moves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets
import pandas as pd
import plotly.graph_objects as go
import traitlets

from specworkbench.errors import InputError
from specworkbench.plots import speedup_slice, speedup_surface
from specworkbench.theory.costs import verify_cost_at
from specworkbench.trace import Trace
from specworkbench.widgets.explorer import sentence_html, sentence_of
from specworkbench.widgets.page_repairs import PageRepairs
from specworkbench.widgets.speedup_figures import STYLE, View, figures_html
from specworkbench.widgets.speedup_tables import (
    COLUMNS,
    QUANTITIES,
    Costs,
    level_table,
    points_table,
    recorded,
    slice_table,
    surface_table,
)
from specworkbench.widgets.speedup_words import EMPTY, beside_theory, headline, revealed

START = {"alpha": 0.7, "gamma": 4, "c": 0.1, "v": 0.05, "overhead": 0.0}
LIMITS = {"alpha": (0.0, 1.0), "c": (0.0, 5.0), "v": (0.0, 5.0), "overhead": (0.0, 10.0)}
"""What may be set; the sliders reach as far as is usual, and further where a measured point is."""

_MEASURED_V, _LINEAR_V = "as measured", "v(n) = 1 + v (n − 1)"
_WIDE, _STYLE = {"width": "min(25em, 98%)"}, {"description_width": "6em"}


class SpeedupExplorer(widgets.VBox):
    """E[N] / (gamma c + v(gamma + 1) + overhead) over alpha and gamma, its slices, and what was measured.

    points: rows as `analysis.compare` makes them, or a table (see `speedup_tables.points_table`). verify_costs: a
    measured table v(1), v(2), .., to be used in place of v(n) = 1 + v (n - 1); gamma then goes as far as it does.
    `alpha`, `gamma`, `c`, `v`, `overhead` (target steps) and `quantity` ("speedup" or "tokens") may be read, set and
    observed; so may `chosen`, a point's index or -1, whose values the sliders take. With `predict` what was measured is
    hidden until `reveal()`, and `guess` is compared with it. What is no table of points is told as a sentence.

    >>> explorer = SpeedupExplorer(alpha=0.8, gamma=4, c=0.1)
    >>> explorer.gamma = 6
    >>> explorer.alpha, explorer.gamma
    (0.8, 6)
    """

    alpha = traitlets.Float(START["alpha"])
    gamma = traitlets.Int(START["gamma"])
    c = traitlets.Float(START["c"])
    v = traitlets.Float(START["v"])
    overhead = traitlets.Float(START["overhead"])
    quantity = traitlets.Enum(tuple(QUANTITIES), "speedup")
    measured_v = traitlets.Bool(False)
    chosen = traitlets.Int(-1)
    predict = traitlets.Bool(False)
    guess = traitlets.Float(1.0)

    def __init__(
        self,
        points: pd.DataFrame | list[dict] | None = None,
        *,
        verify_costs: Sequence[float] | None = None,
        max_gamma: int = 16,
        **traits: Any,
    ):
        self._ready, self._revealed = False, set()
        self.points, self.table = points_table(None), None
        if verify_costs is not None:
            self.table = tuple(verify_cost_at(verify_costs, range(1, len(verify_costs) + 1)).tolist())
            max_gamma = min(max_gamma, len(self.table) - 1)
            traits.setdefault("measured_v", True)
        if max_gamma < 1:
            raise InputError(f"max_gamma is {max_gamma}; the surface needs a gamma of at least 1, and v(2) for it")
        self.max_gamma = max_gamma
        traits.setdefault("gamma", min(START["gamma"], max_gamma))
        self._make_controls()
        parts = [self.message, self.controls, self.headline, self.figures, self.point_row, self.verdict, PageRepairs()]
        super().__init__(parts, **traits)
        self._connect()
        self._ready = True
        self.show(points)

    @classmethod
    def of(cls, trace: Trace, **traits: Any) -> SpeedupExplorer:
        """A recorded run: a point for each bucket, with its tokens per round, and the sliders where the run was.

        What the run does not tell stays where it was: its speedup, and without a plain round the costs.

        >>> from specworkbench import load_trace
        >>> from specworkbench.paths import traces_dir
        >>> explorer = SpeedupExplorer.of(load_trace(traces_dir() / "quickstart.trace"), quantity="tokens")
        >>> list(explorer.points["label"])
        ['code', 'prose', 'structured']
        """
        points, at = recorded(trace)
        return cls(points, **at | traits)

    def _make_controls(self) -> None:
        def slider(name: str, high: float, step: float, words: str) -> widgets.FloatSlider:
            return widgets.FloatSlider(
                START[name], min=0.0, max=high, step=step, description=name, tooltip=words, layout=_WIDE,
                style=_STYLE, readout_format=".3f" if step < 0.01 else ".2f",
            )  # fmt: skip

        self.sliders = {
            "alpha": slider("alpha", 1.0, 0.01, "acceptance probability of an examined position"),
            "gamma": widgets.IntSlider(
                1, 1, self.max_gamma, description="gamma", tooltip="tokens proposed per round",
                layout=_WIDE, style=_STYLE,
            ),
            "c": slider("c", 1.0, 0.005, "the proposer's time per proposed token, in plain target steps"),
            "v": slider("v", 1.0, 0.005, "what a further row of the target costs, in plain target steps"),
            "overhead": slider("overhead", 1.0, 0.01, "the loop's own time per round, in plain target steps"),
        }  # fmt: skip
        options = [(_LINEAR_V, False)] + ([(_MEASURED_V, True)] if self.table else [])
        self.v_source = widgets.Dropdown(options=options, description="v(n)", layout=_WIDE, style=_STYLE)
        self.v_source.layout.display = None if self.table else "none"
        shown = [(name, key) for key, name in QUANTITIES.items()]
        self.quantity_choice = widgets.Dropdown(options=shown, description="show", layout=_WIDE, style=_STYLE)
        self.controls = widgets.Box(
            [*self.sliders.values(), self.v_source, self.quantity_choice], layout={"flex_flow": "row wrap"}
        )
        self.point_choice = widgets.Dropdown(description="measured", layout={"width": "min(34em, 98%)"}, style=_STYLE)
        self.snap_button = widgets.Button(description="Snap to it", tooltip="the sliders take the point's values")
        self.predict_box = widgets.Checkbox(False, description="predict, then reveal", indent=False)
        self.guess_slider = widgets.FloatSlider(
            1.0, min=0.0, max=8.0, step=0.05, description="your guess", layout=_WIDE, style=_STYLE
        )
        self.reveal_button = widgets.Button(description="Reveal", button_style="primary")
        self.point_row = widgets.Box(
            [self.point_choice, self.snap_button, self.predict_box, self.guess_slider, self.reveal_button],
            layout={"flex_flow": "row wrap", "align_items": "center"},
        )
        self.message, self.headline, self.figures, self.verdict = (widgets.HTML() for _ in range(4))

    def _connect(self) -> None:
        for name, slider in self.sliders.items():
            self._reach(name)
            traitlets.dlink((self, name), (slider, "value"))
            slider.observe(partial(self._slid, name), "value")
        traitlets.link((self, "quantity"), (self.quantity_choice, "value"))
        traitlets.link((self, "measured_v"), (self.v_source, "value"))
        traitlets.link((self, "predict"), (self.predict_box, "value"))
        traitlets.link((self, "guess"), (self.guess_slider, "value"))
        self.point_choice.observe(self._picked, "value")
        self.snap_button.on_click(lambda _button: self.snap(self.chosen))
        self.reveal_button.on_click(lambda _button: self.reveal())

    def show(self, points: pd.DataFrame | list[dict] | None) -> None:
        """Show other measured points; a table that cannot be read is told as a sentence, and none are shown."""
        self.say("")
        try:
            self.points = points_table(points)
        except InputError as error:
            self.points = points_table(None)
            self.say(sentence_of(error))
        self._revealed, self.chosen = set(), -1
        self.point_choice.unobserve(self._picked, "value")
        labels = [(label, index) for index, label in enumerate(self.points["label"])]
        self.point_choice.options = [("choose a point", -1), *labels]
        self.point_choice.value = -1
        self.point_choice.observe(self._picked, "value")
        self.point_row.layout.display = None if labels else "none"
        self.refresh()

    def say(self, text: str) -> None:
        """A sentence that stands out; empty for none."""
        self.message.value = sentence_html(text)

    def snap(self, index: int) -> None:
        """The sliders take a point's values, as far as it has them (none: -1). Raises `InputError` for no point."""
        if index == -1:
            return
        if not 0 <= index < len(self.points):
            raise InputError(f"there is no point {index}; there are {len(self.points)}, counted from 0")
        point = self.points.iloc[index]
        gamma = int(point["gamma"])
        values = {"alpha": point["alpha"], "gamma": gamma, "c": point["c"], "overhead": point["overhead"]}
        values["v"] = max(0.0, (point["verify_cost"] - 1.0) / gamma)
        if gamma > self.max_gamma:
            self.say(f"The point has gamma = {gamma}, beyond the {self.max_gamma} shown; give max_gamma={gamma}.")
            return
        with self.hold_trait_notifications():
            for name, value in values.items():
                if pd.notna(value):
                    setattr(self, name, value)
            self.chosen = index
            self.measured_v = self.measured_v and pd.isna(values["v"])

    def reveal(self) -> None:
        """Show what was measured at the chosen point, and how far `guess` was off."""
        if self.chosen >= 0:
            self._revealed.add((self.chosen, self.quantity))
            self.refresh()

    @property
    def costs(self) -> Costs:
        """The costs where the sliders stand."""
        return Costs(self.c, self.v, self.overhead, self.table if self.measured_v else None)

    @property
    def speedup(self) -> float:
        """The theory's speedup where the sliders stand."""
        return float(self.costs.speedup(self.alpha, self.gamma))

    @traitlets.validate("alpha", "c", "v", "overhead")
    def _is_within(self, proposal: Any) -> float:
        name, value = proposal["trait"].name, proposal["value"]
        low, high = LIMITS[name]
        if not low <= value <= high:
            raise InputError(f"{name} is {value:g}; it must be from {low:g} to {high:g}")
        return value

    @traitlets.validate("gamma")
    def _is_gamma(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= self.max_gamma:
            raise InputError(f"gamma is {proposal['value']}; it must be from 1 to {self.max_gamma} (see max_gamma)")
        return proposal["value"]

    @traitlets.validate("measured_v")
    def _has_table(self, proposal: Any) -> bool:
        if proposal["value"] and self.table is None:
            raise InputError("measured_v is set without a measured table; give verify_costs=[v(1), v(2), ...]")
        return proposal["value"]

    @traitlets.observe("alpha", "c", "v", "overhead")
    def _moved(self, change: Any) -> None:
        self._reach(change["name"])

    @traitlets.observe("alpha", "gamma", "c", "v", "overhead", "quantity", "measured_v", "chosen", "guess")
    def _changed(self, _change: Any) -> None:
        if self._ready:
            self.refresh()

    def _slid(self, name: str, change: Any) -> None:
        """Take what a slider was moved to. A browser that is to show a value between two steps moves it to the next."""
        rounded = abs(change["new"] - change["old"]) <= change["owner"].step / 2
        if not rounded or change["old"] != getattr(self, name):
            setattr(self, name, change["new"])

    @traitlets.observe("predict")
    def _hide_again(self, _change: Any) -> None:
        if self._ready:
            self._revealed = set()
            self.refresh()

    def _reach(self, name: str) -> None:
        """Let the slider go as far as its value."""
        if name in self.sliders:
            self.sliders[name].max = max(self.sliders[name].max, getattr(self, name))

    def _picked(self, change: Any) -> None:
        if change["new"] is not None and change["new"] >= 0:
            self.snap(change["new"])
        else:
            self.chosen = -1

    # ---------------------------------------------------------------- display

    @property
    def view(self) -> View:
        """All that the figures show; with `predict`, only the points that were revealed."""
        shown = {index for index, quantity in self._revealed if quantity == self.quantity}
        points = self.points[self.points.index.isin(shown)] if self.predict else self.points
        guess = self.guess if self.predict and self.chosen >= 0 else None
        return View(self.quantity, self.alpha, self.gamma, self.max_gamma, self.costs, points, self.chosen, guess)

    def refresh(self) -> None:
        """Show everything as it stands."""
        view = self.view
        hidden = self.chosen >= 0 and self.chosen not in view.points.index
        self.sliders["v"].disabled = self.measured_v
        self.snap_button.disabled = self.chosen < 0
        for control in (self.guess_slider, self.reveal_button):
            control.layout.display = None if self.predict else "none"
            control.disabled = not hidden
        self.point_choice.value = self.chosen
        self.headline.value = STYLE + _block(_sentence(headline(view)))
        self.figures.value = _block(figures_html(view))
        self.verdict.value = _block(_sentence(self._verdict(view)))

    def _verdict(self, view: View) -> str:
        if self.points.empty:
            return EMPTY
        if self.chosen < 0:
            return "Choose a measured point, and the sliders take its values; then see how far the theory is off."
        point = self.points.loc[self.chosen]
        if self.chosen not in view.points.index:
            return f"{point['label']}: what was measured is hidden. Move your guess, then press Reveal."
        if self.predict and not pd.isna(point[COLUMNS[self.quantity][0]]):
            return revealed(point, self.guess, view)
        return beside_theory(point, view)

    def figure(self, name: str = "surface", **options: Any) -> go.Figure:
        """One of the pictures as a figure of plotly, for print and hovering: "surface", "gamma" or "alpha" (slices).

        options: of `plots.speedup_surface` or `plots.speedup_slice`, such as title and template.
        """
        view, (measured, low, high) = self.view, COLUMNS[self.quantity]
        points = view.points.rename(columns={measured: "measured", low: "low", high: "high"}).dropna(subset="measured")
        options = {"name": QUANTITIES[self.quantity]} | options
        if name == "surface":
            cells, lines = (of(view.costs, view.quantity, view.max_gamma) for of in (surface_table, level_table))
            return speedup_surface(cells, lines, points, **options)
        if name not in ("gamma", "alpha"):
            raise InputError(f"there is no figure {name!r}; choose surface, gamma or alpha")
        line = slice_table(
            view.costs, view.quantity, over=name, alpha=self.alpha, gamma=self.gamma, max_gamma=self.max_gamma
        )
        return speedup_slice(line, points.assign(x=points[name]), over=name, **options)

    def to_html(self) -> str:
        """What is shown, as HTML that needs neither scripts nor a kernel, for exports."""
        return self.message.value + self.headline.value + self.figures.value + self.verdict.value

    def _repr_html_(self) -> str:
        return self.to_html()


def _block(html: str) -> str:
    return f'<div class="swb-explorer">{html}</div>'


def _sentence(text: str) -> str:
    return f'<p aria-live="polite">{escape(text)}</p>'
