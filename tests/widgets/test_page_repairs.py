"""What is mended on the page, by the functions of its script, and which panels ask for it."""

import plotly.graph_objects as go
import pytest

from specworkbench.plots.style import ink_css
from specworkbench.widgets import ClaimsBoard, EquivalenceRace, Inspector, LiveDecode, SpeedupExplorer, page_repairs
from specworkbench.widgets.page_repairs import GROUP, LIVE, PageRepairs, live_figure, live_text, redraw
from tests.widgets.node import node_runner

FOUND = """
const node = (attributes = {}, below = {}) => ({
  attributes, below, disabled: false,
  getAttribute(name) { return this.attributes[name] ?? null; },
  setAttribute(name, value) { this.attributes[name] = value; writes += 1; },
  querySelectorAll(selector) { return this.below[selector] ?? []; },
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; },
  focus() { focused = this; },
});
let writes = 0, focused = null;
const text = (words) => ({ ...node(), textContent: words });
const label = (own) => own.attributes["aria-label"] ?? null;
"""


@pytest.fixture(scope="module")
def in_node(tmp_path_factory):
    return node_runner(tmp_path_factory.mktemp("repairs"), str(PageRepairs._esm), FOUND)


def test_handles_are_named_as_their_slider(in_node):
    code = """
    const slider = (label, ...handles) => {
      return node({}, { ".widget-label": label, "[role=slider]": handles, ".widget-readout": [number] });
    };
    const [one, low, high, without, number] = [node(), node(), node(), node(), node()];
    const sliders = [slider([text(" gamma ")], one), slider([text("range")], low, high), slider([], without)];
    it.nameSliders(node({}, { ".widget-slider": sliders }));
    return [one, low, high, without, number].map(label);
    """
    assert in_node(code) == ["gamma", "range", "range", None, "range, as a number"]


def test_icons_are_no_part_of_a_name_texts_are_told_and_groups_are_named(in_node):
    code = """
    const [icon, live, group, bare] = [node(), node(), node({}, { ".widget-html": [text(" Target ")] }), node()];
    const root = node({}, { ".jupyter-button > i": [icon], ".swb-live": [live], ".swb-group": [group, bare] });
    for (const mend of [it.hideIcons, it.tellChanges, it.nameGroups]) { mend(root); mend(root); }
    return [...[icon, live, group, bare].map((own) => own.attributes), writes];
    """
    icon, live, group, bare, writes = in_node(code)
    assert icon == {"aria-hidden": "true"} and live == {"role": "status"} and bare == {}
    assert group == {"role": "group", "aria-label": "Target"} and writes == 4, "what is so already is left alone"


def test_a_figure_is_one_picture_and_its_words_follow_it(in_node):
    code = """
    const svgs = [node(), node(), node()];
    const figure = { ...node({}, { ".svg-container > svg": svgs }), layout: { title: { text: "A <b>title</b>" } } };
    const root = node({}, { ".js-plotly-plot": [figure] });
    it.describeFigures(root);
    const first = label(svgs[0]);
    figure.layout.title.text = "another";
    it.describeFigures(root);
    return [first, label(svgs[0]), svgs.map(({ attributes }) => attributes.role ?? attributes["aria-hidden"])];
    """
    assert in_node(code) == ["Figure: A title", "Figure: another", ["img", "true", "true"]]


def test_the_words_of_a_figure_are_its_titles_series_and_notes(in_node):
    figure = {
        "layout": {
            "title": {"text": "Evidence"},
            "xaxis": {"title": {"text": "tokens"}},
            "xaxis2": {"title": {"text": "tokens"}},
            "yaxis": {"title": {"text": "log<sub>10</sub> E"}},
            "annotations": [{"text": "rejected"}],
        },
        "data": [{"name": "sound"}, {"name": "band", "showlegend": False}, {}],
    }
    words = "Figure: Evidence; log 10 E over tokens; sound; rejected"
    assert in_node("return it.figureWords(figure)", figure=figure) == words
    assert in_node("return it.figureWords({})") == "Figure"


def test_the_keyboard_goes_on_from_a_button_that_can_no_longer_be_pressed(in_node):
    code = """
    const [run, stop] = [node(), node()];
    run.parentElement = node({}, { "button:not(:disabled)": [stop] });
    const asked = (act) => {
      const keeper = it.focusKeeper();
      focused = null;
      run.disabled = false;
      act(keeper);
      keeper.disabled(run);
      return focused === stop;
    };
    const came = (keeper) => keeper.came({ target: run }), left = (keeper) => keeper.left({ target: run });
    const disable = () => (run.disabled = true);
    const cases = [[came, disable], [came, disable, left], [came, left, disable], [came], [disable]];
    return cases.map((acts) => asked((keeper) => acts.forEach((act) => act(keeper))));
    """
    assert in_node(code) == [True, True, False, False, False]


def test_single_keys_are_the_panels_and_orders_the_notebooks(in_node):
    code = """
    const kept = (event) => {
      let stopped = false;
      it.keepKey({ stopPropagation: () => (stopped = true), ...event });
      return stopped;
    };
    const own = [{ key: "ArrowDown" }, { key: "x" }, { key: "Enter" }].map(kept);
    const orders = [{ key: "s", ctrlKey: true }, { key: "Escape" }, { key: "Enter", shiftKey: true }];
    return [own, orders.map(kept)];
    """
    assert in_node(code) == [[True] * 3, [False] * 3]


def test_a_figure_is_new_once(in_node):
    code = """
    const seen = new WeakSet(), figures = [{}, {}];
    const root = { querySelectorAll: () => figures };
    const asked = [it.newFigures(root, seen), it.newFigures(root, seen)];
    figures.push({});
    return [...asked, it.newFigures(root, seen)];
    """
    assert in_node(code) == [True, False, True]


def test_a_live_figure_listens_to_the_width_of_the_page():
    figure = live_figure()
    assert figure._config["responsive"] is True and figure.layout.width is None


def test_a_live_text_is_known_to_the_script_and_may_be_heard_alone():
    script = str(PageRepairs._esm)
    assert all(f'".{name}"' in script for name in (LIVE, GROUP))
    assert live_text()._dom_classes == (LIVE,) and page_repairs._HEARD in live_text(hidden=True)._dom_classes
    assert f".{page_repairs._HEARD} {{" in str(PageRepairs._css)


def test_a_figure_that_was_redrawn_is_the_one_that_a_page_opened_later_is_sent():
    live = live_figure(go.Figure(go.Bar(y=[1, 2]), {"title": {"text": "before"}}))
    redraw(live, go.Figure(go.Scatter(y=[3, 4, 5]), {"title": {"text": "after"}}))
    sent = live.get_state()
    assert [series["type"] for series in sent["_widget_data"]] == ["scatter"]
    assert sent["_widget_layout"]["title"]["text"] == live.layout.title.text == "after"


PANELS = [EquivalenceRace, Inspector, LiveDecode, SpeedupExplorer]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.__name__)
def test_panels_end_in_the_repairs_under_a_name(panel):
    repairs = panel().children[-1]
    assert isinstance(repairs, PageRepairs) and repairs.name


def test_so_does_the_board_of_claims(tmp_path):
    assert isinstance(ClaimsBoard(tmp_path).children[-1], PageRepairs)


def test_the_page_gets_the_rules_of_names_of_the_keyboard_and_of_ink():
    rules = PageRepairs("a panel")._css
    assert ink_css() in rules and "--swb-focus: " in rules and ".swb-mended" in rules
    assert 'classList.add("swb-mended")' in PageRepairs("a panel")._esm
