"""Notebooks as they are left behind: saved, opened by someone who does not trust them, exported, printed."""

import json
import struct
from base64 import b64decode

import pytest

from tests.browser.pages import WIDTHS, cells
from tests.widgets.github import read, sanitised

pytestmark = pytest.mark.browser

FIGURE = """
from specworkbench import analysis, load_trace, plots
from specworkbench.paths import traces_dir
trace = load_trace(traces_dir() / "quickstart.trace")
plots.acceptance(analysis.acceptance_by_position(trace))
"""
EXPLORER = """
from specworkbench.widgets import SpeedupExplorer, explore
explorer = explore(trace, top=6)
explorer.selected = 2
explorer
"""
SPEEDUP = "SpeedupExplorer(alpha=0.7)"
LEAST_CONTRAST = 3.0
STRUCK = "(node) => getComputedStyle(node).textDecorationLine"


@pytest.fixture(scope="module")
def page(open_notebook):
    opened = open_notebook("saved.ipynb", cells(FIGURE, EXPLORER, SPEEDUP))
    opened.run()
    opened.look(WIDTHS["wide"], whole=True)
    return opened


@pytest.fixture(scope="module")
def content(page, notebooks):
    """The notebook's file once JupyterLab has saved it, without widget state as by default."""
    page.page.locator(".js-plotly-plot .main-svg").first.wait_for()
    page.still()
    page.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    content = json.loads((notebooks / "saved.ipynb").read_text(encoding="utf-8"))
    assert "widgets" not in content["metadata"]
    return content


def outputs(content):
    return [cell["outputs"][-1]["data"] for cell in content["cells"]]


def test_a_figure_is_saved_with_a_picture_for_pages_that_run_no_script(content):
    picture_of_it = b64decode(outputs(content)[0]["image/png"])
    width, height = struct.unpack(">II", picture_of_it[16:24])
    assert width > 300 and height > 200


def test_a_widget_is_saved_with_words_and_numbers(content):
    text = read(sanitised("".join(outputs(content)[1]["text/html"])))
    assert "round 0: ✓ # ✓ ·B ▸ ✗ y" in text and "so it was rejected" in text and "all others" in text


@pytest.fixture(scope="module")
def stranger(content, open_notebook):
    """The same file from someone else: JupyterLab runs nothing in it, and keeps of HTML what does no harm."""
    content["cells"][0]["source"] = "# not signed here"
    return open_notebook("stranger.ipynb", content)


def test_where_a_notebook_is_not_trusted_the_twin_stands_with_glyphs_and_pictures(stranger):
    area = stranger.page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
    struck = area.locator("s", has_text="y").first
    struck.wait_for()
    assert "line-through" in struck.evaluate(STRUCK)
    for glyph in ("✓", "✗", "↻", "○"):
        assert area.get_by_text(glyph).first.is_visible()
    widths = area.locator("img").evaluate_all("(nodes) => nodes.map((node) => node.naturalWidth)")
    assert len(widths) == 2 and min(widths) > 0
    assert area.get_by_role("table").is_visible()
    stranger.look(WIDTHS["wide"], whole=True)
    stranger.picture("saved-stranger")


def test_on_paper_a_dark_page_has_dark_ink(page):
    page.theme("dark")
    page.page.emulate_media(media="print")
    try:
        page.picture("saved-dark-on-paper")
        ink = page.page.locator(".swb-card svg text, .swb-explorer svg text").evaluate_all(
            "(nodes) => [...new Set(nodes.map((node) => getComputedStyle(node).fill))]"
        )
        assert set(ink) == {"rgb(34, 34, 34)"}
        assert page.faint(LEAST_CONTRAST) == []
    finally:
        page.page.emulate_media(media="screen")
        page.theme("light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_page_can_be_read_on_screen_and_on_paper(content, context, tmp_path, theme):
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed (the extra 'lab')")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.reads(json.dumps(content), as_version=4)
    html, _ = nbconvert.HTMLExporter(theme=theme).from_notebook_node(notebook)
    (tmp_path / "saved.html").write_text(html, encoding="utf-8")
    exported = context.new_page()
    exported.goto((tmp_path / "saved.html").as_uri(), wait_until="domcontentloaded")
    try:
        for media in ("screen", "print"):
            exported.emulate_media(media=media)
            assert exported.locator(".swb-twin").is_visible() and exported.locator(".swb-unstyled:visible").count() == 0
            widths = exported.locator("img").evaluate_all("(nodes) => nodes.map((node) => node.naturalWidth)")
            assert len(widths) == 1 + 2 + 3 and min(widths) > 0  # the figure, the inspector's and the explorer's
        ground = exported.locator(".swb-twin").evaluate("(node) => getComputedStyle(node).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
    finally:
        exported.close()
