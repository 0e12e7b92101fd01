"""The summary has the keys of `decode --json`, in order, and null where nothing was examined."""

import json

from specworkbench import analysis
from tests.trace.toy import toy_trace

KEYS = (
    "text token_ids stop_reason rule rounds proposed examined accepted emitted alpha_counts alpha_overlap "
    "block_efficiency survival_by_position acceptance_by_position ms_prefill ms_propose ms_verify ms_accept "
    "ms_rollback ms_total target_forwards draft_forwards"
).split()


def test_keys_are_those_of_the_command_line():
    assert list(analysis.summary(toy_trace())) == KEYS


def test_figures_are_those_of_the_trace():
    trace = toy_trace(per_bucket=1, buckets=("code",))
    summary = analysis.summary(trace)
    assert summary["token_ids"] == trace.sequences[0]["token_ids"]
    assert summary["text"] == trace.sequences[0]["text"] and summary["stop_reason"] == "length"
    assert summary["emitted"] == len(summary["token_ids"])
    assert summary["rounds"] == summary["target_forwards"] == len(trace.rounds)
    assert summary["alpha_counts"] == summary["accepted"] / summary["examined"]
    assert len(summary["survival_by_position"]) == len(summary["acceptance_by_position"]) == 3
    assert summary["survival_by_position"][0] == summary["acceptance_by_position"][0]
    phases = sum(summary[f"ms_{phase}"] for phase in ("prefill", "propose", "verify", "accept", "rollback"))
    assert phases < summary["ms_total"]


def test_it_is_json_with_null_and_without_nan():
    plain = json.loads(json.dumps(analysis.summary(toy_trace(proposer="none")), allow_nan=False))
    assert plain["alpha_counts"] is plain["alpha_overlap"] is None
    assert plain["survival_by_position"] == plain["acceptance_by_position"] == []
    unreached = json.loads(json.dumps(analysis.summary(toy_trace(gamma=6, max_new_tokens=3)), allow_nan=False))
    assert unreached["survival_by_position"][-1] is None
    empty = json.loads(json.dumps(analysis.summary(toy_trace(per_bucket=0)), allow_nan=False))
    assert empty["text"] is empty["ms_total"] is empty["block_efficiency"] is None and empty["rounds"] == 0
