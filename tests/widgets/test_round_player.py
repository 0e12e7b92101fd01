"""The round player's traits and states without a browser, its static twin and its style."""

import re

from specworkbench.plots import palette
from specworkbench.widgets import RoundPlayer, player_twin
from specworkbench.widgets.player_rounds import player_rounds
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.tables import strip_rows
from tests.widgets.player import FOLDER, PLAIN, PLAYED, TRACE, steps_of
from tests.widgets.traces import first, spoken

# ---------------------------------------------------------------- traits


def test_it_opens_on_the_first_rejected_token():
    player = RoundPlayer(TRACE, 1, plain=PLAIN)
    step = player.played["steps"][player.step]
    assert step["kind"] == "decide" and strip_rows(TRACE, 1).iloc[step["index"]]["outcome"] == "rejected"
    assert player.selection.selected == step["index"] and player.played == PLAYED and player.message == ""


def test_one_selection_moves_both_ways():
    selection = Selection(TRACE, 1)
    player = RoundPlayer(selection=selection, plain=PLAIN)
    _, index, _ = first(TRACE, "bonus")
    selection.show(TRACE, 0)
    selection.selected = index
    step = player.played["steps"][player.step]
    assert step["kind"] == "emit" and step["index"] == index
    player.step = 0
    assert selection.selected == player.played["steps"][0]["index"] == 0
    player.step += 1
    assert selection.selected == 0 and player.played["steps"][player.step]["kind"] == "verify"


def test_a_discarded_token_shows_the_decision_that_discarded_it_and_stays_selected():
    sequence, index, row = first(TRACE, "discarded")
    selection = Selection(TRACE, sequence)
    player = RoundPlayer(selection=selection)
    selection.selected = index
    step = player.played["steps"][player.step]
    assert selection.selected == index and step["kind"] == "decide"
    assert player.played["rounds"][step["round"]]["round"] == row["round"]


def test_another_sequence_of_the_selection_is_played():
    selection = Selection(TRACE, 0)
    player = RoundPlayer(selection=selection, plain=PLAIN)
    selection.show(TRACE, 2)
    assert player.played == player_rounds(TRACE, 2, PLAIN) and player.message == ""
    other = spoken(seed=4)
    selection.show(other, 1)
    assert player.played["rounds"] == player_rounds(other, 1)["rounds"]
    selection.show(None)
    assert player.played == {} and player.step == 0


def test_a_plain_trace_may_come_later():
    player = RoundPlayer(TRACE, 1)
    player.plain = PLAIN
    assert player.played == PLAYED


def test_what_cannot_be_shown_is_a_sentence_and_what_was_played_stays():
    player = RoundPlayer(TRACE, 0)
    before = player.played
    player.show(TRACE, 99)
    assert player.message.startswith("There is no sequence 99") and player.played == before
    player.show(TRACE, 1)
    assert player.message == "" and len(player.played["rounds"]) == len(PLAYED["rounds"])
    assert RoundPlayer(TRACE, 99).message.startswith("There is no sequence 99")


def test_steps_past_the_ends_are_the_ends():
    player = RoundPlayer(TRACE, 1)
    player.step = 10**6
    assert player.step == len(player.played["steps"]) - 1
    player.step = -5
    assert player.step == 0


# ---------------------------------------------------------------- the static twin


def test_the_twin_lays_out_one_round_with_all_its_steps():
    player = RoundPlayer(TRACE, 1, plain=PLAIN)
    html = player.to_html().partition("</style>")[2]
    number = player.played["steps"][player.step]["round"]
    assert html.count("<li>") == len(steps_of(player.played, number))
    assert html.count('class="swbp-track"') == 2 and html.count('data-current="true"') == 1
    assert html.count('class="swbp-card"') == len(player.played["rounds"][number]["tokens"])
    dropped = player.played["rounds"][number]["cache"]
    assert html.count('data-state="dropped"') == dropped[1] - dropped[2]
    assert "<script" not in html


def test_text_is_escaped_in_the_twin():
    trace = spoken()
    trace.sequences[0]["id"] = "<img src=x>"
    player = RoundPlayer(trace, 0)
    player.message = "<b>no</b>"
    html = "".join(player.to_html() for player.step in range(0, len(player.played["steps"]), 4))
    assert "<script" not in html and "<img" not in html and "<b>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "&lt;img" in html


def test_blocks_of_the_twin_lie_within_their_track_and_phases_in_their_block():
    html = RoundPlayer(TRACE, 1, plain=PLAIN).to_html()
    places = re.findall(r"left: ([\d.]+)%; width: ([\d.]+)%", html)
    assert len(places) > 10
    for left, width in places:
        assert 0 <= float(left) <= 100 and float(left) + float(width) <= 100.01


def test_without_a_trace_a_sentence_says_what_to_do():
    assert player_twin.EMPTY in RoundPlayer().to_html()
    assert player_twin.EMPTY in (FOLDER / "round_player.js").read_text(encoding="utf-8")


# ---------------------------------------------------------------- style and script


def test_style_knows_every_outcome_and_phase_and_moves_only_where_motion_is_wanted():
    style = RoundPlayer._css if isinstance(RoundPlayer._css, str) else str(RoundPlayer._css)
    own = (FOLDER / "round_player.css").read_text(encoding="utf-8")
    assert all(f'data-outcome="{name}"' in own for name in palette.OUTCOMES)
    assert all(f'data-phase="{name}"' in own for name in palette.PHASES)
    assert all(f"--swb-phase-{name}: {color}" in style for name, color in palette.PHASES.items())
    moving = own[own.index("@media (prefers-reduced-motion: no-preference)") :]
    assert own.count("transition") == moving[: moving.index("\n}\n")].count("transition") == 1
    assert "http" not in own and "url(" not in own


def test_script_makes_no_html_of_text_and_fetches_nothing():
    script = str(RoundPlayer._esm)
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import ", "http"):
        assert forbidden not in script and "fetch(" not in script
