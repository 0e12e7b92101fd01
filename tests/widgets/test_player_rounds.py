"""What the round player plays: steps, times, caches and lanes, for every kind of trace, as plain JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from specworkbench.errors import InputError
from specworkbench.paths import traces_dir
from specworkbench.trace import load_trace
from specworkbench.widgets import player_twin
from specworkbench.widgets.player_lanes import PHASES
from specworkbench.widgets.player_rounds import player_rounds, step_of
from specworkbench.widgets.tables import strip_rows
from tests.widgets.player import PLAIN, PLAYED, TRACE, kinds_of, steps_of, tree_trace
from tests.widgets.traces import spoken


def round_with(trace, **columns):
    """(sequence, round) of the first round with these numbers."""
    rounds = trace.rounds
    for name, value in columns.items():
        rounds = rounds[rounds[name] == value]
    return int(rounds["sequence"].iloc[0]), int(rounds["round"].iloc[0])


@pytest.fixture(scope="module", params=[False, True], ids=["certain", "sampled"])
def tree(request):
    return tree_trace(sampled=request.param)


# ---------------------------------------------------------------- what is played


def test_what_is_played_is_plain_json_without_nan():
    for trace in (TRACE, PLAIN, spoken(rule="greedy"), spoken(misses=0.5), spoken(capture="none")):
        played = player_rounds(trace)
        assert json.loads(json.dumps(played, allow_nan=False)) == played


def test_times_are_those_of_the_trace_on_one_clock():
    rounds = TRACE.rounds[TRACE.rounds["sequence"] == 1]
    clock = 12.0 + 1.5  # both prefills of the toy
    for played, row in zip(PLAYED["rounds"], rounds.itertuples(), strict=True):
        assert played["start"] == pytest.approx(clock)
        assert played["phases"][:4] == [row.ms_propose, row.ms_verify, row.ms_accept, row.ms_rollback]
        assert sum(played["phases"]) == pytest.approx(row.ms_total)
        clock += row.ms_total
    steps = PLAYED["steps"]
    assert steps[0]["start"] == 13.5 and steps[-1]["end"] == pytest.approx(clock)
    assert [step["start"] for step in steps[1:]] == pytest.approx([step["end"] for step in steps[:-1]])


def test_a_step_lies_in_its_phase():
    phase_of = {"propose": "propose", "verify": "verify", "decide": "accept"}
    for number, played in enumerate(PLAYED["rounds"]):
        edges = played["start"] + np.cumsum([0, *played["phases"]])
        for step in steps_of(PLAYED, number):
            phase = PHASES.index(phase_of.get(step["kind"], "rollback"))
            if played["proposed"] == 0:
                continue
            last = edges[-1] if step["kind"] == "roll back" else edges[phase + 1]
            assert edges[phase] - 1e-9 <= step["start"] < step["end"] <= last + 1e-9


def test_a_round_goes_from_proposing_to_rolling_back_and_judges_in_order():
    for number, played in enumerate(PLAYED["rounds"]):
        examined = [i for i, token in enumerate(played["tokens"]) if token["outcome"] in ("accepted", "rejected")]
        expected = ["propose", "verify", *["decide"] * len(examined), "emit", "roll back"]
        assert kinds_of(PLAYED, number) == expected
        assert [step["token"] for step in steps_of(PLAYED, number) if step["kind"] == "decide"] == examined
        assert [played["tokens"][i]["decided"] for i in examined] == list(range(len(examined)))


def test_every_step_selects_a_token_of_its_round():
    strip = strip_rows(TRACE, 1)
    for step in PLAYED["steps"]:
        row = strip.iloc[step["index"]]
        assert row["round"] == PLAYED["rounds"][step["round"]]["round"]
        if step["kind"] == "decide":
            assert row["outcome"] in ("accepted", "rejected") and f"position {row['position']}" in step["text"]
        if step["kind"] in ("emit", "roll back"):
            assert row["node"] == -1


def test_every_token_of_the_strip_has_its_step():
    strip = strip_rows(TRACE, 1)
    for index, row in strip.iterrows():
        step = PLAYED["steps"][step_of(PLAYED, index)]
        assert PLAYED["rounds"][step["round"]]["round"] == row["round"]
        assert step["index"] == index or row["outcome"] == "discarded"
        assert step["kind"] == ("emit" if row["node"] < 0 else "decide")
    assert step_of(PLAYED, -1) == step_of(PLAYED, len(strip)) == -1


def test_the_cache_grows_by_the_forward_and_is_rolled_back_to_what_the_trace_says():
    rounds = TRACE.rounds[TRACE.rounds["sequence"] == 1].reset_index(drop=True)
    held = len(TRACE.sequences[1]["prompt_tokens"]) - 1
    for played, row in zip(PLAYED["rounds"], rounds.itertuples(), strict=True):
        assert played["cache"] == [held, held + row.proposed + 1, row.target_cache_tokens]
        held = row.target_cache_tokens
        text = next(s["text"] for s in PLAYED["steps"] if s["kind"] == "roll back" and s["round"] == row.Index)
        dropped = played["cache"][1] - held
        assert (f"{dropped} of these taken back" if dropped else "nothing to take back") in text


def test_a_verify_step_tells_positions_and_time():
    row = TRACE.rounds[TRACE.rounds["sequence"] == 1].iloc[3]
    text = next(step["text"] for step in steps_of(PLAYED, 3) if step["kind"] == "verify")
    words = f"Round 3, verify: one forward of the target over {row.target_positions} positions, {row.ms_verify:.1f} ms"
    assert text.startswith(words)


def test_a_round_without_a_guess_has_no_decision_and_says_why():
    trace = spoken(misses=0.5)
    sequence, number = round_with(trace, proposed=0, shortened="")
    played = player_rounds(trace, sequence)
    assert kinds_of(played, number) == ["propose", "verify", "emit", "roll back"]
    assert "found none" in steps_of(played, number)[0]["text"]
    times, phases = steps_of(played, number), played["rounds"][number]["phases"]
    assert times[2]["end"] - times[2]["start"] == pytest.approx(phases[2])  # the rule's time is the drawing's
    assert played["rounds"][number]["tokens"][0]["outcome"] == "plain"


def test_a_shortened_round_says_why():
    trace = spoken(gamma=3)
    found = trace.rounds[(trace.rounds["shortened"] == "budget") & (trace.rounds["proposed"] > 0)].iloc[0]
    played = player_rounds(trace, int(found["sequence"]))
    assert "Fewer than gamma = 3: the limit of new tokens" in steps_of(played, int(found["round"]))[0]["text"]
    nothing = trace.rounds[(trace.rounds["shortened"] == "budget") & (trace.rounds["proposed"] == 0)]
    if len(nothing):
        sequence, number = int(nothing["sequence"].iloc[0]), int(nothing["round"].iloc[0])
        text = steps_of(player_rounds(trace, sequence), number)[0]["text"]
        assert "nothing, since the limit of new tokens left room for one only" in text


def test_tokens_that_eos_cut_off_are_marked_and_told():
    trace = spoken(eos_ids=(3,))
    kept = trace.positions[trace.positions["outcome"].isin(["accepted", "bonus", "corrected"])]
    rows = kept[~kept["emitted"]]
    sequence, number = int(rows["sequence"].iloc[0]), int(rows["round"].iloc[0])
    played = player_rounds(trace, sequence)
    tokens = played["rounds"][number]["tokens"]
    assert any(token["cut"] for token in tokens) and not any(token["cut"] and token["emitted"] for token in tokens)
    text = next(step["text"] for step in steps_of(played, number) if step["kind"] == "emit")
    assert "an end-of-sequence token came before it" in text
    output = len(trace.sequences[sequence]["token_ids"])
    assert f"to {output} tokens" in text


def test_a_greedy_rule_compares_and_has_no_u():
    trace = spoken(rule="greedy")
    played = player_rounds(trace)
    judged = [token for round_ in played["rounds"] for token in round_["tokens"] if token["decided"] >= 0]
    assert judged and all(token["u"] is None and token["u_text"] == "" for token in judged)
    assert "compared, no u" in player_twin.player_html(played, 2)


def test_a_lossy_rule_is_told_in_the_title():
    trace = spoken()
    trace.manifest["rule"] = {"name": "lenient", "lossless": False, "settings": {"leniency": 0.5}}
    assert "lossy" in player_rounds(trace)["title"] and "lossy" not in PLAYED["title"]


def test_a_plain_run_plays_alone_without_proposing():
    played = player_rounds(PLAIN)
    assert set(kinds_of(played, 0)) == {"verify", "emit", "roll back"}
    assert played["lanes"]["plain"] is None and "plain decoding itself" in played["plain_note"]
    assert played["lanes"]["this"]["name"] == "plain decoding"


def test_what_a_plain_round_spends_before_its_forward_is_in_its_first_step():
    rounds = PLAIN.rounds.assign(ms_propose=0.5, ms_total=PLAIN.rounds["ms_total"] + 0.5)
    played = player_rounds(replace(PLAIN, rounds=rounds))
    first, last = played["steps"][0], played["steps"][-1]
    own = rounds[rounds["sequence"] == 0]
    assert first["end"] - first["start"] == pytest.approx(0.5 + own["ms_verify"].iloc[0])
    assert last["end"] - first["start"] == pytest.approx(own["ms_total"].sum())


def test_a_tree_is_judged_by_depth_and_keeps_one_path(tree):
    played = player_rounds(tree)
    assert any(round_["tree"] for round_ in played["rounds"])
    for number, round_ in enumerate(played["rounds"]):
        tokens = round_["tokens"]
        decided = [tokens[step["token"]] for step in steps_of(played, number) if step["kind"] == "decide"]
        assert [token["position"] for token in decided] == sorted(token["position"] for token in decided)
        assert sum(token["outcome"] == "accepted" for token in decided) == round_["accepted"]
        assert all(tokens[token["parent"]]["node"] == token["parent"] for token in tokens if token["parent"] >= 0)
        unseen = [token for token in tokens if token["outcome"] == "discarded"]
        assert all(token["index"] == -1 and token["decided"] == -1 for token in unseen)
    assert "nodes of the tree" in next(step["text"] for step in played["steps"] if step["kind"] == "verify")
    html = player_twin.player_html(played, 0)
    assert html.count('class="swbp-card"') == len(played["rounds"][0]["tokens"]) and "after " in html


def test_a_sequence_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no sequence 99"):
        player_rounds(TRACE, 99)


# ---------------------------------------------------------------- the plain lane


def test_the_plain_lane_is_the_recorded_run_of_the_same_prompt():
    lane = PLAYED["lanes"]["plain"]
    rounds = PLAIN.rounds[PLAIN.rounds["sequence"] == 1]
    assert lane["measured"] and lane["prefill"] == pytest.approx(13.5)
    assert [sum(block["phases"]) for block in lane["blocks"]] == pytest.approx(rounds["ms_total"].tolist())
    assert sum(len(block["texts"]) for block in lane["blocks"]) == len(PLAIN.sequences[1]["token_ids"])
    assert "random numbers of its own" in PLAYED["plain_note"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda trace: trace.manifest.update(device="cuda: X"), "its device is cuda: X, this run's cpu"),
        (lambda trace: trace.manifest["target"].update(name="other"), "its target has name other, this run's toy"),
        (lambda trace: trace.manifest["target"].update(products={"threads": 2}), "products the machine's fastest"),
        (lambda trace: trace.manifest["sampling"].update(temperature=0.5), "its sampling has temperature 0.5, this"),
        (lambda trace: trace.manifest["proposer"].update(name="ngram"), "recorded with the proposer ngram"),
        (lambda trace: trace.sequences[1].update(prompt_tokens=[0]), "no sequence with this prompt"),
    ],
)
def test_a_run_that_cannot_stand_on_the_same_clock_is_left_out_with_a_sentence(change, words):
    plain = spoken(proposer="none")
    change(plain)
    played = player_rounds(TRACE, 1, plain)
    assert played["lanes"]["plain"] is None and words in played["plain_note"] and "plain=" in played["plain_note"]


def test_without_a_plain_run_single_steps_of_the_trace_stand_for_it_and_are_called_so():
    trace = spoken(misses=0.3)
    single = trace.rounds[trace.rounds["target_positions"] == 1]
    played = player_rounds(trace, 0)
    lane = played["lanes"]["plain"]
    step = np.median(single["ms_verify"] + single["ms_accept"])
    assert not lane["measured"] and len(lane["blocks"]) == len(trace.sequences[0]["token_ids"])
    assert {sum(block["phases"]) for block in lane["blocks"]} == {step}
    assert f"median of the {len(single)} rounds" in played["plain_note"] and "plain=" in played["plain_note"]


def test_without_any_plain_step_there_is_no_second_lane_and_a_sentence_says_how_to_get_it():
    full = TRACE.rounds[TRACE.rounds["target_positions"] > 1]
    played = player_rounds(replace(TRACE, rounds=full), 0)
    assert played["lanes"]["plain"] is None and "No plain run was recorded" in played["plain_note"]
    assert "proposer none" in played["plain_note"]


def test_the_shipped_runs_are_of_the_same_prompts_and_stand_on_one_clock():
    trace, plain = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart", "quickstart_plain"))
    for sequence in range(len(trace.sequences)):
        lane = player_rounds(trace, sequence, plain)["lanes"]["plain"]
        assert lane["measured"] and len(lane["blocks"]) == len(plain.sequences[sequence]["token_ids"])
    assert (traces_dir() / "quickstart_plain.trace").stat().st_size < 100_000
