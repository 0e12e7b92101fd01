"""What is mended on the page: names of sliders, and figures that are new; every panel with one of them asks for it."""

import json
import shutil
import subprocess
from pathlib import Path

import plotly.graph_objects as go
import pytest

from specworkbench.widgets import ClaimsBoard, EquivalenceRace, SpeedupExplorer, page_repairs
from specworkbench.widgets.page_repairs import PageRepairs, live_figure, redraw

SCRIPT = Path(page_repairs.__file__).with_suffix(".js")

CHECK = """
import {{ nameSliders, newFigures }} from {script};
const handle = () => ({{ names: {{}}, setAttribute(key, value) {{ this.names[key] = value; }} }});
const slider = (label, handles) => ({{
  querySelector: () => (label === null ? null : {{ textContent: label }}),
  querySelectorAll: () => handles,
}});
const [one, low, high, without] = [handle(), handle(), handle(), handle()];
const sliders = [slider(" gamma ", [one]), slider("range", [low, high]), slider(null, [without])];
nameSliders({{ querySelectorAll: () => sliders }});
const [seen, figures] = [new WeakSet(), [{{}}, {{}}]];
const root = {{ querySelectorAll: () => figures }};
const asked = [newFigures(root, seen), newFigures(root, seen)];
figures.push({{}});
asked.push(newFigures(root, seen));
const names = [one, low, high, without].map((node) => node.names["aria-label"] ?? null);
console.log(JSON.stringify({{ names, asked }}));
"""


def test_handles_are_named_as_their_slider_and_a_figure_is_new_once(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the functions of the script are not tested")
    shutil.copy(SCRIPT, tmp_path / "script.mjs")
    (tmp_path / "check.mjs").write_text(CHECK.format(script='"./script.mjs"'), encoding="utf-8")
    done = subprocess.run([node, tmp_path / "check.mjs"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["names"] == ["gamma", "range", "range", None]
    assert found["asked"] == [True, False, True]


def test_a_live_figure_listens_to_the_width_of_the_page():
    figure = live_figure()
    assert figure._config["responsive"] is True and figure.layout.width is None


def test_a_figure_that_was_redrawn_is_the_one_that_a_page_opened_later_is_sent():
    live = live_figure(go.Figure(go.Bar(y=[1, 2]), {"title": {"text": "before"}}))
    redraw(live, go.Figure(go.Scatter(y=[3, 4, 5]), {"title": {"text": "after"}}))
    sent = live.get_state()
    assert [series["type"] for series in sent["_widget_data"]] == ["scatter"]
    assert sent["_widget_layout"]["title"]["text"] == live.layout.title.text == "after"


@pytest.mark.parametrize("panel", [EquivalenceRace, SpeedupExplorer], ids=lambda panel: panel.__name__)
def test_panels_with_sliders_or_figures_end_in_the_repairs(panel):
    assert isinstance(panel().children[-1], PageRepairs)


def test_so_does_the_board_of_claims(tmp_path):
    assert isinstance(ClaimsBoard(tmp_path).children[-1], PageRepairs)
