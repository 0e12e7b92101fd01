"""What the playground's tests share: where its files are, its traits as the browser has them, a harmful token."""

import json
from pathlib import Path

from specworkbench.widgets import overlap_playground

FOLDER = Path(overlap_playground.__file__).parent
SYNCED = ("tokens", "p", "q", "rule", "settings", "title", "start", "presets", "rules", "limits")
HARMFUL = "<script>alert(1)</script>"


def state_of(playground):
    """The traits as they travel to the browser."""
    state = playground.get_state()
    return json.loads(json.dumps({name: state[name] for name in SYNCED}))
