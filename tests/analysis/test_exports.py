"""Exports say what vLLM and AIPerf would: their golden case, their invariants, and their own ideas of a step."""

import numpy as np
import pandas as pd
import pytest

from specworkbench import analysis
from specworkbench.analysis.exports import ENGINE, FORMATS
from specworkbench.paths import traces_dir
from specworkbench.trace import Trace, load_trace, schema
from tests.trace.toy import toy_trace

GOLDEN = [2, 3, 1, 4, 2, 0, 3, 3]
"""Accepted per step of AIPerf's worked example, with four drafted in each."""


def trace_of(accepted, proposed, gamma=4, proposer="draft_model"):
    """A trace of one sequence with these rounds; the other columns are as they come."""
    columns = {column.name: [0] * len(accepted) for column in schema.ROUNDS}
    columns |= {"round": range(len(accepted)), "gamma": [gamma] * len(accepted), "shortened": [""] * len(accepted)}
    columns |= {"accepted": accepted, "proposed": proposed, "verdict_length": np.add(accepted, 1)}
    tokens = int(np.add(accepted, 1).sum())
    sequence = {"id": "a", "bucket": "b", "prompt_tokens": [1, 2], "token_ids": [0] * tokens}
    manifest = {"gamma": gamma, "proposer": {"name": proposer}, "sequences": [sequence]}
    return Trace(manifest, schema.conform("rounds", pd.DataFrame(columns)), schema.empty("positions"))


def check_invariants(trace):
    """What AIPerf's model validates, and that the parts sum to the total."""
    records = [record for record in analysis.acceptance_records(trace, detailed=True) if record]
    metrics = [found for found in analysis.vllm_metrics(trace, detailed=True) if found]
    assert len(records) == len(metrics) == len(trace.sequences)
    for record, found in zip(records, metrics, strict=True):
        histogram = record["acceptance_histogram"]
        assert sum(histogram.values()) == record["num_spec_steps"] == sum(found["acceptance_histogram"])
        assert sum(j * count for j, count in histogram.items()) == record["num_accepted_draft_tokens"]
        assert record["num_accepted_draft_tokens"] <= record["num_draft_tokens"]
        assert 0 not in histogram.values() and max(histogram, default=0) <= record["num_spec_tokens"]
        assert len(found["acceptance_histogram"]) == found["num_spec_tokens"] + 1
        assert sum(found.get("per_step_accepted", [])) == found["num_accepted_draft_tokens"]
        assert sum(found.get("per_step_drafted", [])) == found["num_draft_tokens"]
        assert 1 <= record["mean_acceptance_length"] <= record["num_spec_tokens"] + 1
    total = analysis.acceptance_totals(trace)
    for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "completion_tokens"):
        assert total[name] == sum(record[name] for record in records)
    assert analysis.vllm_totals(trace)["acceptance_histogram"] == np.sum(
        [found["acceptance_histogram"] for found in metrics], axis=0
    ).tolist()  # fmt: skip


def test_the_golden_case_of_aiperf():
    trace = trace_of(GOLDEN, [4] * 8)
    shared = {
        "mean_acceptance_length": 3.25, "draft_acceptance_rate": 0.5625, "num_spec_steps": 8,
        "num_accepted_draft_tokens": 18, "num_draft_tokens": 32, "num_spec_tokens": 4,
    }  # fmt: skip
    steps = {"per_step_accepted": GOLDEN, "per_step_drafted": [4] * 8}
    assert analysis.vllm_metrics(trace) == [shared | {"acceptance_histogram": [1, 1, 2, 3, 1]}]
    assert analysis.vllm_metrics(trace, detailed=True) == [shared | {"acceptance_histogram": [1, 1, 2, 3, 1]} | steps]
    record = shared | {
        "engine": ENGINE, "acceptance_histogram": {0: 1, 1: 1, 2: 2, 3: 3, 4: 1}, "completion_tokens": 26,
    }  # fmt: skip
    assert analysis.acceptance_records(trace) == [record | dict.fromkeys(steps)]
    assert analysis.acceptance_records(trace, detailed=True) == [record | steps]


def test_a_round_without_a_guess_is_no_step():
    (found,) = analysis.vllm_metrics(trace_of([2, 0, 1, 0], [4, 0, 2, 0]), detailed=True)
    assert found["num_spec_steps"] == 2 and found["mean_acceptance_length"] == 2.5
    assert (found["per_step_accepted"], found["per_step_drafted"]) == ([2, 1], [4, 2])


def test_a_proposer_that_found_nothing_has_no_step_and_no_arrays():
    (found,) = analysis.vllm_metrics(trace_of([0, 0], [0, 0]), detailed=True)
    assert (found["mean_acceptance_length"], found["draft_acceptance_rate"]) == (1.0, 0.0)
    assert found["acceptance_histogram"] == [0] * 5 and "per_step_accepted" not in found
    (record,) = analysis.acceptance_records(trace_of([0, 0], [0, 0]), detailed=True)
    assert record["acceptance_histogram"] == {} and record["per_step_accepted"] is None


def test_plain_decoding_has_no_acceptance():
    trace = toy_trace(proposer="none")
    assert analysis.vllm_metrics(trace) == analysis.acceptance_records(trace) == [None] * 6
    assert analysis.vllm_totals(trace) is analysis.acceptance_totals(trace) is None
    assert analysis.export(trace, "vllm")["total"]["metrics"] == {"speculative_decoding": None}


def test_a_step_that_eos_cut_counts_what_the_rule_accepted():
    trace = toy_trace(eos_ids=(3,), max_new_tokens=60)
    steps = trace.rounds[trace.rounds["proposed"] > 0]
    assert (steps["emitted"] < steps["verdict_length"]).any(), "or nothing was cut, and the test is none"
    assert analysis.vllm_totals(trace)["num_accepted_draft_tokens"] == steps["accepted"].sum()


@pytest.mark.parametrize("trace", [toy_trace(gamma=2), toy_trace(misses=0.5), toy_trace(rule="greedy")])
def test_records_of_chains_hold_aiperfs_invariants(trace):
    check_invariants(trace)


def test_the_shipped_trace_holds_them_too():
    check_invariants(load_trace(traces_dir() / "quickstart.trace"))


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_names_every_request_and_counts_its_tokens(name):
    trace = toy_trace()
    found = analysis.export(trace, name)
    assert [request["id"] for request in found["requests"]] == [sequence["id"] for sequence in trace.sequences]
    for request, sequence in zip(found["requests"], trace.sequences, strict=True):
        tokens = len(sequence["token_ids"])
        assert request["usage"] == {"prompt_tokens": 4, "completion_tokens": tokens, "total_tokens": 4 + tokens}
    assert found["total"]["usage"]["completion_tokens"] == trace.rounds["emitted"].sum()
