"""Panels on pages of any width: what they say is read to its end, and figures have the page's ink."""

import pytest

from tests.browser.pages import THEMES, cells

pytestmark = pytest.mark.browser

LAB = """
from specworkbench.widgets import ProposerLab
from tests.widgets.traces import spoken

names = ["draft_model:/home/somebody/.cache/specworkbench/models/qwen2.5-coder-0.5b-instruct", "ngram"]
traces = {"none": spoken(proposer="none"), **{name: spoken() for name in names}}


def decode(asked, watch):
    watch.lanes.start(traces, 8)
    return traces


lab = ProposerLab(proposers=["ngram"], prompts=["code-01"], decode=decode)
lab.run_button.click()
lab.wait(60)
lab
"""
CUT = """() => [...document.querySelectorAll(".jp-OutputArea-output *")].filter((node) =>
  node.clientWidth && node.tagName !== "SELECT" && node.scrollWidth > node.clientWidth + 1
  && !node.closest(".swb-heard") && getComputedStyle(node).overflowX !== "visible")
  .map((node) => `${node.className}: ${node.innerText}`)"""
FAR = 4.5


@pytest.fixture(scope="module")
def lab_page(open_notebook):
    opened = open_notebook("widths.ipynb", cells(LAB))
    opened.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    opened.run()
    yield opened
    assert opened.faults() == []


@pytest.mark.parametrize("width", [640, 900, 1400])
@pytest.mark.parametrize("theme", THEMES)
def test_nothing_of_the_lab_is_cut_or_faint(lab_page, theme, width):
    lab_page.theme(theme)
    lab_page.look(width, whole=True)
    lab_page.picture(f"proposer-lab-{theme}-{width}")
    assert lab_page.page.evaluate(CUT) == [] and lab_page.cut_figures() == []
    assert lab_page.faint(FAR) == []


def test_in_print_the_ink_is_black(lab_page):
    lab_page.theme("dark")
    lab_page.page.emulate_media(media="print")
    fill = "(node) => getComputedStyle(node).fill"
    assert lab_page.page.locator(".js-plotly-plot .gtitle").first.evaluate(fill) == "rgb(0, 0, 0)"
    lab_page.page.emulate_media(media="screen")
