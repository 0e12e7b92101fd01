"""Every widget under axe-core in both themes, with the keyboard alone, and to the ear: one voice for what was done."""

import re

import pytest

from tests.browser.pages import THEMES, WIDTHS, cells
from tests.browser.panels import PANELS, output_of, panels_notebook

pytestmark = pytest.mark.browser

STOPS = 60
"""Presses of Tab after which a panel that still holds the keyboard is a trap."""

FIRST = ":is(a[href], button, input, select, summary, textarea, [tabindex='0']):visible"
FOCUSED = """() => {
  const node = document.activeElement;
  const style = getComputedStyle(node.matches(".swb-slider") ? node.querySelector(".swb-lane") : node);
  const framed = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const shown = framed || parseFloat(style.strokeWidth) >= 2 && style.stroke !== "none";
  return { text: `${node.tagName} ${node.getAttribute("class")} ${node.getAttribute("aria-label")}`, shown };
}"""
MUTANTS = {
    "label": "HTML('<input>')",
    "svg-img-alt": "HTML('<svg role=img><text y=20>a chart</text></svg>')",
    "color-contrast": "HTML('<p style=\"color: #aaa; background: #fff\">pale</p>')",
    "aria-required-children": "HTML('<div role=listbox aria-label=tokens><div role=button tabindex=0>a</div></div>')",
    "aria-input-field-name": "__import__('ipywidgets').FloatSlider(description='no name for its handle')",
}
"""By the rule that each of them breaks."""


@pytest.fixture(scope="module", autouse=True)
def axe():
    reason = "axe-playwright-python is not installed (the extra 'browser')"
    return pytest.importorskip("axe_playwright_python", reason=reason)


@pytest.fixture(scope="module")
def opened(open_notebook):
    opened = open_notebook("accessible.ipynb", panels_notebook())
    opened.run()
    opened.look(WIDTHS["wide"], whole=True)
    yield opened
    assert ["nowhere.trace" in told for told in opened.broken_widgets()] == [True] and opened.troubles == []


@pytest.fixture(scope="module")
def panel(opened):
    """The output of a panel, by its name."""
    return lambda name: opened.page.locator(output_of(name)).last


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("theme", THEMES)
def test_no_rule_is_broken(opened, name, theme):
    opened.theme(theme)
    assert opened.page.locator(output_of(name)).count()
    assert opened.violations(output_of(name)) == []


def test_what_breaks_a_rule_is_reported(open_notebook):
    page = open_notebook("mutants.ipynb", cells("from IPython.display import HTML", *MUTANTS.values()))
    page.run()
    page.look(WIDTHS["wide"], whole=True)
    page.page.locator(".noUi-handle").wait_for()
    found = page.violations(".jp-OutputArea-output")
    assert {violation.split(":")[0] for violation in found} == set(MUTANTS)


# ---------------------------------------------------------------- the tree that a screen reader reads


@pytest.mark.parametrize("name", [name for name in PANELS if name not in ("TokenStrip", "static twins", "an error")])
def test_a_panel_is_a_group_with_a_name_and_nothing_in_it_is_a_picture_without_words(panel, name):
    tree = panel(name).aria_snapshot()
    assert re.match(r"- group \"[A-Z][a-z ]+\":", tree)
    own = re.sub(r"- button \".*\":\n\s+- img\n", "", f"{tree}\n")  # plotly's buttons have names, not their pictures
    assert not re.search(r"- img$", own, re.MULTILINE)
    assert not re.search(r"[\ue000-\uf8ff]", tree), "a letter of an icons' font is read out"


def test_a_figure_of_plotly_is_told_in_words(panel):
    picture = panel("EquivalenceRace").get_by_role("img", name="Evidence against each implementation")
    assert "log10 of the E-value over tokens judged; sound, faulty" in picture.get_attribute("aria-label")


# ---------------------------------------------------------------- the keyboard alone


@pytest.mark.parametrize("name", [name for name in PANELS if name not in ("static twins", "an error")])
@pytest.mark.parametrize("theme", THEMES)
def test_tab_walks_through_a_panel_frames_where_it_stands_and_leaves(opened, panel, name, theme):
    opened.theme(theme)
    here, keyboard = panel(name), opened.page.keyboard
    here.locator(FIRST).first.focus()
    keyboard.press("Shift+Tab")
    assert not here.evaluate("(node) => node.contains(document.activeElement)")
    keyboard.press("Tab")
    faint = []
    for _ in range(STOPS):
        if not here.evaluate("(node) => node.contains(document.activeElement)"):
            break
        focused = opened.page.evaluate(FOCUSED)
        faint += [] if focused["shown"] else [focused["text"]]
        keyboard.press("Tab")
    else:
        pytest.fail(f"the keyboard is still in {name} after {STOPS} presses of Tab")
    assert faint == []


def test_the_player_steps_and_plays_by_key(panel):
    from playwright.sync_api import expect

    player = panel("RoundPlayer")
    stage = player.get_by_role("group", name="Rounds")
    sentence = player.locator(".swbp-sentence")
    stage.press("Home")
    first = sentence.inner_text()
    stage.press("ArrowRight")
    expect(sentence).not_to_have_text(first)
    expect(player.get_by_role("status")).to_have_text(sentence.inner_text())
    stage.press("Space")
    expect(player.get_by_role("button", name="pause")).to_be_visible()
    stage.press("Space")
    expect(player.get_by_role("button", name="play")).to_be_visible()
    back = player.get_by_role("button", name="one step back")
    stage.press("Home")
    back.focus()
    back.press("Enter")
    expect(back).to_be_focused()  # at the first step as well


def test_a_cell_of_the_map_is_chosen_by_arrow_keys_and_told(panel):
    from playwright.sync_api import expect

    here = panel("AcceptanceMap")
    cell = here.get_by_label("cell", exact=True)
    cell.press("ArrowDown")
    expect(here.get_by_role("status")).to_have_text(re.compile(r"token 1 of \d+ in this cell is selected"))
    expect(cell).to_be_focused()


def test_a_cell_of_a_study_is_opened_by_key(panel):
    from playwright.sync_api import expect

    here = panel("StudyBrowser")
    cell = here.get_by_label("cell", exact=True)
    cell.press("ArrowDown")
    expect(here.get_by_role("alert")).to_contain_text("was kept without its traces")
    cell.press("ArrowUp")
    expect(here.get_by_role("alert")).to_have_count(0)


def test_run_hands_the_keyboard_to_stop_and_takes_it_back(panel):
    from playwright.sync_api import expect

    live = panel("LiveDecode")
    run, stop = (live.get_by_role("button", name=name) for name in ("Run", "Stop"))
    live.get_by_role("slider", name="max new tokens").press("End")  # not over before it is stopped
    run.press("Enter")
    expect(stop).to_be_focused()
    stop.press("Enter")
    expect(run).to_be_focused()
    told = live.locator(".swb-heard[role=status]").first
    expect(told).to_contain_text("stopped on request")
    assert "tokens in" in told.inner_text()


# ---------------------------------------------------------------- one voice


def voices(panel):
    """What the live regions of a panel say now."""
    return [text.strip() for text in panel.get_by_role("status").all_text_contents() if text.strip()]


def test_an_inspector_alone_tells_the_token_that_its_buttons_lead_to(panel):
    from playwright.sync_api import expect

    here = panel("Inspector")
    assert voices(here) == []
    here.get_by_role("button", name="next").press("Enter")
    expect(here.get_by_role("status")).to_contain_text("position 4")
    assert len(voices(here)) == 1


def test_strip_and_inspector_together_tell_a_token_once(panel):
    from playwright.sync_api import expect

    here = panel("explore")
    tokens = here.get_by_role("listbox").get_by_role("option")
    tokens.nth(1).click()
    expect(here.get_by_role("status").filter(has_text="position 2")).to_have_count(1)
    tokens.nth(1).press("ArrowRight")
    expect(here.get_by_role("status").filter(has_text="position 3")).to_have_count(1)
    assert len(voices(here)) == 1
    here.get_by_role("button", name="next").press("Enter")
    expect(here.get_by_role("status").filter(has_text="position 4")).to_have_count(1)
    assert len(voices(here)) == 1


def test_the_last_token_hands_the_keyboard_back_to_the_button_before(panel):
    from playwright.sync_api import expect

    here = panel("explore")
    here.get_by_role("listbox").get_by_role("option").nth(1).press("End")
    here.get_by_role("button", name="previous").press("Enter")
    following = here.get_by_role("button", name="next")
    following.press("Enter")
    expect(here.get_by_role("button", name="previous")).to_be_focused()
    expect(following).to_be_disabled()
