"""Every token's fate is told in a sentence with its numbers, whatever the outcome, the rule and the proposer."""

import pytest

from specworkbench.widgets.sentences import decision_of, scalars, sentence
from specworkbench.widgets.tables import strip_rows
from specworkbench.widgets.text import distinct, number
from tests.widgets.traces import first, spoken

TRACE = spoken()
GREEDY = spoken(rule="greedy", gamma=1)


def told(trace, outcome, **which):
    _, _, row = first(trace, outcome, **which)
    text = sentence(trace, row)
    assert text.startswith(f"Round {row['round']}, position {row['position']}: ") and text.endswith(".")
    return text, row


def test_rejected_gives_probability_uniform_and_what_came_instead():
    text, row = told(TRACE, "rejected")
    probability, u = distinct(row["accept_prob"], row["u"])
    assert f"q = {number(row['q'])}, the target p = {number(row['p'])}" in text
    assert f"accepted with probability min(1, p/q) = {probability}; u = {u} ≥ {probability}, so it was rejected" in text
    assert f"drawn from the residual (mass {number(row['residual_mass'])})" in text


def test_accepted_tells_certainty_from_luck():
    texts = []
    for sequence in range(len(TRACE.sequences)):
        rows = strip_rows(TRACE, sequence)
        texts += [(sentence(TRACE, row), row) for _, row in rows.iterrows() if row["outcome"] == "accepted"]
    certain = [text for text, row in texts if row["accept_prob"] >= 1]
    lucky = [text for text, row in texts if row["accept_prob"] < 1]
    assert certain and all("min(1, p/q) = 1, so it was accepted whatever u" in text for text in certain)
    assert lucky and all("so it was accepted" in text and " < " in text for text in lucky)


def test_discarded_names_the_rejected_position():
    text, row = told(TRACE, "discarded")
    rejected = TRACE.round_positions(row["sequence"], row["round"]).query("outcome == 'rejected'")["position"].iloc[0]
    assert f"rejected at position {rejected}, so it was discarded without being examined" in text


def test_corrected_gives_its_chance_in_the_residual():
    text, row = told(TRACE, "corrected")
    share = number((row["p"] - row["q"]) / row["residual_mass"])
    assert "in place of the rejected “" in text and f"= {share} there." in text


def test_bonus_says_that_all_were_accepted():
    text, row = told(TRACE, "bonus")
    assert "all 3 proposed tokens were accepted" in text and f"p = {number(row['p'])}" in text
    one, _ = told(spoken(gamma=1), "bonus")
    assert "the one proposed token was accepted" in one


def test_plain_tells_why_nothing_was_proposed():
    assert "plain decoding" in told(spoken(proposer="none"), "plain")[0]
    assert "the draft found no guess" in told(spoken(misses=1.0), "plain")[0]
    trace = spoken(max_new_tokens=1)
    assert "left room for one only" in told(trace, "plain")[0]
    trace.rounds["shortened"] = "draft_context"
    assert "the draft's context was full" in told(trace, "plain")[0]


@pytest.mark.parametrize("outcome", ["accepted", "rejected", "corrected", "bonus"])
def test_greedy_rule_compares_tokens_and_mentions_no_uniform(outcome):
    text, _ = told(GREEDY, outcome)
    assert "most probable token" in text and "u =" not in text


def test_a_deterministic_guess_is_said_to_be_certain():
    trace = spoken()
    trace.manifest["proposer"] |= {"name": "ngram", "deterministic": True}
    text, row = told(trace, "rejected")
    assert "the n-gram lookup guessed" in text and f"outright (q = 1), the target p = {number(row['p'])}" in text


def test_another_rule_is_named_instead_of_the_formula():
    trace = spoken()
    trace.manifest["rule"] = {"name": "of my own", "lossless": True}
    assert "accept_prob (rule of my own) = " in told(trace, "rejected")[0]


@pytest.mark.parametrize(
    ("reason", "words"),
    [("eos", "end-of-sequence"), ("stop_string", "stop string"), ("length", "limit"), ("context", "context")],
)
def test_what_the_end_cut_off_is_said_to_be_not_emitted(reason, words):
    trace = spoken(eos_ids=(0,))
    for entry in trace.sequences:
        entry["stop_reason"] = reason
    for outcome in ("accepted", "corrected", "bonus"):
        try:
            text, _ = told(trace, outcome, emitted=False)
        except AssertionError:
            continue
        assert "It was not emitted: " in text and words in text
        return
    raise AssertionError("nothing was cut off in this trace")


def test_emitted_tokens_are_not_said_to_be_cut_off():
    assert "not emitted" not in told(TRACE, "rejected")[0] + told(TRACE, "bonus")[0]


def test_decision_of_a_corrected_token_is_that_on_the_rejected_one():
    sequence, _, corrected = first(TRACE, "corrected")
    rows = strip_rows(TRACE, sequence)
    rejected = rows[(rows["round"] == corrected["round"]) & (rows["outcome"] == "rejected")].iloc[0]
    assert decision_of(TRACE, corrected) == decision_of(TRACE, rejected)
    assert decision_of(TRACE, rejected).u == rejected["u"] and not decision_of(TRACE, rejected).accepted
    for outcome in ("discarded", "bonus"):
        assert decision_of(TRACE, first(TRACE, outcome)[2]) is None


def test_an_entropy_of_nothing_has_no_sign():
    row = first(TRACE, "rejected")[2].copy()
    row[["entropy_p", "entropy_q"]] = -0.0, -1e-9
    told_of = dict(scalars(row))
    assert told_of["entropy of p"] == told_of["entropy of q"] == "0.00 nats"


def test_scalars_leave_out_what_is_null():
    names = [name for name, _ in scalars(first(TRACE, "bonus")[2])]
    assert "p" in names and "q" not in names and "overlap" not in names
    assert {"q", "TV", "residual mass", "entropy of q", "rank in q"} <= {
        n for n, _ in scalars(first(TRACE, "rejected")[2])
    }
