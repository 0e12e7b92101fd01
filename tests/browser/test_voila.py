"""The course as pages without code: Voila runs every notebook, nothing complains, and its widgets answer."""

from itertools import cycle

import pytest

from tests.browser.pages import THEMES, VoilaPage
from tests.browser.servers import REPOSITORY

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
SHOWN = list(zip(NOTEBOOKS, cycle(THEMES), strict=False))  # Voila runs a notebook anew for another theme
LEAST_CONTRAST = 3.0

PLOTLY_IN_VOILA = "uncaught: r.setData is not a function"
"""What plotly's renderer says for each figure outside a widget, once it has been drawn and nothing is missing.

plotly (7.1) then makes a picture of it, to show where a browser takes its WebGL away, and keeps that with the model's
`setData`. JupyterLab gives a renderer a model that has it. Voila (0.5.13, plugin render-outputs) gives it the output
as it came from the kernel, a plain object. No mime type, option or setting of ours keeps plotly's renderer out of it:
`--progressive_rendering` has such models, but leaves figures undrawn.
"""


@pytest.fixture(params=SHOWN, ids=lambda shown: f"{shown[0].stem}-{shown[1]}", scope="module")
def shown(request, context, voila_address):
    """The notebook's name, and its page after a run; one kernel at a time."""
    notebook, theme = request.param
    page = VoilaPage(context, voila_address, notebook.name, theme)
    page.picture(f"voila-{notebook.stem}-{theme}")
    yield notebook.stem, page
    page.close()


def test_everything_is_drawn_and_nothing_complains(shown):
    name, watched = shown
    page = watched.page
    assert watched.faults(forgiven={PLOTLY_IN_VOILA}) == []
    assert page.get_by_role("heading", level=1).first.is_visible()
    assert page.locator(".jp-InputArea-editor").count() == 0  # no code
    formulas, written = page.locator("mjx-container"), page.locator(".jp-MarkdownOutput")
    assert formulas.count() > 0 or not any("$$" in text for text in written.all_text_contents()), name


def test_it_can_be_read(shown):
    _, watched = shown
    assert watched.faint(LEAST_CONTRAST) == [] and watched.broken_lines() == []
    assert watched.opaque_figures() == [] and watched.cut_figures() == []


def test_links_lead_to_pages_of_voila_and_answers_open(shown, voila_address):
    _, watched = shown
    links = watched.page.locator("a[href*='.ipynb']").evaluate_all("(all) => all.map((link) => link.href)")
    assert set(links) <= {f"{voila_address}/voila/render/{notebook.name}" for notebook in NOTEBOOKS}
    for answer in watched.page.locator("details", has_text="Answer").all():
        answer.locator("summary").click()
        assert answer.evaluate("(node) => node.open && node.offsetHeight > 1.5 * node.firstElementChild.offsetHeight")


def test_its_widgets_answer(shown):
    name, watched = shown
    WIDGETS[name](watched.page)
    assert watched.faults(forgiven={PLOTLY_IN_VOILA}) == []


def test_the_first_page_lists_the_whole_course_and_opens_it(context, voila_address):
    first = context.new_page()
    first.goto(f"{voila_address}?theme=dark")
    first.get_by_text("index.ipynb").wait_for()
    listed = first.get_by_role("listitem").all_inner_texts()
    assert {notebook.name for notebook in NOTEBOOKS} <= set(listed)
    with context.expect_page() as opened:
        first.get_by_text("index.ipynb").dblclick()
    assert opened.value.url == f"{voila_address}/voila/render/index.ipynb?theme=dark"
    opened.value.close()
    first.close()


# ---------------------------------------------------------------- widgets under mouse and keys


def strip(page):
    """A click selects a token, and keys walk on from there."""
    options = page.get_by_role("listbox", name="tokens").first.get_by_role("option")
    options.nth(2).click()
    assert options.nth(2).get_attribute("aria-selected") == "true"
    options.nth(2).press("Home")
    assert options.first.get_attribute("aria-selected") == "true"


def live_decode(page):
    """It stops when asked, and shows what it had."""
    from playwright.sync_api import expect

    strip(page)
    page.get_by_role("slider", name="max new tokens").press("End")  # not over before it is stopped
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped on request").first).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()


def speedup_explorer(page):
    """It says what the run says, and a slider changes sentence and figure."""
    from playwright.sync_api import expect

    panel = page.locator(".jp-CodeCell", has=page.get_by_role("slider", name="gamma")).first
    said, curve = panel.locator(".swb-explorer").first, panel.locator(".swb-field polyline").last
    printed = page.locator("pre", has_text="E[N] =").first.inner_text()
    assert said.inner_text().split()[3] == printed.split()[2]
    before = said.inner_text(), curve.get_attribute("points")
    panel.get_by_role("slider", name="gamma").press("ArrowRight")
    expect(said).not_to_have_text(before[0])
    expect(curve).not_to_have_attribute("points", before[1])


def playground_and_race(page):
    """A bar moves; a race stops when asked, and its lines begin anew."""
    from playwright.sync_api import expect

    bar = page.get_by_role("slider").first
    before = float(bar.get_attribute("aria-valuenow"))
    bar.press("ArrowUp")
    assert float(bar.get_attribute("aria-valuenow")) > before
    run, stop = (page.get_by_role("button", name=name).first for name in ("Run", "Stop"))
    line = page.locator(".js-plotly-plot").first.locator(".scatterlayer .js-line").first
    before = line.get_attribute("d")
    run.click()
    expect(line).not_to_have_attribute("d", before)
    stop.click()
    expect(run).to_be_enabled()


def proposer_lab(page):
    """A run of few tokens leaves a table and a figure; another stops when asked."""
    from playwright.sync_api import expect

    length = page.get_by_role("slider", name="max new tokens")
    length.press("Home")
    run, stop = (page.get_by_role("button", name=name) for name in ("Run", "Stop"))
    run.click()
    expect(page.get_by_text("16 tokens")).to_have_count(4)  # of plain decoding and three proposers
    expect(page.get_by_text("done; 3 proposers on 2 prompts").last).to_be_visible()
    length.press("End")  # not over before it is stopped
    run.click()
    stop.click()
    expect(page.get_by_text("stopped").last).to_be_visible()
    expect(run).to_be_enabled()


def claims_board(page):
    """Another claim, another figure."""
    from playwright.sync_api import expect

    board = page.locator(".jp-CodeCell", has=page.get_by_label("claim", exact=True)).first
    title = board.locator(".gtitle")
    expect(title).to_contain_text("break-even")
    board.get_by_label("claim", exact=True).select_option(label="A stronger draft can be slower.")
    expect(title).to_have_text("A stronger draft can be slower.")


def round_player(page):
    """A step leads on, and while it plays the clock goes."""
    from playwright.sync_api import expect

    player = page.get_by_role("group", name="Round player")
    standing, stage = player.locator(".swbp-standing"), player.locator("[aria-current=step]")
    before = stage.inner_text()
    player.get_by_role("button", name="one step on").click()
    expect(stage).not_to_have_text(before)
    before = standing.inner_text()
    player.get_by_role("button", name="play").click()
    expect(standing).not_to_have_text(before)
    player.get_by_role("button", name="pause").click()
    strip(page)


def study_browser(page):
    """A click on a point opens its trace."""
    from playwright.sync_api import expect

    browser = page.locator(".jp-CodeCell", has=page.get_by_label("cell", exact=True)).last
    cell, point = browser.get_by_label("cell", exact=True), browser.locator(".js-plotly-plot .points path").last
    before = cell.input_value()
    box = point.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 5, y)
    page.mouse.move(x, y)
    expect(browser.locator(".hovertext").first).to_be_visible()
    page.mouse.click(x, y)
    expect(cell).not_to_have_value(before)
    expect(browser.get_by_role("listbox", name="tokens")).to_be_visible()


WIDGETS = {
    "00_quickstart": live_decode,
    "01_theory_meets_measurement": speedup_explorer,
    "02_is_it_lossless": playground_and_race,
    "03_choose_a_proposer": proposer_lab,
    "04_claims": claims_board,
    "05_inside_a_round": round_player,
    "06_sampling_and_workloads": study_browser,
    "07_your_models": strip,
    "index": strip,
}
