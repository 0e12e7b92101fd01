"""Tokens and numbers as people read them: whitespace made visible, quotes, sensible digits."""

from __future__ import annotations

import math
import unicodedata
from itertools import groupby

MARKS = {" ": "·", "\n": "⏎", "\t": "→", "\r": "␍"}
NAMES = {" ": "space", "\n": "newline", "\t": "tab", "\r": "carriage return"}
_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


def visible(text: str) -> str:
    """The text with every character to be seen: `·` space, `⏎` newline, `→` tab, others by their code point.

    Characters that would turn the text around, or hide in it, are named too. Not escaped for HTML.

    >>> visible(" x\\n")
    '·x⏎'
    """
    if not text:
        return "∅"
    shown = "".join(_shown(character) for character in text)
    return f"◌{shown}" if unicodedata.category(text[0]).startswith("M") else shown


def _shown(character: str) -> str:
    if character in MARKS:
        return MARKS[character]
    return f"⟨U+{ord(character):04X}⟩" if unicodedata.category(character) in _CATEGORIES else character


def spoken(text: str) -> str:
    """The visible text, or in words where it is nothing but marks that a screen reader passes over.

    >>> spoken("    "), spoken("\\n\\n"), spoken(" x")
    ('4 spaces', '2 newlines', '·x')
    """
    if not text or set(text) - set(NAMES):
        return visible(text)
    runs = [(NAMES[character], len(list(run))) for character, run in groupby(text)]
    return ", ".join(name if size == 1 else f"{size} {name}s" for name, size in runs)


def quoted(text: str) -> str:
    """The visible text in quotation marks, for a sentence."""
    return f"“{visible(text)}”"


def number(value: float, digits: int = 2) -> str:
    """A probability with at least `digits` significant digits, and never rounded to 0 or 1 when it is neither.

    >>> number(0.4137), number(0.00317), number(0.99996), number(1.0)
    ('0.41', '0.0032', '0.99996', '1')
    """
    if value is None or math.isnan(value):
        return "unknown"
    if value in (0.0, 1.0):
        return str(int(value))
    if 0 < value < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-")
    decimals = digits
    while decimals < 12 and (float(f"{value:.{decimals}f}") in (0.0, 1.0) or value < 10 ** (1 - decimals)):
        decimals += 1
    return f"{value:.{decimals}f}"


def distinct(first: float, second: float) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart (as they are, when they are equal)."""
    digits = 2
    while first != second and digits < 15 and number(first, digits) == number(second, digits):
        digits += 1
    return number(first, digits), number(second, digits)
