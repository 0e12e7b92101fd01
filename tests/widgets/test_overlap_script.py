"""The playground's script in node, on a page of tests: it computes and says what Python does, and hears every key."""

import re

import numpy as np
import pytest

from specworkbench.theory.one_position import RULES, SETTINGS, one_position, with_probability
from specworkbench.widgets import OverlapPlayground, overlap_playground
from specworkbench.widgets.overlap_twin import in_words, verdict
from tests.widgets.drawn import unpacked
from tests.widgets.node import node_runner
from tests.widgets.overlap import FOLDER, HARMFUL, state_of


def test_script_makes_no_html_of_text_and_fetches_nothing():
    script = OverlapPlayground._esm if isinstance(OverlapPlayground._esm, str) else str(OverlapPlayground._esm)
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import ", "fetch("):
        assert forbidden not in script
    assert re.findall(r"https?://[^\"]*", script) == ["http://www.w3.org/2000/svg"]
    assert "http" not in (FOLDER / "overlap_playground.css").read_text(encoding="utf-8")


SHOWN = """
function shown(state) { const document = page(); const model = new Model(state);
  const el = document.createElement('div'); const leave = it.default.render({ model, el });
  const sliders = el.find((node) => node.attributes.role === 'slider');
  const control = (tag, label) => el.find((n) => n.tag === tag && (n.attributes['aria-label'] === label
    || n.textContent === label || n.parent?.textContent === `${label} `))[0];
  return { document, model, el, leave, sliders, control }; }
"""


@pytest.fixture(scope="module")
def in_node(tmp_path_factory):
    """`in_node(code, **values)`: what the code returns as JSON; it sees the script as `it`, and a page and a model."""
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in overlap_playground._SCRIPTS)
    return node_runner(tmp_path_factory.mktemp("playground"), script, SHOWN)


def cases():
    """Pairs and settings for every rule."""
    random = np.random.default_rng(3)
    pairs = [random.dirichlet(np.ones(size), size=2) for size in (4, 5, 8) for _ in range(3)]
    pairs += [(entry["rows"]["5"]["p"], entry["rows"]["5"]["q"]) for entry in overlap_playground.PRESETS]
    for p, q in pairs:
        for name, rule in RULES.items():
            settings = {key: SETTINGS[key].default for key in rule.settings}
            yield name, list(map(float, p)), list(map(float, q)), settings
            more = {"k": 3, "floor": 0.2, "leniency": 0.3, "weight": 0.1, "epsilon": 0.6, "delta": 0.9}
            yield name, list(map(float, p)), list(map(float, q)), {key: more[key] for key in rule.settings}


def test_the_browser_computes_what_python_computes(in_node):
    given = list(cases())
    rules = {entry["name"]: entry for entry in overlap_playground._RULES}
    code = "return given.map(([name, p, q, s]) => it.onePosition(p, q, rules[name], s))"
    found = in_node(code, given=given, rules=rules)
    for (name, p, q, settings), position in zip(given, found, strict=True):
        expected = one_position(p, q, name, **settings)
        for array in ("guess", "accept", "accepted", "residual", "replacement", "replaced", "emitted"):
            assert position[array] == pytest.approx(getattr(expected, array).tolist(), abs=1e-14), (name, array)
        assert position["acceptance"] == pytest.approx(expected.acceptance, abs=1e-14)
        assert position["tv"] == pytest.approx(expected.tv, abs=1e-14)


def test_the_browser_says_what_python_says(in_node):
    given = list(cases())
    rules = {entry["name"]: entry for entry in overlap_playground._RULES}
    tokens = list("abcdefgh")
    code = (
        "return given.map(([name, p, q, s]) =>"
        " [it.verdict(it.onePosition(p, q, rules[name], s), rules[name], tokens), it.inWords(rules[name])])"
    )
    for (name, p, q, settings), said in zip(given, in_node(code, given=given, rules=rules, tokens=tokens), strict=True):
        position = one_position(p, q, name, **settings)
        assert said == [verdict(position, RULES[name], tokens), in_words(RULES[name])]


def test_moving_a_bar_is_the_same_in_browser_and_python(in_node):
    random = np.random.default_rng(5)
    moves = [(random.dirichlet(np.ones(5)).tolist(), index, value) for index, value in ((0, 0.0), (2, 0.3), (4, 1.0))]
    moves.append(([0.0, 1.0, 0.0, 0.0], 1, 0.4))
    found = in_node("return moves.map((move) => it.withProbability(...move))", moves=moves)
    for move, probs in zip(moves, found, strict=True):
        assert probs == pytest.approx(with_probability(*move).tolist(), abs=1e-15)


def test_keys_and_heights_lead_to_probabilities(in_node):
    code = """
    const keys = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft", "PageUp", "PageDown", "Home", "End", "x", "Tab"];
    const box = { top: 100, height: 528 };
    return [keys.map((key) => it.stepped(0.5, key)), [it.stepped(0.995, "ArrowUp"), it.stepped(0, "PageDown")],
            [100 + 2 * 196, 100 + 2 * 16, 100 + 2 * 106, 0, 9999].map((y) => it.valueAt(y, box))];
    """
    keys, ends, heights = in_node(code, nothing=0)
    assert keys == [0.51, 0.51, 0.49, 0.49, 0.6, 0.4, 0, 1, None, None] and ends == [1, 0]
    assert heights == pytest.approx([0, 1, 0.5, 1, 0])


def test_every_bar_is_a_slider_with_a_name_and_a_value(in_node):
    state = state_of(OverlapPlayground(tokens=[HARMFUL, "b", "c", "d", "e"]))
    code = "const { sliders } = shown(state); return sliders.map((node) => node.attributes)"
    sliders = in_node(code, state=state)
    assert len(sliders) == 10
    assert {slider["aria-label"] for slider in sliders} == {f"{r} of {t}" for r in "pq" for t in [HARMFUL, *"bcde"]}
    for slider in sliders:
        assert slider["tabindex"] == "0" and slider["aria-valuemin"] == "0" and slider["aria-valuemax"] == "1"
        row, token = slider["aria-label"].split(" of ")
        assert float(slider["aria-valuenow"]) == pytest.approx(state[row][state["tokens"].index(token)], abs=5e-4)


def test_keys_on_a_bar_move_it_and_python_gets_the_distribution(in_node):
    playground = OverlapPlayground()
    code = """
    const { model, sliders } = shown(state);
    sliders[1].focus();
    const used = ["ArrowUp", "PageUp", "Tab"].map((key) => sliders[1].fire("keydown", { key }));
    return [used, model.get("p"), model.get("q"), model.saves, sliders[1].attributes["aria-valuenow"]];
    """
    used, p, q, saves, now = in_node(code, state=state_of(playground))
    assert used == [True, True, False] and saves == 2 and p == playground.p
    assert q == pytest.approx(with_probability(playground.q, 0, playground.q[0] + 0.11).tolist(), abs=1e-12)
    assert float(now) == pytest.approx(playground.q[0] + 0.11, abs=5e-4)
    playground.set_state({"q": q})
    assert playground.q == q


def test_what_came_of_a_move_is_told_at_rest_and_nothing_before_it(in_node):
    code = """
    let due = [];
    globalThis.setTimeout = (callback) => due.push(callback);
    globalThis.clearTimeout = (id) => { due = due.filter((_, i) => i !== id - 1); };
    const { model, sliders, el } = shown(state);
    const told = () => el.find((node) => node.attributes.role === "status")[0].textContent, heard = [told()];
    for (const key of ["End", "ArrowDown"]) sliders[0].fire("keydown", { key });
    heard.push(told(), due.length);
    due[0]();
    heard.push(told());
    model.set("q", [...model.get("p")]);
    return [...heard, told()];
    """
    before, during, waiting, after, then = in_node(code, state=state_of(OverlapPlayground()))
    assert (before, during, waiting, then) == ("", "", 1, "") and after.startswith("Accepted with probability")


def test_a_bar_dragged_to_the_top_and_back_leaves_the_others_as_they_were(in_node):
    code = """
    const { model, sliders, el } = shown(state);
    const height = (value) => 100 + 196 - 180 * value;
    const seen = [];
    sliders[0].fire("pointermove", { clientY: height(0.9) });
    seen.push([...model.get("p")]);
    sliders[0].fire("pointerdown", { clientY: height(0.5) });
    for (const value of [0.9, 1, 0.4]) {
      sliders[0].fire("pointermove", { clientY: height(value) });
      seen.push([...model.get("p")]);
    }
    const dragging = el.children[0].classList.names.has("swb-dragging");
    sliders[0].fire("pointerup");
    return [seen, dragging, el.children[0].classList.names.has("swb-dragging")];
    """
    state = state_of(OverlapPlayground())
    seen, during, after = in_node(code, state=state)
    assert seen[0] == state["p"], "a bar that is not held does not follow the pointer"
    assert [row[0] for row in seen[1:]] == pytest.approx([0.9, 1, 0.4]) and seen[2][1:] == [0, 0, 0, 0]
    assert seen[3] == pytest.approx(state["p"]) and during and not after


def test_rule_settings_presets_sizes_and_reset(in_node):
    code = """
    const { model, el, control } = shown(state);
    const choose = (label, value) => { const it = control("select", label); it.value = value; it.fire("change"); };
    choose("rule", "lenient");
    const input = control("input", "leniency");
    const offered = [input.attributes, input.value];
    input.value = "7"; input.fire("change");
    const limited = model.get("settings").leniency;
    input.value = ""; input.fire("change");
    choose("number of tokens", "8"); choose("preset", "certain");
    const loaded = [model.get("tokens"), model.get("q"), model.get("settings").leniency];
    const sliders = el.find((node) => node.attributes.role === "slider").length;
    control("button", "Reset").fire("click");
    const names = ["tokens", "p", "q", "rule", "settings"];
    return { offered, limited, loaded, sliders, reset: names.every((n) =>
      JSON.stringify(model.get(n)) === JSON.stringify(state[n])), rule: control("select", "rule").value };
    """
    state = state_of(OverlapPlayground())
    found = in_node(code, state=state)
    limits = SETTINGS["leniency"]
    assert found["offered"][0] == {"type": "number", "min": str(limits.low), "max": "1", "step": str(limits.step)}
    assert float(found["offered"][1]) == limits.default and found["limited"] == 1
    assert found["loaded"] == [list("abcdefgh"), [0, 1, 0, 0, 0, 0, 0, 0], 1] and found["sliders"] == 16
    assert found["reset"] and found["rule"] == "token"


def test_rules_are_offered_by_kind(in_node):
    code = """
    const { control } = shown(state);
    return control("select", "rule").children.map((group) =>
      [group.attributes.label, group.children.map((option) => option.attributes.value)]);
    """
    groups = dict(in_node(code, state=state_of(OverlapPlayground())))
    kinds = {"keeps p": "exact", "lossy by design": "lossy", "a fault": "fault"}
    assert {kinds[label]: names for label, names in groups.items()} == {
        kind: [name for name, rule in RULES.items() if rule.kind == kind] for kind in kinds.values()
    }


def test_numbers_and_words_follow_python(in_node):
    playground = OverlapPlayground(rule="resample from p")
    code = """
    const { model, el } = shown({ ...state, rule: "token" });
    model.set("rule", state.rule);
    const cells = el.find((n) => n.tag === "tr").map((row) => row.children.map((cell) => cell.textContent));
    return [cells, el.find((n) => n.className === "swb-says")[0].textContent, el.textContent.includes("▲")];
    """
    cells, says, marked = in_node(code, state=state_of(playground))
    position = playground.position
    rows = {row[0]: row[1:] for row in cells}
    assert rows["comes out"] == [f"{value:.3f}" for value in position.emitted]
    assert {sign[0] for sign in rows["comes out − p"]} == {"+", "−"} and marked
    rule = RULES["resample from p"]
    assert says == f"≠ p  {verdict(position, rule, playground.tokens)} {rule.says}"


@pytest.mark.parametrize("rule", ["token", "residual |p − q|"])
def test_the_browser_draws_what_the_twin_draws(in_node, rule):
    """Every bar of the three figures, by place and size, and the glyphs above them."""
    playground = OverlapPlayground(rule=rule)
    code = """
    const { el } = shown(state);
    const bars = (node) => node.find((n) => n.tag === "rect" && n.attributes.x !== undefined
      && !["swb-lane", "swb-grip"].includes(n.attributes.class)).map(({ attributes: a }) =>
      ["x", "y", "width", "height"].map((name) => Number(a[name])));
    const marks = el.find((n) => n.attributes.class === "swb-mark").map((n) => n.textContent).join("");
    return [el.find((n) => n.tag === "figure").map(bars), marks];
    """
    drawn, marks = in_node(code, state=state_of(playground))
    html = unpacked(playground.to_html())
    number = r'="([-\d.]+)"'
    look = f"<rect x{number} y{number} width{number} height{number}"
    for bars, figure in zip(drawn, html.split("<figure")[1:], strict=True):
        twin = [[float(value) for value in found] for found in re.findall(look, figure)]
        assert len(twin) >= 10 and np.array(bars) == pytest.approx(np.array(twin), abs=0.011)
    assert marks == "".join(re.findall("[▲▼]", html))


def test_sizes_that_differ_are_told_in_the_widget_and_can_be_left(in_node):
    code = """
    const { model, el, control } = shown(state);
    model.set("p", [0.5, 0.5]);
    const alert = el.find((node) => node.attributes.role === "alert").map((node) => node.textContent);
    control("button", "Reset").fire("click");
    return [alert, el.find((node) => node.attributes.role === "alert").length,
            el.find((node) => node.attributes.role === "slider").length];
    """
    alert, after, sliders = in_node(code, state=state_of(OverlapPlayground()))
    assert alert == ["p has 2 tokens, q has 5 and there are 5 names: give all the same number."]
    assert after == 0 and sliders == 10


def test_leaving_the_page_leaves_nothing_behind(in_node):
    code = """
    const { model, el, leave } = shown(state);
    leave();
    return [Object.values(model.handlers).flat().length, el.children.length];
    """
    assert in_node(code, state=state_of(OverlapPlayground())) == [0, 0]
