"""Notebooks as pages without code: Voila shows them, and the strip works there."""

import pytest

from tests.browser.pages import RUN_SECONDS, Watched

pytestmark = pytest.mark.browser

PLOTLY_IN_VOILA = "uncaught: r.setData is not a function"
"""What plotly's own renderer says after it has drawn a figure in Voila, which has no place for the picture it keeps."""


@pytest.fixture(scope="module")
def shown(context, voila_address):
    """`shown("name")`: the notebook's page, with whatever it shows."""
    pages = []

    def show(name, theme="light"):
        watched = Watched(context)
        pages.append(watched.page)
        watched.page.goto(f"{voila_address}/voila/render/{name}.ipynb?theme={theme}", timeout=RUN_SECONDS * 1000)
        return watched

    yield show
    for page in pages:
        page.close()


@pytest.mark.parametrize(("name", "theme"), [("00_quickstart", "light"), ("index", "dark")])
def test_voila_shows_the_notebook_and_its_strip_answers_keys(shown, name, theme):
    watched = shown(name, theme)
    page = watched.page
    listbox = page.get_by_role("listbox").first
    listbox.wait_for(timeout=RUN_SECONDS * 1000)
    options = listbox.get_by_role("option")
    options.nth(2).click()
    assert options.nth(2).get_attribute("aria-selected") == "true"
    options.nth(2).press("Home")
    assert options.first.get_attribute("aria-selected") == "true"
    assert watched.broken_widgets() == [] and not set(watched.troubles) - {PLOTLY_IN_VOILA}
    assert page.locator(".js-plotly-plot .main-svg").count() >= (2 if name == "00_quickstart" else 0)
    watched.picture(f"voila-{name}-{theme}")
