"""The contract `draws`: every token is what its uniform draws from the row it should come from."""

import numpy as np
import pytest

from specworkbench.equivalence.mutants import MUTANTS
from specworkbench.equivalence.setup import record
from tests.trace.faults import mutable
from tests.trace.rules import RULES, finding, rows, trace_of
from tests.trace.toy import toy_trace

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
TREES = ("independent", "without replacement", "certain, ragged")


def moved(trace, query, by=0.5):
    """The trace with the uniforms of these draws moved on."""
    chosen = rows(trace, f"({query}) and u_draw == u_draw")
    trace.positions.loc[chosen, "u_draw"] = (trace.positions.loc[chosen, "u_draw"] + by) % 1
    return trace


@pytest.mark.parametrize("rule", RULES)
def test_it_passes_under_every_rule_and_says_what_it_looked_at(rule):
    trace = trace_of(rule)
    found = finding(trace, "draws")
    certain = int((trace.positions["node"] < 0).sum()) if rule in ("greedy", "typical") else 0
    assert found.status == "pass"
    assert found.detail == f"{len(trace.positions) - certain} tokens drawn, {certain} certain"


@pytest.mark.parametrize("capture", ["none", "top-k"])
def test_without_whole_rows_it_is_not_recorded(capture):
    found = finding(trace_of("token", capture), "draws")
    assert found.status == "not recorded" and "capture 'full'" in found.detail


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("greedy", "typical")])
@pytest.mark.parametrize("query", ["node >= 0", "outcome == 'corrected'", "outcome == 'bonus'", "outcome == 'plain'"])
def test_another_uniform_would_have_drawn_another_token(rule, query):
    assert "fail" in {finding(moved(trace_of(rule), query, by), "draws").status for by in (0.25, 0.5, 0.75)}


@pytest.mark.parametrize("rule", ["greedy", "typical"])
@pytest.mark.parametrize("outcome", ["corrected", "bonus", "plain"])
def test_a_rule_that_draws_nothing_emits_the_first_choice_of_its_row(rule, outcome):
    trace = trace_of(rule)
    row = rows(trace, f"outcome == '{outcome}'")[0]
    trace.positions.loc[row, "token"] = (trace.positions.loc[row, "token"] + 1) % 5
    found = finding(trace, "draws")
    assert found.status == "fail" and "not the most probable" in found.detail


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("rule", ["tree", "equality"])
def test_in_trees_the_corrected_token_comes_from_what_all_refused_siblings_leave(rule, kind):
    assert finding(trace_of(rule, kind=kind), "draws").status == "pass"
    assert finding(moved(trace_of(rule, kind=kind), "outcome == 'corrected'"), "draws").status == "fail"


@pytest.mark.parametrize(
    "one, other",
    [("token", "equality"), ("equality", "token"), ("block", "token"), ("tree", "equality")],
)
def test_the_residual_is_the_rules_own(one, other):
    trace = trace_of(one)
    trace.manifest["rule"]["name"] = other
    found = finding(trace, "draws")
    assert found.status == "fail" and "(corrected)" in found.detail and "the residual" in found.detail


@pytest.mark.parametrize(
    "name, outcomes, source",
    [
        ("resample_from_target", ("corrected",), "the residual"),
        ("bonus_from_draft", ("bonus",), "its row of p"),
        ("bonus_from_wrong_row", ("bonus",), "its row of p"),
        ("raw_q_after_top_k", ("accepted", "rejected", "discarded"), "its row of q"),
    ],
)
def test_a_wrong_implementation_is_caught_where_it_draws(name, outcomes, source):
    mutant = BY_NAME[name]
    bench = mutant.bench(0, length=12, gamma=3)
    assert finding(record(bench, 12, seed=5, capture="full"), "draws").status == "pass"
    found = finding(record(mutant.apply(bench), 12, seed=5, capture="full"), "draws")
    assert found.status == "fail" and found.round is not None
    assert any(f"({outcome})" in found.detail for outcome in outcomes) and source in found.detail


def test_the_allowance_is_that_of_float32_rows():
    trace = mutable(toy_trace([0.5, 0.5], [0.5, 0.5], capture="full"))
    row = rows(trace, "node >= 0 and token == 0")[0]
    for beyond, status in ((5e-6, "pass"), (5e-5, "fail")):
        trace.positions.loc[row, "u_draw"] = 0.5 + beyond
        assert finding(trace, "draws").status == status


def test_a_guess_without_a_uniform_must_be_certain():
    trace = trace_of("token")
    trace.positions.loc[rows(trace, "node >= 0")[0], "u_draw"] = np.nan
    found = finding(trace, "draws")
    assert found.status == "fail" and "its q is not 1" in found.detail


def test_a_drawn_token_without_a_uniform_was_drawn_by_nothing():
    trace = trace_of("token")
    trace.positions.loc[rows(trace, "outcome == 'bonus'")[0], "u_draw"] = np.nan
    found = finding(trace, "draws")
    assert found.status == "fail" and "nothing drew it" in found.detail


def test_of_an_unknown_rule_all_but_the_corrected_tokens_are_judged():
    def strange(query):
        trace = moved(trace_of("token"), query)
        trace.manifest["rule"]["name"] = "of my own"
        return finding(trace, "draws").status

    assert strange("outcome == 'corrected'") == "pass"
    assert strange("outcome == 'bonus'") == strange("node >= 0") == "fail"
