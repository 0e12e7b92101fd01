"""What the widgets say under every rule: its own formula, and that it is lossy where it is."""

import pytest

from specworkbench.trace.rule import LOSSY, is_lossy, lossy_sentence, rule_in_words
from specworkbench.widgets import TokenStrip, explore
from specworkbench.widgets.inspector import KEPT_BY_A_LATER
from specworkbench.widgets.sentences import sentence
from tests.trace.rules import RULES, rows, trace_of

LOSSY_RULES = ("lenient,leniency=0.5", "ensemble,weight=0.5", "typical")


def told(rule, query):
    """The sentences on all tokens that the query names."""
    trace = trace_of(rule)
    return [sentence(trace, trace.positions.loc[row]) for row in rows(trace, query)]


@pytest.mark.parametrize("rule", RULES)
def test_a_lossy_rule_is_said_to_be_lossy_in_every_sentence_and_above_the_tokens(rule):
    trace, lossy = trace_of(rule), rule in LOSSY_RULES
    assert is_lossy(trace.manifest["rule"]) == lossy
    assert all(text.endswith(f"{LOSSY}.") == lossy for text in told(rule, "depth > 0"))
    explorer = explore(trace)
    titles = [explorer.strip.title, TokenStrip.of(trace).title, TokenStrip.of(trace, title="mine").title]
    assert all((LOSSY in title) == lossy for title in titles)
    assert (LOSSY in explorer.to_html()) == lossy
    assert titles[2] == (f"mine. {lossy_sentence(trace.manifest['rule'])}" if lossy else "mine")


def test_the_name_of_a_rule_is_text():
    trace = trace_of("typical")
    trace.manifest["rule"]["name"] = "<img src=x>"
    html = explore(trace).to_html()
    assert "<img src=x" not in html and "&lt;img src=x" in html


@pytest.mark.parametrize(
    "rule, formula",
    [
        ("token", "min(1, p/q)"),
        ("block", "h"),
        ("equality", "p"),
        ("lenient,leniency=0.5", "min(1, p/(leniency·q))"),
        ("ensemble,weight=0.5", "min(1, 1 − weight + weight·p/q)"),
    ],
)
def test_the_formula_is_the_rules_own(rule, formula):
    assert all(f" {formula} = " in text for text in told(rule, "outcome == 'rejected'"))


def test_a_guess_that_block_keeps_in_spite_of_its_own_uniform_is_explained():
    for text in told("block", "outcome == 'accepted' and u >= accept_prob"):
        assert "is not below h = " in text and "a later position passed" in text
    for text in told("block", "outcome == 'accepted' and u < accept_prob"):
        assert "later" not in text
    assert all("no later position passed" in text for text in told("block", "outcome == 'rejected'"))
    assert all("max(b·p − q, 0)" in text for text in told("block", "outcome == 'corrected'"))
    explorer = explore(trace_of("block"))
    short = 0
    for index, row in explorer.selection.rows[lambda table: table["outcome"] == "accepted"].iterrows():
        explorer.selected = index
        short += row["u"] >= row["accept_prob"]
        assert (KEPT_BY_A_LATER in explorer.inspector.to_html()) == (row["u"] >= row["accept_prob"])
    assert short


def test_typical_names_its_threshold_and_draws_nothing():
    for outcome, words in (("accepted", ", above min("), ("rejected", ", not above min(")):
        assert all(words in text and "u =" not in text for text in told("typical", f"outcome == '{outcome}'"))
    assert all("most probable token" in text for text in told("typical", "node < 0"))


def test_equality_corrects_from_the_row_without_the_guess():
    assert all("the target's row without it" in text for text in told("equality", "outcome == 'corrected'"))


def test_a_rule_in_words_has_its_settings_and_says_what_is_lossy():
    lenient = {"name": "lenient", "lossless": False, "settings": {"leniency": 0.5}}
    assert rule_in_words(lenient) == f"lenient,leniency=0.5 ({LOSSY})"
    assert rule_in_words({"name": "token", "lossless": True}) == "token"
    assert lossy_sentence(lenient) == f"The rule lenient is {LOSSY}."
    assert lossy_sentence({"name": "block", "lossless": True, "settings": {}}) == ""
