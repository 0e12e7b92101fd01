"""Every notebook in JupyterLab: it runs, nothing complains, and it can be read in both themes and two widths."""

import pytest

from tests.browser.pages import HEIGHT, THEMES, WIDTHS, LabPage
from tests.browser.servers import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
LEAST_CONTRAST = 3.0

pytestmark = pytest.mark.browser


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem, scope="module")
def notebook(request, context, lab):
    """The notebook's name, and its page after a run; one kernel at a time."""
    page = LabPage(context, lab, request.param.name)
    page.run()
    yield request.param.stem, page
    page.close()


def test_all_cells_run_and_nothing_complains(notebook):
    _, page = notebook
    page.look(WIDTHS["wide"], whole=True)  # a widget that is not seen is not drawn
    assert page.faults() == []


def test_every_control_has_a_name(notebook):
    _, page = notebook
    page.look(WIDTHS["wide"], whole=True)
    assert page.unnamed_controls() == []


def test_the_first_screen_has_words_and_a_picture(notebook):
    _, page = notebook
    page.look(WIDTHS["wide"])
    assert page.page.get_by_role("heading", level=1).first.is_visible()
    output = page.page.locator(".jp-OutputArea-output:visible").first.bounding_box()
    assert output["y"] + min(100, output["height"]) < HEIGHT


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_it_can_be_read(notebook, theme, width):
    name, page = notebook
    page.theme(theme)
    page.look(WIDTHS[width])
    page.picture(f"{name}-{theme}-{width}-first")
    page.look(WIDTHS[width], whole=True)
    page.picture(f"{name}-{theme}-{width}-whole")
    assert page.faint(LEAST_CONTRAST) == []
    assert page.opaque_figures() == [] and page.cut_figures() == []
