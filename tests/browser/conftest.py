"""One Chromium, one JupyterLab and one Voila for all tests here, on a copy of the notebooks."""

import json
import shutil

import pytest

from tests.browser.pages import WAIT_SECONDS, LabPage
from tests.browser.servers import REPOSITORY, chromium_options, find_chromium, jupyterlab, voila


@pytest.fixture(scope="session")
def chromium():
    """The system's Chromium; without one the tests are skipped."""
    try:
        return find_chromium()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def browser(chromium):
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra 'browser')")
    driver.expect.set_options(timeout=WAIT_SECONDS * 1000)
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=chromium_options())
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory):
    """A copy of the notebooks, in which the servers may write."""
    folder = tmp_path_factory.mktemp("notebooks") / "notebooks"
    shutil.copytree(REPOSITORY / "notebooks", folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return folder


@pytest.fixture(scope="session")
def lab(notebooks, tmp_path_factory):
    """JupyterLab's address."""
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed (the extra 'lab')")
    with jupyterlab(notebooks, tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="session")
def voila_address(notebooks, tmp_path_factory):
    pytest.importorskip("voila", reason="voila is not installed (the extra 'lab')")
    with voila(notebooks, tmp_path_factory.mktemp("voila")) as address:
        yield address


@pytest.fixture(scope="session")
def context(browser):
    """What all pages share: motion as for who asked for less of it, so that a picture is taken of what stays."""
    context = browser.new_context(reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture(scope="module")
def open_notebook(context, lab, notebooks):
    """`open_notebook("name.ipynb")`, or with its content to write first; open until the module's tests have run."""
    pages = []

    def open_(name, content=None):
        if content is not None:
            (notebooks / name).write_text(json.dumps(content), encoding="utf-8")
        pages.append(LabPage(context, lab, name))
        return pages[-1]

    yield open_
    for page in pages:
        page.close()
