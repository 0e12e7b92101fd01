"""Speedup is a ratio of totals over the prompts both traces have, and the prediction is the formula's."""

import json

import numpy as np
import pytest

from specworkbench import analysis, theory
from specworkbench.errors import InputError
from tests.trace.toy import toy_trace

ROW = (
    "proposer bucket gamma temperature alpha_counts alpha_overlap block_efficiency expected_tokens c verify_cost "
    "speedup_predicted speedup_measured speedup_low speedup_high tokens"
).split()


@pytest.fixture(scope="module")
def plain():
    return toy_trace(proposer="none", max_new_tokens=60)


@pytest.fixture(scope="module")
def speculative():
    return toy_trace(gamma=3, max_new_tokens=60)


def test_measured_speedup_is_the_ratio_of_totals(plain, speculative):
    def per_token(trace):
        return sum(s["ms_total"] for s in trace.sequences) / sum(len(s["token_ids"]) for s in trace.sequences)

    value, low, high = analysis.measured_speedup(plain, speculative)
    assert value == pytest.approx(per_token(plain) / per_token(speculative), rel=1e-12)
    assert low < value < high
    assert analysis.measured_speedup(plain, speculative).n == 6


def test_the_interval_is_reproducible(plain, speculative):
    assert analysis.measured_speedup(plain, speculative) == analysis.measured_speedup(plain, speculative)


def test_plain_against_itself_is_one_without_doubt(plain):
    assert tuple(analysis.measured_speedup(plain, plain)) == (1.0, 1.0, 1.0)


def test_rounds_alone_leave_the_prefills_out(plain, speculative):
    whole, rounds = (analysis.measured_speedup(plain, speculative, prefill=p).value for p in (True, False))
    before, after = (t.rounds["ms_total"].sum() / t.rounds["emitted"].sum() for t in (plain, speculative))
    assert rounds == pytest.approx(before / after, rel=1e-12)
    assert whole < rounds


def test_prompts_of_one_trace_only_are_left_out(plain, speculative):
    part = analysis.select(speculative, [0, 2, 5])
    expected = analysis.measured_speedup(analysis.select(plain, [0, 2, 5]), part)
    assert analysis.measured_speedup(plain, part) == expected
    assert expected.n == 3


def test_one_prompt_has_no_interval(plain, speculative):
    value, low, high = analysis.measured_speedup(analysis.select(plain, [0]), analysis.select(speculative, [0]))
    assert value > 1 and low is high is None


@pytest.mark.parametrize("key", ["target", "sampling", "device"])
def test_traces_of_other_settings_are_refused(plain, speculative, key):
    other = analysis.select(speculative, range(6))
    other.manifest[key] = "other"
    with pytest.raises(InputError, match=f"{key} is .* and other in the other"):
        analysis.measured_speedup(plain, other)


def test_traces_without_a_common_prompt_are_refused(plain):
    with pytest.raises(InputError, match="no prompt id"):
        analysis.measured_speedup(plain, toy_trace(buckets=("chat",)))


def test_the_prediction_is_the_formula_of_the_measured_figures(plain, speculative):
    row = analysis.compare(plain, speculative)
    expected = theory.speedup(row["alpha_counts"], row["gamma"], row["c"], verify_cost=row["verify_cost"])
    assert row["speedup_predicted"] == expected
    assert row["expected_tokens"] == theory.expected_tokens(row["alpha_counts"], row["gamma"])
    assert analysis.predicted_speedup(plain, speculative, overhead=True) < expected


def test_prediction_and_measurement_agree_where_the_formula_holds():
    """Rows that do not depend on the context, long outputs, rounds alone: what the formula assumes."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    settings = {"per_bucket": 5, "max_new_tokens": 120}
    plain, speculative = toy_trace(p, q, proposer="none", **settings), toy_trace(p, q, gamma=3, **settings)
    measured = analysis.measured_speedup(plain, speculative, prefill=False)
    assert measured.value == pytest.approx(analysis.predicted_speedup(plain, speculative), rel=0.05)


def test_a_row_has_the_keys_of_a_report_and_is_json(plain, speculative):
    row = analysis.compare(plain, speculative)
    assert list(row) == ROW
    json.dumps(row, allow_nan=False)
    assert row["bucket"] == "all" and row["proposer"] == "draft_model" and row["tokens"] == 360
    before, after = analysis.by_bucket(plain), analysis.by_bucket(speculative)
    assert [analysis.compare(before[name], after[name])["bucket"] for name in after] == ["code", "prose"]


@pytest.mark.parametrize("cost", [0.0, 0.3])
def test_an_instrument_has_a_predicted_speedup_and_no_measured_one(plain, cost):
    instrument = toy_trace(gamma=3, max_new_tokens=60)
    instrument.manifest["proposer"]["cost_set"] = cost
    row = analysis.compare(plain, instrument)
    assert row["c"] == cost
    assert row["speedup_measured"] is row["speedup_low"] is row["speedup_high"] is None
    assert analysis.measured_speedup(plain, instrument, prefill=False).value is None
    expected = theory.speedup(row["alpha_counts"], 3, cost, verify_cost=row["verify_cost"])
    assert row["speedup_predicted"] == expected
    json.dumps(row, allow_nan=False)


def test_what_was_not_measured_is_none_in_the_row(plain):
    never = toy_trace(gamma=3, misses=1.0, max_new_tokens=60)
    row = analysis.compare(plain, never)
    for key in ("alpha_counts", "alpha_overlap", "expected_tokens", "c", "verify_cost", "speedup_predicted"):
        assert row[key] is None
    assert row["block_efficiency"] == 1
    assert np.isfinite(row["speedup_measured"])
