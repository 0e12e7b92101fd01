"""The strip: traits and state without a browser, its static twin, and the pure functions of its script."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from specworkbench.plots import palette
from specworkbench.widgets import TokenStrip, token_strip, tokens_of
from tests.widgets.traces import spoken

TRACE = spoken()
SCRIPT = Path(token_strip.__file__).with_suffix(".js")
STYLE = Path(token_strip.__file__).with_suffix(".css")


def test_strip_of_a_trace_holds_its_tokens_and_nothing_selected():
    strip = TokenStrip.of(TRACE, 1, title="one")
    assert strip.tokens == tokens_of(TRACE, 1) and strip.selected == -1 and strip.title == "one"


def test_selection_stays_within_the_tokens():
    strip = TokenStrip.of(TRACE)
    strip.selected = 10_000
    assert strip.selected == len(strip.tokens) - 1
    strip.tokens = strip.tokens[:3]
    assert strip.selected == 2
    strip.selected = -7
    assert strip.selected == -1


def test_state_that_travels_is_json_and_holds_no_path():
    strip = TokenStrip.of(TRACE)
    state = {name: value for name, value in strip.get_state().items() if not name.startswith("_") and name != "layout"}
    assert {"tokens", "selected", "title", "legend"} <= set(state)
    json.dumps({name: state[name] for name in ("tokens", "selected", "title", "legend")})
    assert [entry["outcome"] for entry in strip.legend] == list(palette.OUTCOMES)


def test_a_token_that_is_a_script_is_text_in_the_static_twin():
    html = TokenStrip.of(TRACE, title="<img src=x>").to_html()
    assert "<script>" not in html and "<img" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "·x⏎" in html and "→b" in html and "&quot;&amp;" in html


def test_static_twin_has_every_outcome_with_glyph_and_count_and_the_selection():
    strip = TokenStrip.of(TRACE, selected=4)
    html = strip._repr_html_()
    for name, mark in palette.OUTCOMES.items():
        count = sum(token["outcome"] == name for token in strip.tokens)
        assert f'data-outcome="{name}" data-glyph="{mark.glyph}">{name}</span> {count}' in html
    assert html.count("aria-selected=true") == 1
    assert html.count('class="swb-round"') == len({token["round"] for token in strip.tokens})


def test_cut_off_tokens_are_marked_in_the_static_twin():
    token = {"text": "x", "outcome": "bonus", "emitted": False, "round": 0, "position": 1, "label": "x"}
    html = TokenStrip(tokens=[token]).to_html()
    assert "★✂" in html and "cut off by the end: 1" in html


def test_without_tokens_a_sentence_says_what_to_do():
    assert token_strip.EMPTY in TokenStrip().to_html()
    assert token_strip.EMPTY in SCRIPT.read_text(encoding="utf-8")


def test_script_makes_no_html_of_text_and_fetches_nothing():
    script, style = SCRIPT.read_text(encoding="utf-8"), STYLE.read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import ", "fetch("):
        assert forbidden not in script
    for text in (script, style):
        assert "http" not in text and "url(" not in text


def test_script_and_python_know_the_same_outcomes():
    style = STYLE.read_text(encoding="utf-8")
    assert all(f'data-outcome="{name}"' in style for name in palette.OUTCOMES)


@pytest.fixture(scope="module")
def in_node(tmp_path_factory):
    """`in_node(expression)`: an expression over the script's exports, with `tokens`, as JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the strip's script is tested in it")
    module = tmp_path_factory.mktemp("strip") / "strip.mjs"
    shutil.copy(SCRIPT, module)

    def run(expression, tokens):
        code = f"import * as strip from {json.dumps(module.as_uri())}; const tokens = {json.dumps(tokens)};"
        code += f"console.log(JSON.stringify({expression}))"
        done = subprocess.run([node, "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def rounds_of(*sizes):
    outcomes = ["accepted", "rejected", "discarded", "corrected"]
    return [
        {"text": "x", "outcome": outcomes[i % 4], "emitted": True, "round": r, "position": 1, "label": ""}
        for r, size in enumerate(sizes)
        for i in range(size)
    ]


def test_keys_move_by_token_and_by_round_and_stop_at_the_ends(in_node):
    tokens = rounds_of(3, 1, 4)
    moves = [
        (0, "ArrowRight", 1),
        (7, "ArrowRight", 7),
        (0, "ArrowLeft", 0),
        (-1, "ArrowRight", 0),
        (-1, "ArrowDown", 0),
    ]
    moves += [(2, "ArrowDown", 3), (3, "ArrowDown", 4), (6, "ArrowDown", 6), (6, "ArrowUp", 3), (1, "ArrowUp", 1)]
    moves += [(5, "Home", 0), (1, "End", 7), (2, "x", None), (2, "Tab", None)]
    calls = ", ".join(f"strip.moved(tokens, {at}, {json.dumps(key)})" for at, key, _ in moves)
    assert in_node(f"[{calls}]", tokens) == [to for _, _, to in moves]
    assert in_node('strip.moved([], -1, "End")', []) is None


def test_rounds_are_grouped_and_named(in_node):
    tokens = rounds_of(4, 1)
    groups = in_node("strip.groupRounds(tokens)", tokens)
    assert groups == [{"round": 0, "start": 0, "end": 4}, {"round": 1, "start": 4, "end": 5}]
    assert (
        in_node("strip.roundLabel(tokens, strip.groupRounds(tokens)[0])", tokens) == "Round 0: 3 proposed, 1 accepted"
    )


def test_cut_off_means_the_same_in_script_and_python(in_node):
    tokens = [{"outcome": name, "emitted": emitted} for name in palette.OUTCOMES for emitted in (True, False)]
    python = [token_strip.is_cut(token["outcome"], token["emitted"]) for token in tokens]
    assert in_node("tokens.map(strip.isCut)", tokens) == python


def test_script_is_a_widget_module(in_node):
    assert in_node("typeof strip.default.render", []) == "function"
