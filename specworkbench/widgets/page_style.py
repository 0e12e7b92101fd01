"""What all style sheets of the widgets share: dark ink on white paper, and text for pages that keep no style sheet."""

from __future__ import annotations

from html import escape

_CONTROLS = ("color", "label-color", "readout-color", "input-color")
_ON_PAPER = {
    "--jp-ui-font-color0": "#000", "--jp-ui-font-color1": "#222", "--jp-ui-font-color2": "#555",
    "--jp-border-color1": "#888", "--jp-border-color2": "#bbb",
    "--jp-layout-color0": "#fff", "--jp-layout-color1": "#fff", "--jp-layout-color2": "#eee",
    **{f"--jp-widgets-{name}": "#222" for name in _CONTROLS}, "--jp-widgets-input-background-color": "#fff",
    "color": "#222", "background": "#fff", "print-color-adjust": "exact",
}  # fmt: skip
_ROOTS = ":is(.swb, .swb-card, .swb-explorer, .swb-maps, .swb-study, .swb-mended)"

PRINT = f"@media print {{{_ROOTS} {{{' '.join(f'{name}: {value};' for name, value in _ON_PAPER.items())}}}}}\n"
"""A dark page prints its light ink without its dark ground; within these classes ink is dark and the ground white."""

STYLE = ".swb-unstyled {display: none !important;}\n" + PRINT
"""To begin a style sheet with."""


def unstyled(text: str) -> str:
    """The text as HTML that is seen only where no style sheet is kept, and says what that would draw.

    >>> unstyled("✓ ")
    '<span class="swb-unstyled">✓ </span>'
    """
    return f'<span class="swb-unstyled">{escape(text)}</span>'
