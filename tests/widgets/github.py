"""What GitHub leaves of a notebook's HTML: text and tables, without styles, scripts and drawings."""

from __future__ import annotations

from typing import Any

import pytest

TAGS = set(
    "a abbr b bdo blockquote br caption cite code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5 h6"
    " hr i img ins kbd li mark ol p pre q rp rt ruby s samp small span strike strong sub summary sup table tbody td"
    " tfoot th thead time tr tt ul var wbr".split()
)
"""Elements that are kept; of any other only the content is, see `EMPTIED`."""

ATTRIBUTES = (
    "align alt aria-describedby aria-hidden aria-label aria-labelledby border colspan dir headers height href hspace"
    " label lang name open role rowspan rules scope span src start summary tabindex title type valign value width"
).split()
"""Neither `style` nor `class`: everything looks as GitHub's own style sheet says."""

EMPTIED = ("iframe", "math", "noscript", "script", "style", "svg")
"""Elements that go with all that is in them."""


def sanitised(html: str) -> str:
    """The HTML as GitHub shows it. Without the libraries that nbconvert brings, the test is skipped."""
    bleach = pytest.importorskip("bleach", reason="bleach is not installed (nbconvert brings it)")
    page = parsed(html)
    for element in page.find_all(EMPTIED):
        element.decompose()
    return bleach.clean(str(page), tags=TAGS, attributes={"*": ATTRIBUTES}, protocols={"http", "https"}, strip=True)


def read(html: str) -> str:
    """The text of HTML as one line."""
    return " ".join(parsed(html).get_text().split())


def parsed(html: str) -> Any:
    """The HTML as a `BeautifulSoup`."""
    soup = pytest.importorskip("bs4", reason="bs4 is not installed (nbconvert brings it)")
    return soup.BeautifulSoup(html, "html.parser")


def saved(shown: Any) -> dict[str, Any]:
    """What a notebook keeps of a displayed object, by MIME type."""
    shell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed").InteractiveShell
    data, _metadata = shell.instance().display_formatter.format(shown)
    return data
