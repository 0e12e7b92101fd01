"""The strip: traits and state without a browser, its static twin, and the pure functions of its script."""

import json
from pathlib import Path

import pytest

from specworkbench.plots import palette
from specworkbench.widgets import Selection, TokenStrip, token_strip, tokens_of
from specworkbench.widgets.sentences import sentence
from tests.widgets.node import node_runner
from tests.widgets.traces import spoken

TRACE = spoken()
FOLDER = Path(token_strip.__file__).parent
SCRIPT = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in token_strip._SCRIPTS)
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
        glyph = f'<span class="swb-glyph">{mark.glyph} </span>'
        assert f'data-outcome="{name}">{glyph}{name}</span> {count}' in html
    assert html.count("aria-current=true") == 1
    assert html.count('class="swb-round"') == len({token["round"] for token in strip.tokens})


def test_cut_off_tokens_are_marked_in_the_static_twin():
    token = {"text": "x", "outcome": "bonus", "emitted": False, "round": 0, "position": 1, "label": "x"}
    html = TokenStrip(tokens=[token]).to_html()
    assert "★✂" in html and "cut off by the end: 1" in html


def test_without_tokens_a_sentence_says_what_to_do():
    assert token_strip.EMPTY in TokenStrip().to_html()
    assert token_strip.EMPTY in SCRIPT


def test_script_makes_no_html_of_text_and_fetches_nothing():
    style = STYLE.read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import ", "fetch("):
        assert forbidden not in SCRIPT
    for text in (SCRIPT, style):
        assert "http" not in text and "url(" not in text


def test_script_and_python_know_the_same_outcomes():
    style = STYLE.read_text(encoding="utf-8")
    assert all(f'data-outcome="{name}"' in style for name in palette.OUTCOMES)


@pytest.fixture(scope="module")
def in_node(tmp_path_factory):
    """`in_node(expression, tokens, setup)`: an expression over the script's exports, with `tokens`, as JSON."""
    run = node_runner(tmp_path_factory.mktemp("strip"), SCRIPT, "const strip = it;")
    return lambda expression, tokens, setup="": run(f"{setup}\nreturn {expression};", tokens=tokens)


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


ROOM = "{width: 100, widest: 60, gap: 2, between: 5, line: 30, more: 10, head: () => 20, token: (t) => t.text.length}"


def wrapped(in_node, tokens):
    """[[(first token, last token + 1, whether the round begins here) a part] a line], line and left edge of tokens."""
    plan = f"strip.wrap(tokens, strip.groupRounds(tokens), {ROOM})"
    setup = f"const plan = {plan}; const parts = (line) => line.parts.map((p) => [p.start, p.end, p.first]);"
    return in_node("[plan.lines.map(parts), [...plan.lineOf], [...plan.left]]", tokens, setup)


def sized(*rounds):
    return [{"text": "x" * size, "round": number} for number, sizes in enumerate(rounds) for size in sizes]


def test_rounds_stand_side_by_side_while_they_fit_and_begin_a_line_otherwise(in_node):
    lines, line_of, left = wrapped(in_node, sized([5, 5], [5, 5], [38]))
    assert lines == [[[0, 2, True], [2, 4, True]], [[4, 5, True]]]
    assert line_of == [0, 0, 0, 0, 1]
    assert left == [22, 29, 34 + 5 + 22, 34 + 5 + 29, 22]


def test_a_round_wider_than_a_line_goes_on_over_several_and_the_next_follows_behind(in_node):
    lines, line_of, left = wrapped(in_node, sized([30] * 5, [5]))
    assert lines == [[[0, 2, True]], [[2, 4, False]], [[4, 5, False], [5, 6, True]]]
    assert line_of == [0, 0, 1, 1, 2, 2] and left[2] == 12


@pytest.mark.parametrize("width", [50, 100, 1000])
def test_every_token_lies_once_on_a_line_and_within_it(in_node, width):
    tokens = sized(*([(7 * i + j) % 28 + 1 for j in range(i % 9 + 1)] for i in range(60)))
    room = ROOM.replace("width: 100", f"width: {width}")
    plan = in_node(f"strip.wrap(tokens, strip.groupRounds(tokens), {room})", tokens)
    assert [i for line in plan["lines"] for part in line["parts"] for i in range(part["start"], part["end"])] == list(
        range(len(tokens))
    )
    assert all(plan["left"][str(i)] + len(token["text"]) <= width for i, token in enumerate(tokens))


def test_the_lines_in_the_page_are_those_seen_and_a_screenful_around(in_node):
    calls = "[[0, 90, 30, 100], [1500, 90, 30, 100], [2910, 90, 30, 100], [0, 90, 30, 2]]"
    around = in_node(f"{calls}.map((call) => strip.linesAround(...call))", [])
    assert [(part["first"], part["last"]) for part in around] == [(0, 7), (47, 57), (94, 100), (0, 2)]


def test_scrolling_to_a_line_moves_no_more_than_it_must(in_node):
    calls = "[[3, 0, 120, 30], [4, 0, 120, 30], [4, 200, 120, 30], [5, 140, 120, 30]]"
    assert in_node(f"{calls}.map((call) => strip.scrolledTo(...call))", []) == [0, 30, 120, 140]


def test_a_page_leads_to_what_stands_nearest_and_at_the_end_to_the_last(in_node):
    tokens = sized(*([5, 5, 5, 5] for _ in range(20)))
    setup = f"const plan = strip.wrap(tokens, strip.groupRounds(tokens), {ROOM});"
    moves = [(-1, "PageDown", 0), (2, "PageDown", 22), (22, "PageUp", 2), (2, "PageUp", 0)]
    moves += [(70, "PageDown", 78), (78, "PageDown", 79), (79, "PageDown", 79)]
    calls = ", ".join(f"strip.paged(plan, {at}, {json.dumps(key)}, 5)" for at, key, _ in moves)
    assert in_node(f"[{calls}]", tokens, setup) == [to for _, _, to in moves]


MOUNTED = """
    const document = page();
    globalThis.requestAnimationFrame = (draw) => (draw(), 0);
    const outcomes = ["accepted", "rejected", "discarded", "corrected"];
    const legend = outcomes.map((outcome) => ({ outcome, glyph: "g", meaning: outcome }));
    const model = new Model({ tokens, legend, selected: -1, opened: 0, title: "", sentence: "" });
    const el = document.createElement("div");
    const mounted = new strip.Strip({ model, el, measure: () => (ROOM) });
    const list = el.find((node) => node.attributes.role === "listbox")[0];
    const options = () => el.find((node) => node.attributes.role === "option");
    const index = (node) => Number(node.dataset.index);
    const key = (name) => list.fire("keydown", { key: name });
    const said = () => el.find((node) => node.attributes.role === "status")[0].textContent;
    const steps = [];
    const step = () => steps.push([model.get("selected"), index(document.activeElement), said()]);
    """.replace("ROOM", ROOM)


def many(count=5000):
    return [
        {"text": "word", "outcome": "accepted", "emitted": True, "round": i // 4, "position": i % 4, "label": f"t{i}"}
        for i in range(count)
    ]


def test_of_five_thousand_tokens_few_are_in_the_page_and_each_says_its_place(in_node):
    setup = MOUNTED + "list.scrollTop = 9000; list.fire('scroll');"
    found = in_node("options().map((node) => [index(node), node.attributes, node.tabIndex])", many(), setup)
    assert 0 < len(found) < 300
    assert [number for number, _, _ in found] == sorted(number for number, _, _ in found)
    assert {300 * 8, 308 * 8} <= {number for number, _, _ in found}
    assert all(a["aria-setsize"] == "5000" and a["aria-posinset"] == str(i + 1) for i, a, _ in found)
    assert [number for number, _, tab in found if tab == 0] == [0]


def test_the_focus_survives_when_its_token_is_scrolled_out_of_sight(in_node):
    setup = MOUNTED + "mounted.pick(40); list.scrollTop = 12000; list.fire('scroll');"
    setup += "const kept = document.activeElement; const there = list.contains(kept); key('ArrowRight');"
    kept = in_node("[there, index(kept), model.get('selected'), list.scrollTop < 200]", many(), setup)
    assert kept == [True, 40, 41, True]


def test_resizing_keeps_selection_and_focus(in_node):
    setup = MOUNTED + "mounted.pick(600); mounted.lay();"
    found = in_node(
        "[index(document.activeElement), list.contains(document.activeElement), "
        "options().filter((n) => n.attributes['aria-selected'] === 'true').map(index)]",
        many(), setup,
    )  # fmt: skip
    assert found == [600, True, [600]]


def test_enter_opens_escape_clears_and_what_is_selected_is_said(in_node):
    setup = MOUNTED + "mounted.pick(8); step(); key('Enter'); step(); const cleared = key('Escape'); step();"
    setup += "const left = key('Escape'); key(' '); step();"
    steps, opened, cleared, left = in_node("[steps, model.get('opened'), cleared, left]", many(40), setup)
    assert steps == [[8, 8, "t8"], [8, 8, "t8"], [-1, 8, "No token is selected."], [8, 8, "t8"]]
    assert opened == 1 and cleared and not left


def test_the_sentence_is_said_once_it_comes_and_never_that_of_another_token(in_node):
    setup = MOUNTED + "mounted.pick(1); model.set('sentence', 'one'); step(); mounted.pick(2); step();"
    setup += "model.set('sentence', 'two'); step();"
    assert in_node("steps.map((step) => step[2])", many(40), setup) == ["one", "", "two"]


def test_what_another_panel_selects_is_for_that_one_to_say(in_node):
    setup = MOUNTED + "mounted.pick(1); model.set('sentence', 'one'); step(); model.set('selected', 5); step();"
    setup += "model.set('sentence', 'five'); step(); mounted.pick(6); model.set('sentence', 'six'); step();"
    assert in_node("steps.map((step) => step[2])", many(40), setup) == ["one", "", "", "six"]


def test_tokens_that_come_later_leave_the_place_and_other_tokens_begin_at_the_top(in_node):
    setup = MOUNTED + "list.scrollTop = 60; mounted.active = 7; model.set('tokens', [...tokens, ...tokens]);"
    setup += "const more = [list.scrollTop, mounted.active];"
    setup += "model.set('tokens', tokens.map((token) => ({ ...token, label: `other ${token.label}` })));"
    assert in_node("[more, [list.scrollTop, mounted.active]]", many(80), setup) == [[60, 7], [0, -1]]


def test_a_token_that_is_a_script_is_text_in_the_page(in_node):
    tokens = [{**many(1)[0], "text": "<script>alert(1)</script>", "label": "<b>"}]
    found = in_node("[options()[0].textContent, el.find((n) => n.tag === 'script').length]", tokens, MOUNTED)
    assert found == ["<script>alert(1)</script>", 0]


def test_a_strip_follows_its_selection_and_moves_it():
    selection = Selection(TRACE)
    strip = TokenStrip(selection=selection)
    assert strip.tokens == tokens_of(TRACE, 0) and strip.selected == selection.selected
    assert strip.title.startswith("code-0 · code: 40 tokens")
    strip.selected = 5
    assert selection.selected == 5 and strip.sentence == sentence(TRACE, selection.row)
    selection.show(TRACE, 2)
    assert strip.tokens == tokens_of(TRACE, 2) and strip.selected == selection.selected
    assert strip.title.startswith("code-2") and strip.sentence == sentence(TRACE, selection.row)
    selection.show(None)
    assert (strip.tokens, strip.selected, strip.title, strip.sentence) == ([], -1, "", "")


def test_a_given_title_stays():
    selection = Selection(TRACE)
    strip = TokenStrip(selection=selection, title="mine")
    selection.show(TRACE, 1)
    assert strip.title == "mine"
