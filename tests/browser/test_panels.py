"""The widgets under mouse and keys, in a browser and with a kernel behind them: roles, names and sentences."""

import re

import pytest

from tests.browser.pages import WIDTHS, cells

pytestmark = pytest.mark.browser

STRIP = """
from specworkbench import load_trace
from specworkbench.paths import traces_dir
from specworkbench.widgets import explore
explore(load_trace(traces_dir() / "quickstart.trace"))
"""
TEXTS = """
from specworkbench.widgets import TokenStrip
text = "<img src=x onerror='window.hacked = true'>"
token = {"outcome": "accepted", "emitted": True, "round": 0, "position": 1, "text": text, "label": text}
TokenStrip(tokens=[token], title="untrusted")
"""
PLAYGROUND = "from specworkbench.widgets import OverlapPlayground\nOverlapPlayground()"
SPEEDUP = "from specworkbench.widgets import SpeedupExplorer\nSpeedupExplorer(alpha=0.7)"
RACE = """
from specworkbench.widgets import EquivalenceRace
race = EquivalenceRace()
for number in range(6):
    race.show(f"an implementation with a name, {number}", [(0, 0.0), (100, number - 1.0)])
race
"""
LIVE = "from specworkbench.widgets import LiveDecode\nLiveDecode()"


@pytest.fixture(scope="module")
def page(open_notebook):
    opened = open_notebook("panels.ipynb", cells(STRIP, TEXTS, PLAYGROUND, SPEEDUP, RACE, LIVE))
    opened.run()
    opened.look(WIDTHS["wide"], whole=True)
    yield opened.page
    assert opened.faults() == []


@pytest.fixture(scope="module")
def panel(page):
    """The output of a cell, by its number."""
    return lambda number: page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea-output").last


# ---------------------------------------------------------------- the strip


@pytest.fixture
def strip(panel):
    return Strip(panel(0))


class Strip:
    """The listbox of tokens and the sentence on the selected one."""

    def __init__(self, panel):
        self.panel, self.list = panel, panel.get_by_role("listbox")
        self.selected = self.list.locator("[role=option][aria-selected=true]")
        self.sentence = panel.locator(".swb-strip [role=status]")

    def press(self, key):
        """Press a key, and return the sentence that the kernel sends for the token it leads to."""
        return self._after(lambda: self.selected.press(key))

    def click(self, option):
        return self._after(option.click)

    def _after(self, act):
        before = self.sentence.text_content()
        act()
        assert self.selected.count() == 1
        self.panel.page.wait_for_function(
            "([node, before]) => document.contains(node) === false || node.textContent !== before",
            arg=[self.sentence.element_handle(), before],
        )
        return self.sentence.text_content()


def test_the_strip_is_a_listbox_of_options_in_groups_one_of_them_selected(strip):
    assert strip.list.get_attribute("aria-label")
    assert strip.list.get_by_role("option").count() > 10
    assert strip.selected.count() == 1
    assert "rejected" in strip.selected.get_attribute("aria-label")
    groups = strip.list.get_by_role("group")
    assert re.match(r"Round \d+: \d proposed, \d accepted", groups.first.get_attribute("aria-label"))


def test_a_click_selects_a_token_and_its_sentence_is_told(strip):
    option = strip.list.get_by_role("option").nth(4)
    sentence = strip.click(option)
    assert option.get_attribute("aria-selected") == "true" and sentence


def test_keys_walk_through_the_strip_and_the_focus_goes_along(strip):
    strip.click(strip.list.get_by_role("option").nth(1))
    second = strip.selected.get_attribute("aria-label")
    strip.press("Home")
    first = strip.selected.get_attribute("aria-label")
    strip.press("ArrowRight")
    assert first != second == strip.selected.get_attribute("aria-label")
    strip.press("ArrowDown")
    assert strip.selected.get_attribute("aria-label") != second
    strip.press("End")
    assert strip.panel.evaluate("(node) => node.contains(document.activeElement)")
    assert strip.selected.evaluate("(node) => node === document.activeElement && node.tabIndex === 0")
    strip.press("ArrowLeft")
    assert strip.list.locator("[role=option][tabindex='0']").count() == 1  # roving: one stop for the Tab key


def test_enter_leads_to_the_inspector_and_escape_lets_go(strip):
    from playwright.sync_api import expect

    strip.click(strip.list.get_by_role("option").nth(2))
    strip.selected.press("Enter")
    button = strip.panel.get_by_role("button", name="next")
    expect(button).to_be_focused()
    strip.list.get_by_role("option").nth(2).press("Escape")
    expect(strip.selected).to_have_count(0)


def test_a_token_that_looks_like_html_is_text(page, panel):
    assert panel(1).get_by_role("option").inner_text() == "<img src=x onerror='window.hacked = true'>"
    assert page.evaluate("() => window.hacked") is None


# ---------------------------------------------------------------- sliders


def test_bars_of_the_playground_move_by_key_and_by_mouse(panel):
    bar = panel(2).get_by_role("slider").first
    before = float(bar.get_attribute("aria-valuenow"))
    bar.press("ArrowUp")
    risen = float(bar.get_attribute("aria-valuenow"))
    assert risen > before
    box = bar.bounding_box()
    bar.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 10)
    bar.page.mouse.down()
    bar.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 4, steps=5)
    bar.page.mouse.up()
    assert float(bar.get_attribute("aria-valuenow")) > risen


def test_a_fault_chosen_as_the_rule_is_said_to_lose_p(panel):
    from playwright.sync_api import expect

    says = panel(2).locator(".swb-says")
    expect(says).to_contain_text("= p")
    panel(2).get_by_label("rule").select_option(label="refused: draw from p")
    expect(says).to_contain_text("≠ p")
    expect(panel(2).get_by_role("status")).not_to_be_empty()


def test_sliders_of_the_speedup_explorer_change_what_it_says(panel):
    from playwright.sync_api import expect

    headline = panel(3).get_by_role("status").first
    before = headline.inner_text()
    assert before.startswith("A round brings")
    panel(3).get_by_role("slider", name="gamma").press("ArrowRight")
    expect(headline).not_to_have_text(before)
    expect(headline).to_contain_text("With gamma = 5 it pays from")


# ---------------------------------------------------------------- figures


def test_a_figure_that_changes_is_as_wide_as_its_panel_whatever_that_is(page, panel):
    figure = panel(4).locator(".js-plotly-plot .main-svg").first
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": page.viewport_size["height"]})
        page.wait_for_function(
            "([figure, panel]) => Math.abs(figure.getBoundingClientRect().width - panel.clientWidth) < 30",
            arg=[figure.element_handle(), panel(4).element_handle()],
        )


# ---------------------------------------------------------------- a live decode


def test_a_live_decode_stops_when_asked_and_keeps_what_it_had_then_runs_to_its_end(panel):
    from playwright.sync_api import expect

    live = panel(5)
    run, stop = (live.get_by_role("button", name=name) for name in ("Run", "Stop"))
    expect(stop).to_be_disabled()
    live.get_by_role("slider", name="max new tokens").press("End")  # not over before it is stopped
    run.click()
    expect(stop).to_be_enabled()
    expect(run).to_be_disabled()
    stop.click()
    expect(live).to_contain_text("stopped on request")
    expect(run).to_be_enabled()
    run.click()
    expect(live).to_contain_text("stopped by length")
    expect(live.get_by_role("listbox")).to_be_visible()
    assert live.get_by_role("option").count() > 10
