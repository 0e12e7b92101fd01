"""The sliders of the speedup explorer, where they start and how its controls look."""

from __future__ import annotations

import ipywidgets as widgets

START = {"alpha": 0.7, "gamma": 4, "c": 0.1, "v": 0.05, "overhead": 0.0}
WIDE, STYLED = {"width": "min(25em, 98%)"}, {"description_width": "6em"}


def speedup_sliders(max_gamma: int) -> dict[str, widgets.Widget]:
    """A slider for each setting of the theory, by its name; gamma goes from 1 to `max_gamma`."""
    return {
        "alpha": _slider("alpha", 1.0, 0.01, "acceptance probability of an examined position"),
        "gamma": widgets.IntSlider(
            1, 1, max_gamma, description="gamma", tooltip="tokens proposed per round", layout=WIDE, style=STYLED
        ),
        "c": _slider("c", 1.0, 0.005, "the proposer's time per proposed token, in plain target steps"),
        "v": _slider("v", 1.0, 0.005, "v(n) = 1 + v (n − 1): what a further row costs, in target steps", "v a row"),
        "overhead": _slider("overhead", 1.0, 0.01, "the loop's own time per round, in plain target steps"),
    }


def _slider(name: str, high: float, step: float, words: str, shown: str = "") -> widgets.FloatSlider:
    return widgets.FloatSlider(
        START[name], min=0.0, max=high, step=step, description=shown or name, tooltip=words, layout=WIDE, style=STYLED,
        readout_format=".3f" if step < 0.01 else ".2f",
    )  # fmt: skip
