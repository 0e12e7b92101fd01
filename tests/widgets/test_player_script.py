"""The round player's script in node: what it knows at a step, what it shows, how it steps and plays."""

import numpy as np
import pytest

from specworkbench.widgets import RoundPlayer, player_twin
from specworkbench.widgets.player_rounds import player_rounds
from tests.widgets.player import PLAIN, PLAYED, TRACE, player_in_node, state_of, steps_of, tree_trace
from tests.widgets.traces import spoken

PLAYER = RoundPlayer(TRACE, 1, plain=PLAIN)


@pytest.fixture(scope="module")
def in_node(tmp_path_factory):
    return player_in_node(tmp_path_factory.mktemp("player"))


@pytest.fixture(scope="module")
def tree():
    return tree_trace(sampled=True)


def test_keys_move_by_step_and_by_round_and_stop_at_the_ends(in_node):
    starts = [i for i, step in enumerate(PLAYED["steps"]) if step["kind"] == "propose"]
    last = len(PLAYED["steps"]) - 1
    moves = [(0, "ArrowRight", 1), (last, "ArrowRight", last), (0, "ArrowLeft", 0), (5, "ArrowLeft", 4)]
    moves += [(starts[2] + 1, "ArrowDown", starts[3]), (starts[2] + 1, "ArrowUp", starts[1]), (1, "ArrowUp", 0)]
    moves += [(last, "ArrowDown", last), (9, "Home", 0), (9, "End", last), (3, "x", None), (3, "Tab", None)]
    code = "return moves.map(([at, key]) => it.moved(played, at, key))"
    found = in_node(code, moves=[move[:2] for move in moves], played=PLAYED)
    assert found == [to for *_, to in moves]


def test_what_is_known_of_a_token_grows_step_by_step(in_node):
    number = PLAYED["steps"][PLAYER.step]["round"]
    code = """return played.steps.map((step, at) =>
      played.rounds[step.round].tokens.map((token) => it.knownOf(played, at, token)))"""
    known = in_node(code, played=PLAYED)
    for at, (step, tokens) in enumerate(zip(PLAYED["steps"], known, strict=True)):
        if step["round"] != number:
            continue
        rows = PLAYED["rounds"][number]["tokens"]
        for row, what in zip(rows, tokens, strict=True):
            assert what["shown"] == (row["node"] >= 0 or step["kind"] in ("emit", "roll back"))
            assert what["p"] == (step["kind"] != "propose")
        judged = [row["outcome"] for row, what in zip(rows, tokens, strict=True) if what["judged"] and row["node"] >= 0]
        if step["kind"] in ("propose", "verify"):
            assert judged == []
        if step["kind"] == "decide" and rows[step["token"]]["outcome"] == "accepted":
            assert judged == ["accepted"] * (rows[step["token"]]["decided"] + 1) or at == PLAYER.step
        if step["kind"] == "emit":
            assert judged == [row["outcome"] for row in rows if row["node"] >= 0]


def test_the_cache_is_that_of_the_trace_at_every_step(in_node):
    caches = in_node("return played.steps.map((_, at) => it.cacheAt(played, at))", played=PLAYED)
    for step, cache in zip(PLAYED["steps"], caches, strict=True):
        before, verified, after = PLAYED["rounds"][step["round"]]["cache"]
        expected = {"propose": before, "roll back": after}.get(step["kind"], verified)
        states = [cell["state"] for cell in cache["cells"]]
        assert cache["length"] == expected and len(states) == (0 if step["kind"] == "propose" else verified - before)
        if step["kind"] == "roll back":
            assert states.count("kept") == after - before


def test_a_trees_cache_keeps_the_accepted_path(in_node, tree):
    played = player_rounds(tree)
    caches = in_node("return played.steps.map((_, at) => it.cacheAt(played, at))", played=played)
    for step, cache in zip(played["steps"], caches, strict=True):
        round_ = played["rounds"][step["round"]]
        if step["kind"] == "roll back":
            kept = [cell["state"] == "kept" for cell in cache["cells"][1:]]
            stayed = sum(token["outcome"] == "accepted" for token in round_["tokens"])
            assert sum(kept) == min(stayed, round_["cache"][2] - round_["cache"][0] - 1)
            outcomes = [token["outcome"] for token in round_["tokens"]]
            assert {outcome for outcome, stays in zip(outcomes, kept, strict=False) if stays} <= {"accepted"}


def test_moments_windows_and_ticks(in_node):
    code = """
    const blocks = it.placed(played.lanes.this), last = played.steps.length - 1;
    const middle = (step) => (step.start + step.end) / 2;
    return {
      at: played.steps.map((step) => it.stepAt(played, middle(step))),
      ends: blocks.map((block) => block.end), starts: blocks.map((block) => block.start),
      by: played.steps.map((step) => it.tokensBy(blocks, step.end)),
      near: it.windowOf(played, last, false, [1, 2]), whole: it.windowOf(played, last, true, [70, 90]),
      grouped: it.blocksIn(blocks, { from: 0, to: 1e9 }, 3).map(({ first, last, phases, texts }) =>
        [first, last, phases.reduce((a, b) => a + b), texts.length]),
      ticks: [it.ticks({ from: 3, to: 41 }), it.ticks({ from: 0, to: 0.9 })],
    }"""
    found = in_node(code, played=PLAYED)
    rounds = PLAYED["rounds"]
    assert found["at"] == list(range(len(PLAYED["steps"])))
    assert found["starts"] == pytest.approx([round_["start"] for round_ in rounds])
    assert found["ends"] == pytest.approx([round_["start"] + sum(round_["phases"]) for round_ in rounds])
    out = np.cumsum([0, *(round_["emitted"] for round_ in rounds)])
    for step, count in zip(PLAYED["steps"], found["by"], strict=True):
        assert count == out[step["round"] + (step["kind"] in ("emit", "roll back"))]
    assert found["whole"] == {"from": 0, "to": 90} and found["near"]["from"] < rounds[-1]["start"] < found["near"]["to"]
    assert len(found["grouped"]) <= 3 and found["grouped"][0][0] == 0
    assert sum(group[2] for group in found["grouped"]) == pytest.approx(sum(sum(r["phases"]) for r in rounds))
    assert sum(group[3] for group in found["grouped"]) == out[-1] and found["grouped"][-1][1] == len(rounds) - 1
    assert found["ticks"] == [[10, 20, 30, 40], [0, 0.2, 0.4, 0.6, 0.8]]


def test_the_page_shows_the_step_in_words_and_on_the_clock(in_node):
    code = """
    const { look, stage, control } = shown(state);
    pass(1000);
    return { sentence: look("swbp-sentence")[0].textContent, tracks: look("swbp-track").length,
      cards: look("swbp-card").map((node) => [node.attributes["data-judged"], node.attributes["data-shown"]]),
      standing: look("swbp-standing")[0].textContent, role: [stage.attributes.role, stage.attributes.tabindex],
      current: look("swbp-stages")[0].children.map((node) => node.attributes["aria-current"] ?? ""),
      labels: ["one step back", "one step on", "play", "speed", "round", "time shown"].map((l) => Boolean(control(l))),
      value: control("round").attributes["aria-valuetext"] };
    """
    found = in_node(code, state=state_of(PLAYER))
    step = PLAYED["steps"][PLAYER.step]
    tokens = PLAYED["rounds"][step["round"]]["tokens"]
    assert found["sentence"] == step["text"]
    assert found["tracks"] == 2 and all(found["labels"]) and found["role"] == ["group", "0"]
    assert len(found["cards"]) == len(tokens) and ["false", "false"] in found["cards"]  # the corrected one is to come
    assert found["current"] == ["", "", "step", "", ""]
    assert "plain decoding" in found["standing"] and found["value"] == f"round {step['round']}, decide"


def test_what_a_person_came_to_is_told_and_nothing_else(in_node):
    code = """
    const { el, model, stage, control } = shown({ ...state, step: 0 });
    const told = () => el.find((node) => node.attributes.role === "status")[0].textContent, heard = [];
    const after = (act, ms = 1000) => { act(); pass(ms); heard.push(told()); };
    after(() => {});
    after(() => control("one step on").fire("click"));
    const press = () => stage.parent.fire("keydown", { key: "ArrowRight", target: stage });
    after(() => { for (let i = 0; i < 3; i += 1) press(); }, 100);
    after(() => {});
    after(() => model.set("step", 9));
    after(() => control("play").fire("click"), 5000);
    after(() => control("pause").fire("click"));
    return [heard, state.played.steps[model.get("step")].text];
    """
    heard, paused = in_node(code, state=state_of(PLAYER))
    texts = [step["text"] for step in PLAYED["steps"]]
    assert heard == ["", texts[1], "", texts[4], "", "", paused]


def test_who_hears_the_page_knows_positions_cache_and_lanes(in_node):
    code = """
    const { el, look, stage } = shown(state);
    const label = (node) => node.attributes["aria-label"];
    return { lists: [look("swbp-columns")[0].attributes.role, ...look("swbp-column").map((n) => n.attributes.role)],
      cache: label(look("swbp-cache")[0]), lanes: look("swbp-track").map(label),
      help: stage.attributes["aria-description"],
      pictures: el.find((node) => node.attributes.role === "img").every(label) };
    """
    found = in_node(code, state=state_of(PLAYER))
    before, verified, _ = PLAYED["rounds"][PLAYED["steps"][PLAYER.step]["round"]]["cache"]
    assert found["lists"][0] == "list" and set(found["lists"][1:]) == {"listitem"} and found["pictures"]
    assert found["cache"].startswith(f"KV cache, {verified} tokens: {before} from before the round, and of the round")
    assert found["cache"].count(" held") == verified - before and "Arrow keys" in found["help"]
    assert [lane.split(":")[0] for lane in found["lanes"]] == [
        f"{lane['name']} on the clock" for lane in PLAYED["lanes"].values()
    ]


def test_text_that_would_do_harm_stays_text(in_node):
    code = """
    const { el, look } = shown(state);
    return [el.find((node) => node.tag === "script").length, look("swbp-token").map((node) => node.textContent)];
    """
    player = RoundPlayer(TRACE, 0)
    player.step = next(n for n, step in enumerate(player.played["steps"]) if "<script>" in step["text"])
    tokens = player.played["rounds"][player.played["steps"][player.step]["round"]]["tokens"]
    by_column = sorted(tokens, key=lambda token: (token["position"], token["node"] < 0))
    assert in_node(code, state=state_of(player)) == [0, [token["text"] for token in by_column]]
    assert any("<script>" in token["text"] for token in tokens)


def test_keys_and_buttons_step_and_python_is_told(in_node):
    code = """
    const { model, stage, look, control } = shown({ ...state, step: 0 });
    const body = stage.parent, seen = [];
    const press = (key, target = stage) => body.fire("keydown", { key, target });
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "End", "Home"]) {
      press(key);
      seen.push(model.get("step"));
    }
    const before = model.saves;
    const used = [press("Tab"), press("ArrowRight", control("round")), press(" ", control("one step on")),
      body.fire("keydown", { key: "ArrowRight", target: stage, ctrlKey: true })];
    control("one step on").fire("click"); seen.push(model.get("step"));
    control("one step back").fire("click"); seen.push(model.get("step"));
    control("round").value = "2"; control("round").fire("input"); seen.push(model.get("step"));
    look("swbp-card").at(-1).fire("click"); seen.push(model.get("step"));
    return [seen, used, before, model.saves, control("one step back").attributes["aria-disabled"]];
    """
    seen, used, before, saves, disabled = in_node(code, state=state_of(PLAYER))
    last = len(PLAYED["steps"]) - 1
    second, third = (PLAYED["steps"].index(steps_of(PLAYED, number)[0]) for number in (1, 2))
    drawn = next(i for i, step in enumerate(PLAYED["steps"]) if step["round"] == 2 and step["kind"] == "emit")
    assert seen == [1, 2, second, last, 0, 1, 0, third, drawn]
    assert used == [False, False, False, False] and before == 5 and saves == 9 and disabled == "false"


def test_python_moves_the_player_and_its_own_word_coming_back_does_not(in_node):
    code = """
    const { model, look, stage } = shown({ ...state, step: 0 });
    model.set("step", 7);
    const moved = look("swbp-sentence")[0].textContent;
    stage.parent.fire("keydown", { key: " ", target: stage });
    pass(60000);
    return [moved, model.get("step"), due.filter(({ kind }) => kind === "frame").length];
    """
    moved, step, running = in_node(code, state=state_of(PLAYER))
    assert moved == PLAYED["steps"][7]["text"] and step > 7 and running <= 1


def test_playing_keeps_the_measured_proportions_and_ends_at_the_last_step(in_node):
    code = """
    const { model, stage, look, control } = shown({ ...state, step: 0 });
    const press = (key) => stage.parent.fire("keydown", { key, target: stage });
    const text = () => look("swbp-sentence")[0].textContent;
    const started = now, changes = [];
    let last = text();
    press(" ");
    const label = control("pause") !== undefined;
    while (control("pause") && now - started < 1e6) {
      pass(16);
      if (text() !== last) { changes.push(now - started); last = text(); }
    }
    return { changes, label, took: now - started, saves: model.saves, step: model.get("step") };
    """
    found = in_node(code, state=state_of(PLAYER))
    steps = PLAYED["steps"]
    slowdown = 4000 * len(PLAYED["rounds"]) / (steps[-1]["end"] - steps[0]["start"])
    expected = [(step["start"] - steps[0]["start"]) * slowdown for step in steps[1:]]
    for step, wanted in zip(steps[1:], expected, strict=True):
        if (step["end"] - step["start"]) * slowdown > 40:  # a shorter one may go by between two frames
            assert min(abs(wanted - change) for change in found["changes"]) < 40
    assert found["label"] and found["took"] == pytest.approx(4000 * len(PLAYED["rounds"]), rel=0.02)
    assert found["step"] == len(steps) - 1 and found["saves"] < found["took"] / 400 + 3


def test_while_it_plays_python_is_told_no_faster_than_it_can_follow(in_node):
    code = """
    const { model, control, look } = shown({ ...state, step: 0 });
    control("speed").value = "0.25"; control("speed").fire("change");
    control("play").fire("click");
    const seen = new Set();
    for (let i = 0; i < 80; i += 1) { pass(16); seen.add(look("swbp-sentence")[0].textContent); }
    return [seen.size, model.saves];
    """
    steps, saves = in_node(code, state=state_of(PLAYER))
    assert steps > 8 and 3 <= saves <= 1280 / 400 + 1


def test_without_motion_steps_jump_and_the_playhead_stands_at_their_end(in_node):
    code = """
    const { stage, look, control } = shown({ ...state, step: 0 }, true);
    stage.parent.fire("keydown", { key: " ", target: stage });
    const places = new Set(), frames = due.filter(({ kind }) => kind === "frame").length;
    for (let i = 0; i < 400 && control("pause"); i += 1) {
      pass(16);
      places.add(look("swbp-playhead")[0].attributes.style);
    }
    return [frames, places.size, look("swbp-sentence")[0].textContent];
    """
    frames, places, text = in_node(code, state=state_of(PLAYER))
    reached = next(i for i, step in enumerate(PLAYED["steps"]) if step["text"] == text)
    assert frames == 0 and reached > 2 and places <= reached + 2


def test_a_person_stops_what_plays(in_node):
    code = """
    const { model, stage, control } = shown({ ...state, step: 0 });
    control("speed").value = "step"; control("speed").fire("change");
    control("play").fire("click");
    pass(3500);
    const played = model.get("step");
    stage.parent.fire("keydown", { key: "ArrowRight", target: stage });
    const stepped = model.get("step");
    pass(5000);
    return [played, stepped, model.get("step"), Boolean(control("play"))];
    """
    assert in_node(code, state=state_of(PLAYER)) == [3, 4, 4, True]


def test_another_sequence_while_playing_begins_anew_and_leaving_stops_everything(in_node):
    code = """
    const { model, control, look, leave } = shown({ ...state, step: 0 });
    control("play").fire("click");
    pass(500);
    model.set("played", other);
    const title = look("swb-title")[0].textContent;
    control("play").fire("click");
    leave();
    return [title, due.length, model.handlers["change:step"].length];
    """
    other = player_rounds(TRACE, 0)
    assert in_node(code, state=state_of(PLAYER), other=other) == [other["title"], 0, 0]


def test_empty_and_faulty_states_are_sentences(in_node):
    code = """return states.map((state) => shown(state).el.textContent)"""
    empty, faulty = state_of(RoundPlayer()), state_of(RoundPlayer(TRACE, 99))
    texts = in_node(code, states=[empty, faulty])
    assert texts[0] == player_twin.EMPTY and texts[1] == faulty["message"]


@pytest.mark.parametrize("options", [{"proposer": "none"}, {"rule": "greedy"}, {"misses": 0.5}, {"eos_ids": (3,)}])
def test_every_kind_of_trace_is_drawn_at_every_step(in_node, options):
    code = """
    const { model, look } = shown(state);
    return state.played.steps.map((step, at) => {
      model.set("step", at);
      return look("swbp-sentence")[0].textContent;
    });
    """
    player = RoundPlayer(spoken(**options), 0)
    assert in_node(code, state=state_of(player)) == [step["text"] for step in player.played["steps"]]


def test_a_tree_is_drawn_at_every_step(in_node, tree):
    code = """
    const { model, look } = shown(state);
    return state.played.steps.map((step, at) => { model.set("step", at); return look("swbp-card").length; });
    """
    player = RoundPlayer(tree)
    counts = [len(player.played["rounds"][step["round"]]["tokens"]) for step in player.played["steps"]]
    assert in_node(code, state=state_of(player)) == counts
