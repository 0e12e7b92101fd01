"""A notebook open in a browser: run it, ask what went wrong, look at it in a theme and a width, keep a picture."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Page

SCREENSHOTS = Path(os.environ.get("SPECWORKBENCH_SCREENSHOTS") or Path(__file__).parents[2] / "build" / "screenshots")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTHS = {"wide": 1400, "narrow": 900}
HEIGHT = 900
TALLEST = 15_000
"""Pixels of the tallest picture; Chromium paints no more than 16,384."""

RUN_SECONDS = 300
WAIT_SECONDS = 60
NO_NETWORK = "Failed to load resource"
"""How Chromium begins to say that it could not fetch something, such as an icon; no script of ours says it."""

_CURRENT = "window.jupyterapp?.shell.currentWidget"
_READY = f"(path) => {_CURRENT}?.context?.path === path && {_CURRENT}.sessionContext.session?.kernel?.status === 'idle'"
_START = """() => {
  window.ran = null;
  window.jupyterapp.commands.execute("notebook:run-all-cells").then((all) => (window.ran = Boolean(all)));
}"""
_ENDED = f"() => window.ran !== null && {_CURRENT}.sessionContext.session.kernel.status === 'idle'"
_FAULTS = f"""() => {_CURRENT}.content.widgets.flatMap(({{ model }}, index) => {{
  if (model.type !== "code") return [];
  const errors = model.outputs.toJSON().filter((output) => output.output_type === "error");
  if (!errors.length && model.executionCount === null) return [`cell ${{index}} was not run`];
  return errors.map(({{ ename, evalue }}) => `cell ${{index}}: ${{ename}}: ${{evalue}}`);
}})"""
_PANEL = ".jp-WindowedPanel-outer:visible"
_STILL = """() => {
  const heights = [...document.querySelectorAll(".jp-Cell, .js-plotly-plot")].map((node) => node.offsetHeight).join();
  const same = heights === window.heightsBefore;
  window.heightsBefore = heights;
  return same;
}"""
_DRAWN = """() => {
  const page = document.querySelector("#rendered_cells");
  const later = page.querySelector("script[type='application/vnd.voila.cell-output+json']");
  const empty = [...page.querySelectorAll(".lm-Widget:empty:not(.jupyter-widgets)")];
  return page.checkVisibility() && !later && !page.textContent.includes("Loading widget")
    && empty.every((node) => node.style.height === "0px")
    && [...page.querySelectorAll(".js-plotly-plot")].every((figure) => figure.querySelector(".main-svg"));
}"""
_BROKEN_LINES = """() => [...document.querySelectorAll(".jp-RenderedText pre")].filter((node) => {
  const { lineHeight } = getComputedStyle(node);
  const lines = node.textContent.replace(/\\n$/, "").split("\\n").length;
  return node.offsetHeight > (lines + 0.5) * parseFloat(lineHeight);
}).map((node) => node.textContent)"""
_OPAQUE = """() => [...document.querySelectorAll(".js-plotly-plot .main-svg, .js-plotly-plot .bg")].filter((node) => {
  const { backgroundColor, fill, fillOpacity } = getComputedStyle(node);
  const [color, opacity] = node.matches(".bg") ? [fill, fillOpacity] : [backgroundColor, 1];
  return Number(opacity) > 0 && !/, 0\\)$/.test(color) && color !== "none";
}).map((node) => node.closest(".js-plotly-plot").querySelector(".gtitle")?.textContent ?? "a figure without a title")"""
_CUT = """() => [...document.querySelectorAll(".js-plotly-plot")].filter((node) => {
  const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
  const [seen, place] = [node.querySelector(".main-svg"), node.closest(".jp-OutputArea")];
  if (!seen) return false;
  const box = seen.getBoundingClientRect();
  const texts = [...node.querySelectorAll(".main-svg text")].map((text) => text.getBoundingClientRect());
  return !within(box, place.getBoundingClientRect()) || texts.some((text) => text.width && !within(text, box));
}).map((node) => node.querySelector(".gtitle")?.textContent ?? "a figure without a title")"""
_UNNAMED = """() => {
  const controls = ".jp-OutputArea-output :is(button, input, select, textarea, [role=slider], [role=option])";
  const named = (node) => node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") || node.title
    || node.textContent.trim() || [...(node.labels ?? [])].some((label) => label.textContent.trim());
  const unnamed = [...document.querySelectorAll(controls)].filter((node) => node.checkVisibility() && !named(node));
  const panel = (node) => node.parentElement.closest("[class*=widget-]")?.innerText;
  return unnamed.map((node) => `${node.tagName} ${node.className} in ${panel(node)}`);
}"""
_CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


class Watched:
    """A page, and all that its scripts complain about in `troubles`, such as a widget that cannot be drawn."""

    def __init__(self, context: BrowserContext):
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_SECONDS * 1000)
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(f"uncaught: {error}"))
        self.page.on("console", self._said)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(NO_NETWORK):
            self.troubles.append(f"console: {message.text}")

    def broken_widgets(self) -> list[str]:
        """What stands on the page in a widget's place: a failure to draw it, or a sentence that tells an error."""
        failed = self.page.get_by_text("Error displaying widget").or_(self.page.get_by_text("Error creating widget"))
        told = self.page.get_by_role("alert").filter(has_text=".")
        return [text for found in (failed, told) for text in found.all_inner_texts()]

    def faint(self, least: float) -> list[str]:
        """Texts of outputs whose contrast with what is behind them is below `least` (WCAG: 3 if large, else 4.5)."""
        return self.page.evaluate(_CONTRAST, least)

    def cut_figures(self) -> list[str]:
        """Titles of plotly's figures that are wider than their place, or have a text that is cut at their edge."""
        return self.page.evaluate(_CUT)

    def unnamed_controls(self) -> list[str]:
        """Controls that a screen reader has no name for."""
        return self.page.evaluate(_UNNAMED)

    def opaque_figures(self) -> list[str]:
        """Titles of plotly's figures that do not let the page's colour through."""
        return self.page.evaluate(_OPAQUE)

    def picture(self, name: str) -> None:
        """Keep what is seen as NAME.png in the folder of screenshots."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


class LabPage(Watched):
    """A notebook in JupyterLab."""

    def __init__(self, context: BrowserContext, address: str, path: str):
        super().__init__(context)
        self.page.goto(f"{address}/lab/tree/{path}?reset")
        self.page.wait_for_function(_READY, arg=path, timeout=2 * WAIT_SECONDS * 1000)
        self._wait_for_splash()

    def run(self, seconds: float = RUN_SECONDS) -> None:
        """Run all cells, and wait until the kernel is idle."""
        self.page.evaluate(_START)
        self.page.wait_for_function(_ENDED, timeout=seconds * 1000)

    def faults(self) -> list[str]:
        """All that went wrong so far: cells that raised or were not run, widgets that failed, complaints of scripts."""
        return [*self.page.evaluate(_FAULTS), *self.broken_widgets(), *self.troubles]

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme, "light" or "dark"."""
        choose = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        self.page.evaluate(choose, THEMES[name])
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeName === {json.dumps(THEMES[name])}")
        self._wait_for_splash()

    def _wait_for_splash(self) -> None:
        """Until JupyterLab's sign has gone, which covers the page while it starts or changes its theme."""
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def look(self, width: int, whole: bool = False) -> None:
        """The first screen at this width (pixels), or a window so tall that all of the notebook is seen."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        self.page.evaluate(f"() => {_CURRENT}.content.scrollToItem(0)")
        self.still()
        panel = self.page.locator(_PANEL).first
        for _ in range(3 if whole else 0):  # what was beyond the window had a height that was guessed only
            around = self.page.viewport_size["height"] - panel.evaluate("(node) => node.clientHeight")
            height = min(TALLEST, around + panel.evaluate("(node) => node.scrollHeight"))
            self.page.set_viewport_size({"width": width, "height": height})
            self.still()

    def still(self) -> None:
        """Wait until nothing changes its height any more."""
        self.page.wait_for_function(_STILL, polling=300)

    def close(self) -> None:
        """End the kernel and leave the page."""
        self.page.evaluate(f"() => {_CURRENT}.sessionContext.shutdown()")
        self.page.close()


class VoilaPage(Watched):
    """A notebook as Voila shows it, after its run; `theme`: "light" or "dark"."""

    def __init__(self, context: BrowserContext, address: str, name: str, theme: str):
        super().__init__(context)
        self.page.set_viewport_size({"width": WIDTHS["wide"], "height": HEIGHT})
        self.page.goto(f"{address}/voila/render/{name}?theme={theme}", timeout=RUN_SECONDS * 1000)
        self.page.wait_for_function(_DRAWN, timeout=RUN_SECONDS * 1000)
        self.page.wait_for_function(_STILL, polling=300)
        whole = self.page.locator("#rendered_cells").evaluate("(node) => node.scrollHeight")
        self.page.set_viewport_size({"width": WIDTHS["wide"], "height": min(TALLEST, max(HEIGHT, whole))})
        self.page.wait_for_function(_STILL, polling=300)

    def faults(self, forgiven: Collection[str] = ()) -> list[str]:
        """All that went wrong so far: cells that raised, warnings, widgets that failed, complaints of scripts."""
        said = self.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").all_inner_texts()
        return [*said, *self.broken_widgets(), *(trouble for trouble in self.troubles if trouble not in forgiven)]

    def broken_lines(self) -> list[str]:
        """Printed text with lines that are too long, and so are broken, within words."""
        return self.page.evaluate(_BROKEN_LINES)

    def close(self) -> None:
        """Leave the page, upon which Voila ends the kernel."""
        self.page.goto("about:blank")
        self.page.close()


def cells(*sources: str) -> dict[str, Any]:
    """A notebook of code cells, as it lies in a file."""
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    code = [empty | {"id": f"cell-{index}", "source": source} for index, source in enumerate(sources)]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
