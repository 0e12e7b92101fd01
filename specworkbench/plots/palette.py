"""Colours and glyphs of the workbench: one meaning each, in plots and widgets alike.

The eight colours are those of Okabe and Ito (2008), which people with any colour vision can tell apart; a glyph stands
beside every colour, so that none carries a meaning alone.
"""

from __future__ import annotations

from dataclasses import dataclass

OKABE_ITO = {
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#8C8C8C",
}

TARGET = OKABE_ITO["blue"]
DRAFT = OKABE_ITO["orange"]
OVERLAP = OKABE_ITO["green"]
RESIDUAL = OKABE_ITO["purple"]
FOCUS = f"var(--jp-brand-color1, {OKABE_ITO['blue']})"
_FOCUSED = ".swb :focus-visible {outline: 3px solid var(--swb-focus); outline-offset: 1px;}\n"


@dataclass(frozen=True)
class Mark:
    """How an outcome looks: a colour, a glyph, and the sentence that a legend says of it."""

    color: str
    glyph: str
    meaning: str


OUTCOMES = {
    "accepted": Mark(OKABE_ITO["green"], "✓", "proposed, and kept by the rule"),
    "rejected": Mark(OKABE_ITO["vermillion"], "✗", "proposed, examined, and refused"),
    "discarded": Mark(OKABE_ITO["grey"], "○", "proposed beyond the rejected position, never examined"),
    "corrected": Mark(OKABE_ITO["purple"], "↻", "drawn from the residual in place of the rejected one"),
    "bonus": Mark(OKABE_ITO["yellow"], "★", "drawn from the target after every guess was accepted"),
    "plain": Mark(OKABE_ITO["sky"], "–", "drawn from the target in a round without a proposal"),
}
"""By the outcome's name in a trace. A kept guess has the colour of the overlap that it comes from, a corrected token
that of the residual."""

CUT = Mark(OKABE_ITO["grey"], "✂", "never reached the output: the sequence had ended before it")

VERDICTS = {
    "holds here": Mark(OKABE_ITO["green"], "✓", "the interval lies inside the region that the claim says"),
    "does not hold here": Mark(OKABE_ITO["vermillion"], "✗", "the interval lies outside it"),
    "not decidable here": Mark(OKABE_ITO["grey"], "○", "the interval reaches across its edge"),
    "not measured yet": Mark(OKABE_ITO["sky"], "–", "its study has not been run"),
}
"""What may become of a claim, by the words of its verdict."""

PHASES = {
    "propose": OKABE_ITO["orange"],
    "verify": OKABE_ITO["blue"],
    "accept": OKABE_ITO["green"],
    "rollback": OKABE_ITO["purple"],
    "other": OKABE_ITO["grey"],
}
PHASE_PATTERNS = {"propose": "/", "verify": "", "accept": ".", "rollback": "\\", "other": "x"}

SEQUENTIAL = "Viridis"
"""Plotly's name of the scale for shares from low to high: its lightness rises evenly, so that people with any colour
vision read it and print keeps it; no shade of it is grey, which means few observations."""

SERIES = tuple(OKABE_ITO[name] for name in ("blue", "vermillion", "green", "purple", "sky", "orange"))
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star")
"""Colour and marker of the first, second, ... series of a figure; one marker more, so that a pair comes again late."""


def css_variables() -> str:
    """The palette as CSS custom properties (`--swb-accepted`, `--swb-target`, ...) on the class `swb`, and the look of
    what has the keyboard's focus within it, in the colour `--swb-focus`.
    """
    colors = {name: mark.color for name, mark in OUTCOMES.items()}
    colors |= {"target": TARGET, "draft": DRAFT, "overlap": OVERLAP, "residual": RESIDUAL, "focus": FOCUS}
    return ".swb {" + " ".join(f"--swb-{name}: {color};" for name, color in colors.items()) + "}\n" + _FOCUSED


def translucent(color: str, opacity: float) -> str:
    """'#RRGGBB' as 'rgba(r, g, b, opacity)'."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
