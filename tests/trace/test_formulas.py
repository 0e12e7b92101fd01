"""The contracts `decision`, `accept_prob` and `probabilities`, rule by rule: each knows its rule's own formula."""

import numpy as np
import pytest

from tests.trace.rules import RULES, finding, rows, trace_of

GUESS = "node >= 0"


@pytest.mark.parametrize("rule", RULES)
def test_accept_prob_is_recomputed_under_every_rule(rule):
    found = finding(trace_of(rule), "accept_prob")
    assert (found.status, found.where) == ("pass", "") and "proposed positions" in found.detail


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "block"])
def test_scalars_are_enough_for_all_rules_but_block(rule):
    assert finding(trace_of(rule, "none"), "accept_prob").status == "pass"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("greedy", "typical")])
def test_an_accept_prob_of_another_formula_is_rejected(rule):
    trace = trace_of(rule)
    guesses = rows(trace, f"{GUESS} and 0.01 < accept_prob < 0.9")
    trace.positions.loc[guesses[0], "accept_prob"] *= 1.001
    found = finding(trace, "accept_prob")
    assert found.status == "fail"
    assert (found.sequence, found.round) == tuple(trace.positions.loc[guesses[0], ["sequence", "round"]])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("token", "tree", "greedy")])
def test_the_token_rules_ratio_is_not_theirs(rule):
    trace = trace_of(rule)
    guesses = rows(trace, GUESS)
    ratio = (trace.positions["p"] / trace.positions["q"]).clip(upper=1.0)
    trace.positions.loc[guesses, "accept_prob"] = ratio[guesses]
    assert finding(trace, "accept_prob").status == "fail"


@pytest.mark.parametrize("rule", ["greedy", "typical"])
def test_a_rule_that_draws_nothing_accepts_for_certain_or_not_at_all(rule):
    for value in (0.5, 1.0):
        trace = trace_of(rule)
        trace.positions.loc[rows(trace, f"{GUESS} and accept_prob == 0")[0], "accept_prob"] = value
        assert finding(trace, "accept_prob").status == "fail"


@pytest.mark.parametrize(
    "rule, setting, other",
    [
        ("lenient,leniency=0.5", "leniency", 0.6),
        ("ensemble,weight=0.5", "weight", 0.6),
        ("typical", "epsilon", 0.01),
        ("typical", "delta", 0.1),
    ],
)
def test_the_settings_are_the_manifests(rule, setting, other):
    trace = trace_of(rule)
    trace.manifest["rule"]["settings"][setting] = other
    assert finding(trace, "accept_prob").status == "fail"
    del trace.manifest["rule"]["settings"][setting]
    found = finding(trace, "accept_prob")
    assert found.status == "not recorded" and setting in found.detail


def test_a_rule_without_a_formula_here_is_said_to_have_none():
    trace = trace_of("token")
    trace.manifest["rule"]["name"] = "of my own"
    found = finding(trace, "accept_prob")
    assert found.status == "not recorded" and "'of my own'" in found.detail


# ---------------------------------------------------------------- block


@pytest.mark.parametrize("capture", ["none", "top-k"])
def test_without_whole_rows_block_is_judged_at_the_last_guess_only(capture):
    trace = trace_of("block", capture)
    found = finding(trace, "accept_prob")
    assert found.status == "not recorded" and "capture 'full'" in found.detail
    trace.positions.loc[rows(trace, "node == 2 and 0.01 < accept_prob < 0.9")[0], "accept_prob"] *= 1.001
    assert finding(trace, "accept_prob").status == "fail"


def test_block_may_keep_a_guess_whose_own_uniform_fell_short():
    trace = trace_of("block")
    assert len(rows(trace, "outcome == 'accepted' and u >= accept_prob"))
    assert finding(trace, "decision").status == "pass"


@pytest.mark.parametrize(
    "query, u",
    [
        ("outcome == 'rejected'", 0.0),
        ("outcome == 'discarded'", 0.0),
        ("outcome == 'accepted' and last", np.nextafter(1, 0)),
        ("outcome == 'discarded'", np.nan),
    ],
)
def test_under_block_the_last_uniform_below_decides(query, u):
    trace = trace_of("block")
    row = rows(trace, f"{query} and 0 < accept_prob < 0.999")[0]
    trace.positions.loc[row, "u"] = u
    found = finding(trace, "decision")
    assert found.status == "fail"
    assert (found.sequence, found.round) == tuple(trace.positions.loc[row, ["sequence", "round"]])


def test_what_block_may_do_the_token_rule_may_not():
    trace = trace_of("block")
    trace.manifest["rule"]["name"] = "token"
    assert finding(trace, "decision").status == "fail"


# ---------------------------------------------------------------- siblings


@pytest.mark.parametrize("kind", ["without replacement", "independent", "certain, ragged"])
@pytest.mark.parametrize("rule", ["tree", "equality"])
def test_later_siblings_are_judged_by_what_the_earlier_ones_leave(rule, kind):
    trace = trace_of(rule, kind=kind)
    assert finding(trace, "accept_prob").status == "pass"
    trace.positions.loc[rows(trace, "later and 0.01 < accept_prob < 0.9")[0], "accept_prob"] *= 1.001
    assert finding(trace, "accept_prob").status == "fail"


def test_without_whole_rows_sampled_siblings_are_left_out():
    trace = trace_of("tree", "top-k", "without replacement")
    trace.positions.loc[rows(trace, "later and 0.01 < accept_prob < 0.9")[0], "accept_prob"] *= 1.001
    assert finding(trace, "accept_prob").status == "pass"


# ---------------------------------------------------------------- what may be drawn


@pytest.mark.parametrize("rule", ["token", "block", "lenient,leniency=0.5", "ensemble,weight=0.5"])
def test_a_corrected_token_has_more_of_p_than_of_q(rule):
    trace = trace_of(rule)
    row = rows(trace, "outcome == 'corrected'")[0]
    trace.positions.loc[row, "p"] = trace.positions.loc[row, "q"] / 2
    trace.positions.loc[row, "in_overweight"] = True
    found = finding(trace, "probabilities")
    assert found.status == "fail" and "residual" in found.detail


def test_under_equality_a_corrected_token_may_have_less_but_is_no_refused_guess():
    trace = trace_of("equality")
    assert len(rows(trace, "outcome == 'corrected' and p < q"))
    row = rows(trace, "outcome == 'corrected'")[0]
    same = (trace.positions[["sequence", "round"]] == trace.positions.loc[row, ["sequence", "round"]]).all(axis=1)
    refused = same & (trace.positions["outcome"] == "rejected")
    trace.positions.loc[row, "token"] = trace.positions.loc[refused, "token"].item()
    found = finding(trace, "probabilities")
    assert found.status == "fail" and "a refused guess had this token" in found.detail


@pytest.mark.parametrize("rule", ["greedy", "typical"])
@pytest.mark.parametrize("outcome", ["corrected", "bonus"])
def test_rules_that_draw_nothing_emit_the_first_choice(rule, outcome):
    trace = trace_of(rule)
    trace.positions.loc[rows(trace, f"outcome == '{outcome}'")[0], "rank_p"] = 2
    found = finding(trace, "probabilities")
    assert found.status == "fail" and "has rank 2" in found.detail
