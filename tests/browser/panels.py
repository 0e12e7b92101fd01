"""A notebook with one panel a cell, every widget and the static twins."""

from __future__ import annotations

from typing import Any

from tests.browser.pages import cells

_START = """
import pandas as pd
from IPython.display import HTML
from specworkbench import load_trace
from specworkbench.paths import claims_dir, traces_dir
from specworkbench.widgets import *

trace, plain = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart", "quickstart_plain"))
study = claims_dir() / "embedded" / "temperature"
"""
_RACE = """
race = EquivalenceRace({"sound": list})
columns = ["slot", "guided", "tokens", "log_e", "best"]
slots = pd.DataFrame([[1, True, 40, 0.5, "hot"], [2, False, 60, 1.0, "cold"]], columns=columns)
for name, log_e in {"sound": -1.0, "faulty": 9.0}.items():
    race.show(name, [(0, 0.0), (100, log_e)], slots)
race
"""
_TWINS = """
twins = [
    TokenStrip.of(trace, selected=3), explore(trace), Inspector(trace, selected=2), RoundPlayer(trace, plain=plain),
    OverlapPlayground(title="a title"), SpeedupExplorer.of(trace), AcceptanceMap(trace), race, ProposerLab(),
]
HTML("".join(widget.to_html() for widget in twins))
"""

PANELS = {
    "TokenStrip": "TokenStrip.of(trace, selected=3)",
    "Inspector": "Inspector(trace, selected=2)",
    "explore": "explore(trace)",
    "RoundPlayer": "RoundPlayer(trace, plain=plain)",
    "OverlapPlayground": "OverlapPlayground(title='a title')",
    "SpeedupExplorer": "SpeedupExplorer.of(trace, predict=True)",
    "ProposerLab": "ProposerLab(proposers=['ngram'], prompts=['code-01'])",
    "EquivalenceRace": _RACE,
    "StudyBrowser": "StudyBrowser(study)",
    "AcceptanceMap": "AcceptanceMap(trace)",
    "ClaimsBoard": "ClaimsBoard(claims_dir() / 'embedded')",
    "LiveDecode": "LiveDecode()",
    "static twins": _TWINS,
    "an error": "explore('nowhere.trace')",
}
"""By name, what a cell shows."""


def panels_notebook() -> dict[str, Any]:
    """The notebook, as it lies in a file."""
    return cells(_START, *PANELS.values())


def output_of(name: str) -> str:
    """A selector of the output that a panel lies in."""
    cell = list(PANELS).index(name) + 2
    return f".jp-WindowedPanel-viewport > :nth-child({cell} of .jp-CodeCell) .jp-OutputArea-output"
