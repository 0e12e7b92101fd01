"""Drawings as pictures of their own, for pages that keep no inline SVG: dark ink on white, on any page and on paper."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import partial
from html import escape

INK, GROUND, FONT = "#222222", "#ffffff", "system-ui, sans-serif"
_DRAWING = re.compile(r'<svg [^>]*viewBox="(?P<box>[^"]*)"[^>]*aria-label="(?P<label>[^"]*)".*?</svg>', re.DOTALL)


def pictures(html: str, style: str = "", around: str = "swb") -> str:
    """The HTML with an `img` in place of every SVG with a `viewBox` and an `aria-label`; where a page drops the picture
    as well, its label stands there as text.

    style: rules that the drawings need; around: classes of what is around them, which the rules may name.

    >>> pictures('<svg viewBox="0 0 9 9" aria-label="a bar"><rect width="9" height="9"/></svg>')[:29]
    '<img alt="a bar" width="9" st'
    """
    return _DRAWING.sub(partial(_picture, style=style, around=around), html)


def _picture(drawing: re.Match, style: str, around: str) -> str:
    """The drawing within another one that brings ground, ink and style."""
    ink = f"svg {{color: {INK}; background: {GROUND}; font-family: {FONT};}} .swb-code {{font-family: monospace;}}"
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{drawing["box"]}" class="{around}">'
        f"<style>{escape(f'{style}{ink}', quote=False)}</style>{drawing[0]}</svg>"
    )
    source = f"data:image/svg+xml;base64,{b64encode(whole.encode()).decode()}"
    look = "display: block; max-width: 100%; height: auto"
    return f'<img alt="{drawing["label"]}" width="{drawing["box"].split()[2]}" style="{look}" src="{source}">'
