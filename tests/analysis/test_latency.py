"""Times are medians of the rounds, and costs are in plain target steps."""

import numpy as np
import pytest

from specworkbench import analysis
from tests.trace.toy import toy_trace

# The toy's rounds take 10 ms (1 + 0.05 proposed) in the target, 0.1 ms in the rule, 1 ms a proposed token in the draft,
# 0.05 ms to roll back and 0.02 ms beside, each phase up to 5 % longer by chance.


@pytest.fixture(scope="module")
def plain():
    return toy_trace(proposer="none", seed=1)


@pytest.fixture(scope="module")
def speculative():
    return toy_trace(gamma=3, seed=1)


def test_target_time_is_the_median_by_positions(plain, speculative):
    table = analysis.target_time(speculative, plain).set_index("target_positions")
    assert table.loc[1, "ms"] == pytest.approx(10.1 * 1.025, rel=0.01)
    assert table.loc[4, "ms"] == pytest.approx(11.6 * 1.025, rel=0.01)
    full = speculative.rounds[speculative.rounds["target_positions"] == 4]
    assert table.loc[4, "ms"] == np.median(full["ms_verify"] + full["ms_accept"])
    assert table.loc[4, "rounds"] == len(full)
    assert table.loc[4, "low"] <= table.loc[4, "ms"] <= table.loc[4, "high"]


def test_costs_are_in_plain_target_steps(plain, speculative):
    assert analysis.draft_cost(speculative, plain).value == pytest.approx(1 / 10.1, rel=0.02)
    assert analysis.verify_cost(speculative, 4, plain).value == pytest.approx(11.6 / 10.1, rel=0.01)
    assert analysis.verify_cost(speculative, 1, plain).value == 1
    assert analysis.loop_overhead(speculative, plain).value == pytest.approx(0.07 / 10.1, rel=0.05)


def test_the_cost_of_an_instrument_is_what_was_set_and_not_what_was_measured(plain):
    trace = toy_trace(gamma=3, seed=1)
    trace.manifest["proposer"]["cost_set"] = 0.25
    assert analysis.draft_cost(trace, plain) == analysis.Estimate(0.25, None, None, 0)
    assert analysis.draft_cost(trace).value == 0.25
    assert analysis.cost_set(plain) is None


def test_c_is_by_token_proposed_whatever_the_round_asked_for(plain):
    short, long = (toy_trace(gamma=gamma, seed=2) for gamma in (1, 6))
    one, other = (analysis.draft_cost(trace, plain).value for trace in (short, long))
    assert one == pytest.approx(other, rel=0.03)


def test_plain_rounds_of_the_trace_itself_serve_where_no_plain_trace_is_given():
    trace = toy_trace(misses=0.5)
    alone = trace.rounds[trace.rounds["target_positions"] == 1]
    unit = np.median(alone["ms_verify"] + alone["ms_accept"])
    proposed = trace.rounds[trace.rounds["proposed"] > 0]
    assert analysis.draft_cost(trace).value == np.median(proposed["ms_propose"] / proposed["proposed"]) / unit


def test_without_a_plain_round_costs_are_none():
    trace = toy_trace(gamma=3, max_new_tokens=4)
    trace.rounds["target_positions"] = trace.rounds["target_positions"].clip(lower=2)
    for estimate in (analysis.draft_cost(trace), analysis.verify_cost(trace, 4), analysis.loop_overhead(trace)):
        assert tuple(estimate) == (None, None, None)


def test_positions_never_forwarded_have_no_cost(plain, speculative):
    assert analysis.verify_cost(speculative, 9, plain).value is None
    assert analysis.draft_cost(plain).value is None


def test_latency_adds_up_to_the_sequence(speculative):
    table = analysis.latency_by_sequence(speculative)
    assert table["id"].tolist() == [sequence["id"] for sequence in speculative.sequences]
    np.testing.assert_allclose(table["ms_ttft"] + table["ms_tpot"] * (table["tokens"] - 1), table["ms_total"])
    first = speculative.rounds[speculative.rounds["round"] == 0]["ms_total"].to_numpy()
    np.testing.assert_allclose(table["ms_ttft"], 12.0 + 1.5 + first)
    assert table["rounds"].sum() == len(speculative.rounds)


def test_one_token_has_no_time_per_further_token():
    table = analysis.latency_by_sequence(toy_trace(max_new_tokens=1))
    assert table["ms_tpot"].isna().all() and table["ms_ttft"].notna().all()
