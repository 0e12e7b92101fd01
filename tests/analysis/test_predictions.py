"""Each prediction is its formula of the measured figures, and is told beside all three readings of the measurement."""

import numpy as np
import pytest

from specworkbench import analysis, theory
from specworkbench.analysis.predictions import COLUMNS, NAMES, survival_speedup
from tests.analysis.made import made, plain_of, round_of
from tests.trace.toy import toy_trace

ACCEPTED = (3, 0, 1, 3, 2, 0) * 4
ROUND = {"propose": 3.0, "target": 14.0, "rollback": 0.5, "loop": 0.1}
PLAIN = {"rollback": 0.4, "loop": 0.2}


def told(plain, speculative):
    found = analysis.gap(plain, speculative)
    return analysis.predictions(plain, speculative, found).set_index("prediction"), found


def pair(**ms):
    return plain_of(60, **PLAIN), made({"one": [round_of(length, **ROUND | ms) for length in ACCEPTED]})


def test_with_whole_proposals_it_is_the_cost_aware_formula_of_the_measured_survival():
    plain, speculative = pair()
    survival = [np.mean(np.array(ACCEPTED) >= j) for j in (1, 2, 3)]
    c, v, overhead = 0.1, 1.4, 0.06
    expected = theory.expected_tokens_survival(survival) * 1.06 / (3 * c + v + overhead)
    table, found = told(plain, speculative)
    assert survival_speedup(plain, speculative) == pytest.approx(expected, rel=1e-12)
    assert table["speedup"].tolist() == pytest.approx(
        [
            theory.speedup(found.alpha, 3, c),
            theory.speedup(found.alpha, 3, c, verify_cost=v),
            expected,
            expected,
        ]
    )
    assert table.loc["i.i.d., cost-aware", "speedup"] == analysis.predicted_speedup(plain, speculative)


def test_where_nothing_but_rounds_takes_time_it_is_the_measurement():
    table, found = told(*pair())
    assert found.speedup.value == pytest.approx(table.loc["survival, cost-aware", "speedup"])
    assert table.loc["survival, cost-aware", list(COLUMNS[3:])].tolist() == pytest.approx([0, 0, 0], abs=1e-12)


def test_each_size_of_proposal_has_its_own_cost():
    some = [
        round_of(3, 3, propose=3.0, target=14.0),
        round_of(0, 0, propose=0.2),
        round_of(1, 1, propose=1.0, target=11.0),
    ]
    plain, speculative = plain_of(), made({"one": some * 5})
    expected = (1 + 2 / 3 + 1 / 3 + 1 / 3) * 10 / np.mean([17.0, 10.2, 12.0])
    assert survival_speedup(plain, speculative) == pytest.approx(expected)


def test_errors_are_relative_to_whole_sequences_to_rounds_and_to_undisturbed_rounds():
    plain, speculative = pair()
    rounds = [round_of(length, **ROUND) for length in ACCEPTED]
    rounds[3] = round_of(ACCEPTED[3], **ROUND | {"target": 400.0})
    speculative = made({"one": rounds}, prefill=50.0)
    table, found = told(plain, speculative)
    for name, measured in (
        ("error", found.speedup.value),
        ("error_rounds", analysis.measured_speedup(plain, speculative, prefill=False).value),
        ("error_undisturbed", found.after("loop")),
    ):
        assert table[name].tolist() == pytest.approx((table["speedup"] / measured - 1).tolist())
    assert table.loc[["survival, cost-aware", "the same, medians"], "error_undisturbed"].tolist() == pytest.approx(
        [0, 0]
    )
    assert (table.loc[["survival, cost-aware", "the same, medians"], "error_rounds"] > 0.5).all()


def test_where_times_have_two_humps_typical_times_still_add_up():
    """Every other round waits for another program; plain decoding hits it a little more often than not."""
    plain = made({"one": [round_of(0, 0, target=10.0 if i % 9 < 4 else 20.0) for i in range(90)]}, proposer="none")
    speculative = made({"one": [round_of(1, target=20.0 if i % 9 < 5 else 40.0) for i in range(90)]})
    table, _ = told(plain, speculative)
    assert abs(table.loc["survival, cost-aware", "error"]) < 0.05 < abs(table.loc["the same, medians", "error"])


def test_the_end_of_a_budget_is_not_predicted():
    plain, speculative = pair()
    ending = made({"one": [*(round_of(length, **ROUND) for length in ACCEPTED), round_of(0, 0, shortened="budget")]})
    assert survival_speedup(plain, ending) == survival_speedup(plain, speculative)


def test_the_cost_that_is_set_counts_and_the_time_of_an_instrument_does_not():
    plain = plain_of(propose=0.5)
    for propose in (20.0, 70.0):
        dial = made({"one": [round_of(3, propose=propose), round_of(0, propose=propose)]}, cost_set=0.2)
        table, found = told(plain, dial)
        assert table.loc["survival, cost-aware", "speedup"] == pytest.approx(2.5 * 10.5 / (6 + 10.5))
        assert table.loc["i.i.d., plain steps", "speedup"] == theory.speedup(found.alpha, 3, 0.2)
        assert table.loc["survival, cost-aware", "error"] == pytest.approx(0, abs=1e-12)


def test_trees_and_traces_without_a_guess_have_no_iid_prediction():
    tree = made({"one": [round_of(2), round_of(0)]}, tree=True)
    for speculative in (tree, made({"one": [round_of(0, 0)] * 4})):
        table, _ = told(plain_of(), speculative)
        assert table["speedup"].isna().tolist() == [True, True, False, False]


def test_the_formula_holds_where_its_assumptions_do():
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    settings = {"per_bucket": 5, "max_new_tokens": 120}
    table, _ = told(toy_trace(p, q, proposer="none", **settings), toy_trace(p, q, gamma=3, **settings))
    assert list(table.index) == list(NAMES)
    assert (table.loc[["i.i.d., cost-aware", "survival, cost-aware"], "error_rounds"].abs() < 0.05).all()
