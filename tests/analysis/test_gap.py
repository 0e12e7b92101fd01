"""The steps walk from the formula to the measured speedup, exactly; each is what it says, alone and in closed form."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench import analysis, theory
from specworkbench.analysis.gap_words import STEPS
from specworkbench.errors import InputError
from tests.analysis.made import made, plain_of, round_of
from tests.trace.toy import toy_trace

NAMES = [said.name for said in STEPS.values()]
ACCEPTED = (3, 0, 1, 3, 2, 0)
"""Accepted lengths of the rounds below: 15 tokens in 6 rounds."""


def rounds(**ms):
    return {"one": [round_of(accepted, **ms) for accepted in ACCEPTED]}


def changes(found):
    return {step.name: step.change.value for step in found.steps}


def assert_walks(found, measured):
    """From the ideal over every step to what was measured."""
    reached = found.ideal.value
    for step in found.steps:
        assert step.before == pytest.approx(reached, rel=1e-12)
        reached += step.change.value
        assert step.speedup.value == pytest.approx(reached, rel=1e-9)
    assert reached == pytest.approx(measured, rel=1e-9)


TOYS = {
    "a draft": {"gamma": 3},
    "many misses": {"gamma": 4, "misses": 0.6},
    "no guess at all": {"gamma": 3, "misses": 1.0},
    "EOS cuts": {"gamma": 5, "eos_ids": (3,)},
    "greedy": {"gamma": 2, "rule": "greedy"},
    "slow draft": {"gamma": 3, "ms_draft": 30.0},
}


@pytest.mark.parametrize("case", TOYS)
def test_the_steps_add_up_to_the_measured_speedup_and_its_interval(case):
    settings = {"max_new_tokens": 40} | TOYS[case]
    plain = toy_trace(**settings | {"proposer": "none", "misses": 0.0})
    speculative = toy_trace(**settings)
    found, measured = analysis.gap(plain, speculative), analysis.measured_speedup(plain, speculative)
    assert_walks(found, measured.value)
    assert tuple(found.speedup) == pytest.approx(tuple(measured), rel=1e-9) and found.speedup.n == measured.n
    alone = analysis.measured_speedup(plain, speculative, prefill=False)
    assert found.after("pauses") == pytest.approx(alone.value, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4))
def test_whatever_the_rounds_and_the_times_the_steps_add_up(seed, gamma, prompts):
    rng = np.random.default_rng(seed)

    def any_round():
        proposed = int(rng.integers(gamma + 1))
        ms = dict(zip(("propose", "target", "rollback", "loop"), rng.exponential(5, 4) + 1e-3, strict=True))
        shortened = "budget" if rng.random() < 0.2 else ""
        return round_of(int(rng.integers(proposed + 1)), proposed, gamma=gamma, shortened=shortened, **ms)

    names = [f"p{i}" for i in range(prompts)]
    spent = dict(zip(("between", "prefill", "draft_prefill"), rng.exponential(20, 3), strict=True))
    first = round_of(0, gamma, gamma=gamma)
    speculative = made({name: [first, *(any_round() for _ in range(rng.integers(8)))] for name in names}, **spent)
    plain = plain_of(9, names, propose=0.3, target=7.0, rollback=0.1, between=2.0, prefill=5.0)
    assert_walks(analysis.gap(plain, speculative), analysis.measured_speedup(plain, speculative).value)


def test_prompts_of_one_trace_only_are_left_out_and_their_order_does_not_matter():
    plain, speculative = toy_trace(proposer="none"), toy_trace()
    part, turned = analysis.select(speculative, [4, 1, 3]), analysis.select(speculative, [1, 3, 4])
    found = analysis.gap(plain, part)
    assert_walks(found, analysis.measured_speedup(plain, part).value)
    assert found.speedup.n == 3
    again = analysis.gap(plain, turned)
    assert found.table()["after"].to_numpy() == pytest.approx(again.table()["after"].to_numpy(), rel=1e-12)


# 15 tokens in 6 rounds that each cost what a plain step does, and everything else for nothing.
EMITTED = 15 / 6
ALONE = {
    "proposing": ({"propose": 4.0}, {}, EMITTED / 1.4),
    "verification": ({"target": 15.0}, {}, EMITTED / 1.5),
    "commit and rollback": ({"rollback": 2.0}, {}, EMITTED / 1.2),
    "rest of a round": ({"loop": 1.0}, {}, EMITTED / 1.1),
    "between rounds": ({}, {"between": 30.0}, EMITTED / 1.5),
    "prefill": ({}, {"prefill": 60.0}, EMITTED / 2.0),
    "proposer's prefill": ({}, {"draft_prefill": 6.0}, EMITTED / 1.1),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_cost_alone_moves_its_own_step_only(name):
    of_rounds, of_sequences, expected = ALONE[name]
    found = analysis.gap(plain_of(), made(rounds(**of_rounds), **of_sequences))
    moved = {step: change for step, change in changes(found).items() if abs(change) > 1e-12}
    assert moved.pop(name) == pytest.approx(expected - EMITTED, rel=1e-12)
    assert set(moved) <= {"uneven acceptance"}
    assert found.speedup.value == pytest.approx(expected, rel=1e-12)
    step = next(step for step in found.steps if step.name == name)
    assert step.without == pytest.approx(EMITTED, rel=1e-12)


def test_what_both_sides_pay_in_equal_measure_per_token_changes_nothing():
    ms = {"rollback": 1.0, "loop": 0.5}
    plain = plain_of(15, **ms, prefill=30.0, between=15.0)
    one_token_a_round = made({"one": [round_of(0, **ms)] * 15}, prefill=30.0, between=15.0)
    found = analysis.gap(plain, one_token_a_round)
    assert found.speedup.value == pytest.approx(1)
    assert all(abs(change) < 1e-12 for change in changes(found).values())


def test_a_pause_is_told_apart_from_the_phase_it_fell_into():
    paused = rounds()
    paused["one"] = [round_of(accepted) for accepted in ACCEPTED * 3]
    paused["one"][4] = round_of(2, target=510.0)
    found = analysis.gap(plain_of(45), made(paused))
    assert found.after("loop") == pytest.approx(EMITTED) and changes(found)["verification"] == pytest.approx(0)
    assert found.speedup.value == pytest.approx(45 / (18 + 50))
    assert found.pauses == (0.0, pytest.approx(500 / 680))
    assert "Interrupted rounds (over ten times the median) took 0.0 % of the plain and 73.5 %" in found.sentence


def test_a_slow_round_that_is_not_ten_times_as_slow_stays_in_its_phase():
    slow = {"one": [round_of(accepted, target=90.0 if i == 4 else 10.0) for i, accepted in enumerate(ACCEPTED)]}
    found = analysis.gap(plain_of(), made(slow))
    assert changes(found)["pauses"] == 0 and changes(found)["verification"] < -1


def test_the_first_step_is_from_alpha_to_the_survival_by_position():
    """Half of the rounds accept all, half nothing: alpha is 9 / 12, but nobody stops half way."""
    half = {"one": [round_of(3), round_of(0)] * 3}
    found = analysis.gap(plain_of(), made(half))
    assert found.alpha == pytest.approx(9 / 12) and found.gamma == 3
    assert found.ideal.value == pytest.approx(theory.expected_tokens(0.75, 3))
    assert found.steps[0].speedup.value == pytest.approx(1 + 3 * 0.5) == found.speedup.value


def test_rounds_without_a_guess_and_short_proposals_are_a_step_of_their_own():
    """What is proposed is always accepted, so that all that is lost is lost to guesses that were never made."""
    some = {"one": [round_of(3), round_of(0, 0), round_of(1, 1), round_of(3)]}
    found = analysis.gap(plain_of(), made(some))
    assert found.ideal.value == found.steps[0].speedup.value == 4
    assert changes(found)["fewer guesses"] == pytest.approx((4 + 1 + 2 + 4) / 4 - 4)


def test_the_end_of_the_budget_and_what_eos_cuts_are_a_step_of_their_own():
    ends = {"one": [round_of(3), round_of(3, cut=2), round_of(1, 1, shortened="budget"), round_of(3)]}
    found = analysis.gap(plain_of(), made(ends))
    assert changes(found)["fewer guesses"] == pytest.approx(0, abs=1e-12)
    assert changes(found)["ends of outputs"] == pytest.approx((4 + 2 + 2 + 4) / 4 - 4)


def test_where_a_controller_chose_gamma_the_formula_is_that_of_every_round():
    rows = ((1, 1, 1), (0, 1, 1), (2, 4, 4), (0, 0, 0))
    chosen = {"one": [round_of(accepted, proposed, gamma=gamma) for accepted, proposed, gamma in rows]}
    found = analysis.gap(plain_of(), made(chosen))
    alpha = 3 / 5
    expected = np.mean([theory.expected_tokens(alpha, gamma) for gamma in (1, 1, 4, 0)])
    assert found.ideal.value == pytest.approx(expected) and found.gamma == 1.5
    assert_walks(found, found.speedup.value)


@pytest.mark.parametrize("cost", [0.0, 0.25])
def test_an_instrument_is_taken_at_the_cost_that_is_set_whatever_its_own_time(cost):
    plain = plain_of(propose=0.5, prefill=10.0)
    slow, slower = (
        analysis.gap(plain, made(rounds(propose=ms), prefill=10.0, draft_prefill=ms, cost_set=cost))
        for ms in (40.0, 90.0)
    )
    assert slow == slower and slow.cost_set == cost
    assert slow.after("proposing") == pytest.approx(EMITTED * 1.05 / (1 + 3 * cost + 0.05))
    assert "at the cost set, c = " in slow.sentence and "measured" not in slow.sentence
    assert changes(slow)["proposer's prefill"] == 0
    assert analysis.measured_speedup(plain, made(rounds(), cost_set=cost)).value is None


@pytest.mark.parametrize("kind", ["tree", "nothing examined"])
def test_without_a_formula_the_steps_begin_at_the_tokens_a_round(kind):
    never = {"one": [round_of(0, 0) for _ in ACCEPTED]}
    trace = made(rounds(), tree=True) if kind == "tree" else made(never)
    found = analysis.gap(plain_of(), trace)
    assert [step.name for step in found.steps] == NAMES[2:]
    assert found.alpha is None and found.ideal.value == (EMITTED if kind == "tree" else 1)
    assert found.sentence.startswith(f"A round brings {found.ideal.value:.2f} tokens")
    assert_walks(found, analysis.measured_speedup(plain_of(), trace).value)


def test_one_prompt_has_no_intervals_and_several_have():
    one = analysis.gap(plain_of(), made(rounds()))
    assert all(step.change.low is None and step.speedup.high is None for step in one.steps)
    several = analysis.gap(toy_trace(proposer="none"), toy_trace())
    for step in several.steps:
        assert step.change.low <= step.change.value <= step.change.high
        assert step.speedup.low <= step.speedup.value <= step.speedup.high


def test_the_table_holds_the_steps_and_the_dict_is_json():
    found = analysis.gap(toy_trace(proposer="none"), toy_trace())
    table = found.table()
    assert table["step"].tolist() == NAMES
    assert table["change"].to_numpy() == pytest.approx((table["after"] - table["before"]).to_numpy())
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert told["sentence"] == found.sentence and [step["name"] for step in told["steps"]] == NAMES
    assert tuple(told["speedup"].values()) == (*found.speedup, 6)


def test_the_sentence_names_what_matters_most_whatever_comes_first_in_the_walk():
    """Verification costs twice what proposing does, but comes after it, where less is left to lose."""
    found = analysis.gap(plain_of(), made(rounds(propose=5.0, target=20.0)))
    assert changes(found)["proposing"] < changes(found)["verification"] * 0.99
    lost = found.sentence.split("Most is lost to ")[1]
    assert lost.startswith("verification (2.00 plain steps a round instead of 1, 4.00 positions; 1.67x without it)")
    assert "proposing (0.50 plain steps a round, 3.00 guesses; 1.25x without it)" in lost
    assert found.sentence.startswith("The formula says ") and "measured 1.00x." in found.sentence


def test_a_loop_that_plain_decoding_pays_for_every_token_is_a_gain():
    found = analysis.gap(plain_of(rollback=5.0), made(rounds(rollback=5.0)))
    assert changes(found)["commit and rollback"] == 0
    found = analysis.gap(plain_of(between=60.0), made(rounds()))
    assert changes(found)["between rounds"] > 0 and "Some is gained by between rounds" in found.sentence


def test_what_cannot_be_compared_is_refused_with_a_sentence():
    plain, speculative = plain_of(), made(rounds())
    short = made({"one": [round_of(1, 1, shortened="budget")]})
    for first, second, said in (
        (speculative, speculative, "decoded with the proposer draft_model; it must be plain"),
        (plain, plain, "both traces are plain"),
        (plain, made({"two": [round_of(1)]}), "no prompt id"),
        (plain, short, "more than 3 new tokens are needed, and at most 99"),
        (plain_of(target=0.0, loop=1.0), speculative, "no times by phase"),
    ):
        with pytest.raises(InputError, match=said):
            analysis.gap(first, second)
    other = made(rounds())
    other.manifest["target"] = "other"
    with pytest.raises(InputError, match="target is made in the plain one and other in the other"):
        analysis.gap(plain, other)
