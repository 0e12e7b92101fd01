"""The drawings of a static twin, out of the pictures that they travel in."""

from __future__ import annotations

import re
from base64 import b64decode

_PICTURE = re.compile(r'<img alt="[^"]+"[^>]* src="data:image/svg\+xml;base64,([^"]+)">')


def unpacked(html: str) -> str:
    """The HTML with the SVG itself in place of every picture."""
    return _PICTURE.sub(_drawing, html)


def _drawing(picture: re.Match) -> str:
    return b64decode(picture[1]).decode().partition("</style>")[2].removesuffix("</svg>")
