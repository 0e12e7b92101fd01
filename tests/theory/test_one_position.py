"""The closed forms of one position: the token rule rebuilds p, faults do not, and bad input is a sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench.errors import InputError
from specworkbench.theory.one_position import (
    EXACT,
    RULES,
    SETTINGS,
    emitted_law,
    one_position,
    with_probability,
)
from tests.theory.rows import pairs

P, Q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.2, 0.1, 0.5]
KINDS = {kind: [name for name, rule in RULES.items() if rule.kind == kind] for kind in ("exact", "lossy", "fault")}


@given(pairs(8), st.sampled_from(list(RULES)))
def test_every_law_is_a_distribution(pair, rule):
    law = emitted_law(*pair, rule)
    assert law.min() >= 0 and law.sum() == pytest.approx(1, abs=EXACT)


@given(pairs(8), st.sampled_from(KINDS["exact"]))
def test_exact_rules_rebuild_p(pair, rule):
    position = one_position(*pair, rule)
    assert position.tv < EXACT
    assert position.accepted + position.replaced == pytest.approx(pair[0], abs=EXACT)


@pytest.mark.parametrize("rule", KINDS["lossy"] + KINDS["fault"])
def test_every_other_rule_changes_p(rule):
    more = {"k": 1} if rule == "raw q" else {"floor": 0.3} if rule == "q floored" else {}
    assert one_position(P, Q, rule, **more).tv > 0.01


@given(pairs(8))
def test_the_token_rule_accepts_the_overlap_and_its_residual_is_the_rest(pair):
    p, q = pair
    position = one_position(p, q)
    assert position.accepted == pytest.approx(np.minimum(p, q), abs=EXACT)
    assert position.replaced == pytest.approx(position.residual, abs=EXACT)
    assert position.acceptance == pytest.approx(1 - np.abs(p - q).sum() / 2, abs=EXACT)


@given(pairs(8))
def test_equality_accepts_the_chance_that_two_draws_agree(pair):
    p, q = pair
    assert one_position(p, q, "equality").acceptance == pytest.approx(p @ q, abs=EXACT)


def test_what_comes_out_of_some_mistakes_is_known_without_the_formula():
    assert emitted_law(P, Q, "always accept").tolist() == Q
    assert emitted_law(P, Q, "residual q − p") == pytest.approx(Q)
    assert emitted_law(P, Q, "ensemble", weight=0.5) == pytest.approx((np.array(P) + Q) / 2)
    assert emitted_law(P, Q, "lenient", leniency=1.0) == pytest.approx(P)
    assert emitted_law(P, Q, "typical", epsilon=0.2, delta=1.0) == pytest.approx([0.8, 0.2, 0, 0])


def test_draft_that_agrees_is_always_accepted():
    assert one_position(P, P).acceptance == pytest.approx(1) and one_position(P, P, "resample from p").tv < EXACT


@given(pairs(8), st.integers(0, 1), st.floats(0, 1))
def test_moving_one_probability_keeps_a_distribution_and_the_proportions_of_the_others(pair, index, value):
    before, after = pair[0], with_probability(pair[0], index, value)
    assert after[index] == value and after.sum() == pytest.approx(1, abs=EXACT) and after.min() >= 0
    others = np.delete(np.arange(len(before)), index)
    if before[others].sum() > 0:
        assert after[others] * before[others].sum() == pytest.approx(before[others] * (1 - value), abs=EXACT)
    else:
        assert np.ptp(after[others]) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: one_position([0.5, 0.4], [0.5, 0.5]), "p sums to 0.9; it must sum to 1"),
        (lambda: one_position([1.5, -0.5], [0.5, 0.5]), "it is a probability"),
        (lambda: one_position([1.0], [1.0]), "at least 2"),
        (lambda: one_position([0.5, 0.5], [0.5, 0.25, 0.25]), "over the same tokens"),
        (lambda: one_position(P, Q, "tokens"), "there is no rule 'tokens'"),
        (lambda: one_position(P, Q, "token", leniency=0.5), "has no setting 'leniency'; it has none"),
        (lambda: one_position(P, Q, "lenient", leniency=0), "leniency is 0; it must be from 0.01 to 1"),
        (lambda: one_position(P, Q, "raw q", k="2"), "k is '2'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_every_setting_is_used_by_a_rule_and_its_default_is_within_its_limits():
    assert set(SETTINGS) == {name for rule in RULES.values() for name in rule.settings}
    assert all(setting.low <= setting.default <= setting.high for setting in SETTINGS.values())
    for name, rule in RULES.items():
        for setting in rule.settings:
            ends = (SETTINGS[setting].low, min(SETTINGS[setting].high, 4))
            laws = [emitted_law(P, Q, name, **{setting: end}) for end in ends]
            assert np.abs(laws[0] - laws[1]).max() > 1e-3, f"{setting} changes nothing in {name}"
