"""Survival is a product of what was examined; alpha^j and shuffled rounds are what it is held against."""

import numpy as np
import pytest

from specworkbench import analysis
from specworkbench.analysis.dependence import LAG_COLUMNS, SURVIVAL_COLUMNS, survival_product
from tests.analysis.made import made, plain_of, round_of
from tests.trace.toy import toy_trace


def sequence(*accepted, **more):
    return [round_of(length, **more) for length in accepted]


def test_survival_is_the_product_of_what_was_accepted_of_the_examined():
    examined, accepted = np.array([[10, 6, 0]]), np.array([[6, 3, 0]])
    np.testing.assert_allclose(survival_product(examined, accepted, np.array([0.5])), [[0.6, 0.3, 0.15]])


def test_a_short_proposal_says_nothing_of_the_positions_it_lacks():
    """Of two that proposed a second token one was kept; two more proposed but one, and it was kept."""
    trace = made({"one": sequence(2, 1, proposed=2) + sequence(1, 1, proposed=1)})
    table = analysis.survival_against_iid(trace)
    assert table["examined"].tolist() == [4, 2, 0] and table["accepted"].tolist() == [4, 1, 0]
    alpha = 5 / 6
    assert table["survival"].tolist() == pytest.approx([1, 0.5, 0.5 * alpha])
    assert table["iid"].tolist() == pytest.approx([alpha, alpha**2, alpha**3])
    assert table["acceptance"].isna().tolist() == [False, False, True]


def test_where_all_propose_gamma_it_is_the_survival_by_position():
    trace = toy_trace(gamma=3, max_new_tokens=40)
    trace.rounds = trace.rounds[trace.rounds["shortened"] == ""].reset_index(drop=True)
    table = analysis.survival_against_iid(trace)
    assert tuple(table.columns) == SURVIVAL_COLUMNS
    assert table["survival"].tolist() == pytest.approx(analysis.survival_by_position(trace))


def test_shortened_rounds_count_in_alpha_only():
    whole = {"one": sequence(3, 0, 1)}
    more = {"one": [*whole["one"], round_of(0, 1, shortened="budget")]}
    tables = [analysis.survival_against_iid(made(rounds)) for rounds in (whole, more)]
    assert tables[0]["survival"].equals(tables[1]["survival"])
    assert [table["iid"].iloc[0] for table in tables] == pytest.approx([4 / 6, 4 / 7])


def test_acceptance_that_does_not_depend_on_the_context_survives_as_alpha_to_the_j():
    table = analysis.survival_against_iid(
        toy_trace([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], gamma=3, per_bucket=6, max_new_tokens=200)
    )
    assert (table["difference_low"] < 0).all() and (table["difference_high"] > 0).all()
    assert (table["low"] < table["survival"]).all() and (table["survival"] < table["high"]).all()


def test_prompts_that_differ_survive_less_at_first_and_longer_in_the_end_than_alpha_to_the_j():
    """alpha, taken over what is examined, is mostly that of the prompts that come far."""
    names = range(12)
    trace = made({f"easy{i}": sequence(3, 3, 3) for i in names} | {f"hard{i}": sequence(0, 0, 0) for i in names})
    table = analysis.survival_against_iid(trace)
    assert table["survival"].tolist() == [0.5] * 3 and table["iid"].tolist() == pytest.approx([0.75, 0.75**2, 0.75**3])
    assert table["difference_high"].iloc[0] < 0 < table["difference"].iloc[2]


def test_one_prompt_has_no_interval_and_trees_and_plain_decoding_have_no_row():
    assert (
        analysis.survival_against_iid(made({"one": sequence(2, 0)}))[["low", "difference_high"]].isna().all(axis=None)
    )
    for trace in (made({"one": sequence(2, 0)}, tree=True), plain_of(), made({"one": sequence(0, 0, proposed=0)})):
        table = analysis.survival_against_iid(trace)
        assert table.empty and tuple(table.columns) == SURVIVAL_COLUMNS


def test_rounds_in_any_order_stay_within_the_band_of_shuffles():
    rng = np.random.default_rng(5)
    trace = made({f"p{i}": sequence(*rng.integers(0, 4, size=40).tolist()) for i in range(6)})
    table = analysis.autocorrelation(trace)
    assert tuple(table.columns) == LAG_COLUMNS and table["lag"].tolist() == [1, 2, 3, 4, 5]
    assert table["pairs"].tolist() == [6 * (40 - lag) for lag in range(1, 6)]
    inside = (table["band_low"] <= table["autocorrelation"]) & (table["autocorrelation"] <= table["band_high"])
    assert inside.sum() >= 4


def test_runs_of_alike_rounds_are_beyond_the_band_and_alternating_ones_below():
    runs, turns = (3, 3, 3, 3, 0, 0, 0, 0) * 5, (3, 0) * 20
    found = analysis.autocorrelation(made({"one": sequence(*runs)})).iloc[0]
    assert found["autocorrelation"] > found["band_high"]
    found = analysis.autocorrelation(made({"one": sequence(*turns)})).iloc[0]
    assert found["autocorrelation"] == pytest.approx(-1) and found["band_low"] > -0.5


def test_prompts_that_differ_move_the_band_and_not_the_rounds_out_of_it():
    trace = made({"easy": sequence(*(3, 2, 3) * 10), "hard": sequence(*(0, 1, 0) * 10)})
    found = analysis.autocorrelation(trace).iloc[1]
    assert found["band_low"] > 0.5 and found["autocorrelation"] > 0.5


def test_the_band_is_reproducible_and_nothing_is_told_where_all_rounds_are_alike():
    trace = toy_trace()
    assert analysis.autocorrelation(trace).equals(analysis.autocorrelation(trace))
    for empty in (made({"one": sequence(2, 2, 2)}), plain_of(), made({"one": sequence(2)})):
        assert analysis.autocorrelation(empty)[["autocorrelation", "band_low"]].isna().all(axis=None)
