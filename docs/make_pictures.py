"""Takes the README's pictures, docs/explorer.png and docs/player.png: two widgets on the shipped traces, in JupyterLab.

python docs/make_pictures.py      (needs the extras lab and browser, and a Chromium: $CHROMIUM, or on the PATH)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from tests.browser.pages import LabPage, cells  # noqa: E402
from tests.browser.servers import chromium_options, find_chromium, jupyterlab  # noqa: E402

WIDTH, HEIGHT = 1300, 2400
BEGIN = """
from specworkbench.paths import traces_dir
from specworkbench.trace import load_trace
from specworkbench.widgets import RoundPlayer, Selection, explore

trace, plain = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart", "quickstart_plain"))
selection = Selection(trace)
"""
SHOWN = {
    "explorer": "explore(trace, top=6)",
    "player": "RoundPlayer(trace, plain=plain, selection=selection)",
}
"""The picture's name, and the last line of the cell whose output it shows."""


def main() -> None:
    """Run both cells in JupyterLab and keep what stands below each."""
    try:
        chromium = find_chromium()
    except FileNotFoundError as error:
        sys.exit(str(error))
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        notebooks, home = Path(folder, "notebooks"), Path(folder, "home")
        notebooks.mkdir()
        home.mkdir()
        (notebooks / "pictures.ipynb").write_text(json.dumps(cells(BEGIN, *SHOWN.values())), encoding="utf-8")
        with (
            jupyterlab(notebooks, home) as address,
            playwright.chromium.launch(executable_path=chromium, args=chromium_options()) as browser,
        ):
            context = browser.new_context(reduced_motion="reduce", viewport={"width": WIDTH, "height": HEIGHT})
            page = LabPage(context, address, "pictures.ipynb")
            page.run()
            page.still()
            for place, name in enumerate(SHOWN, start=1):
                output = page.page.locator(".jp-Cell").nth(place).locator(".jp-OutputArea-output").last
                output.screenshot(path=FOLDER / f"{name}.png")
                print(FOLDER / f"{name}.png")
            if troubles := page.faults():
                sys.exit("\n".join(troubles))


if __name__ == "__main__":
    main()
