"""What the other tests here rely on is able to fail: a page helper that is shown what is broken says so."""

import json

import pytest

from tests.browser.pages import THEMES, WIDTHS, VoilaPage, cells

pytestmark = pytest.mark.browser

WIDGET = """
import anywidget

class Broken(anywidget.AnyWidget):
    _esm = "export default { render() { throw new Error('this widget is broken'); } };"

Broken()
"""
PALE = """
from IPython.display import HTML
HTML('<p style="color: #eee; background: #fff">hardly seen</p><p style="color: #000; background: #fff">well seen</p>')
"""
OPAQUE = """
import plotly.graph_objects as go
go.Figure(layout={"title": {"text": "white"}, "paper_bgcolor": "white"})
"""
WIDE = """
clear = "rgba(0, 0, 0, 0)"
go.Figure(layout={"title": {"text": "too wide"}, "width": 3000, "paper_bgcolor": clear, "plot_bgcolor": clear})
"""
CUT = """
bar = go.Bar(x=[1], y=["a name that is longer than the margin"], orientation="h")
cut = go.Figure(bar, {"title": {"text": "cut"}, "paper_bgcolor": clear, "plot_bgcolor": clear})
cut.update_yaxes(automargin=False)
"""
UNNAMED = "import ipywidgets\nipywidgets.FloatSlider(description='no name for its handle')"
SENTENCE = "from specworkbench.widgets import explore\nexplore('nowhere.trace')"


@pytest.fixture(scope="module")
def broken(open_notebook):
    page = open_notebook("broken.ipynb", cells(WIDGET, PALE, OPAQUE, WIDE, UNNAMED, SENTENCE, CUT, "1 / 0", "1 + 1"))
    page.run()
    page.look(WIDTHS["wide"], whole=True)
    page.page.get_by_text("this widget is broken").first.or_(page.page.get_by_text("hardly seen")).first.wait_for()
    return page


@pytest.mark.parametrize(
    "fault",
    ["cell 7: ZeroDivisionError", "cell 8 was not run", "this widget is broken", "nowhere.trace"],
    ids=["a cell that raises", "a cell that was not run", "a script that throws", "a sentence in a widget"],
)
def test_what_went_wrong_is_reported(broken, fault):
    assert any(fault in found for found in broken.faults())


def test_text_that_can_hardly_be_read_is_reported_and_no_other(broken):
    faint = broken.faint(3.0)
    assert any("hardly seen" in text for text in faint) and not any("well seen" in text for text in faint)


def test_a_figure_with_a_ground_of_its_own_is_reported(broken):
    assert set(broken.opaque_figures()) == {"white"}


def test_a_figure_wider_than_its_place_or_with_a_text_that_is_cut_is_reported(broken):
    assert broken.cut_figures() == ["too wide", "cut"]


def test_a_control_without_a_name_is_reported(broken):
    assert len(broken.unnamed_controls()) == 1


def test_the_theme_changes_the_page(broken):
    ground = "() => getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')"
    seen = set()
    for theme in THEMES:
        broken.theme(theme)
        seen.add(broken.page.evaluate(ground))
    assert len(seen) == len(THEMES)


def test_a_notebook_without_faults_has_none(open_notebook):
    page = open_notebook("sound.ipynb", cells("1 + 1"))
    page.run()
    assert page.faults() == [] and page.faint(3.0) == [] and page.opaque_figures() == []


def test_what_went_wrong_on_a_page_of_voila_is_reported(context, voila_address, notebooks):
    content = cells(PALE, OPAQUE, 'print("short")', 'print(100 * "long ")', "1 / 0", "1 + 1")
    (notebooks / "voila.ipynb").write_text(json.dumps(content), encoding="utf-8")
    page = VoilaPage(context, voila_address, "voila.ipynb", "light")
    assert any("error when executing cell" in fault for fault in page.faults())
    assert [line.split()[0] for line in page.broken_lines()] == ["long"]
    assert any("hardly seen" in text for text in page.faint(3.0)) and set(page.opaque_figures()) == {"white"}
    page.close()
