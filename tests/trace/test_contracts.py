"""Every contract passes on honest traces and rejects the fault it is there for, naming where it is."""

import re

import numpy as np
import pytest

from specworkbench.trace import Trace, contracts
from tests.trace.faults import FAULTS, mutable, pick
from tests.trace.toy import toy_trace

GOOD = {
    "default": {},
    "top-k": {"capture": "top-k"},
    "full": {"capture": "full"},
    "greedy": {"rule": "greedy"},
    "plain": {"proposer": "none"},
    "misses": {"misses": 0.4},
    "eos": {"eos_ids": (2,)},
    "one token": {"max_new_tokens": 1},
    "no sequence": {"per_bucket": 0},
}


def findings(trace: Trace, cheap_only: bool = False) -> dict[str, contracts.Finding]:
    return {contract.name: finding for contract, finding in contracts.run(trace, cheap_only)}


def failed(trace: Trace) -> set[str]:
    return {name for name, finding in findings(trace).items() if finding.status == "fail"}


@pytest.fixture(scope="module")
def good() -> Trace:
    return toy_trace(capture="top-k")


@pytest.fixture(scope="module")
def full() -> Trace:
    return toy_trace(capture="full")


@pytest.mark.parametrize("settings", GOOD.values(), ids=GOOD)
def test_an_honest_trace_passes(settings):
    assert failed(toy_trace(**settings)) == set()


def test_what_was_not_recorded_is_said_to_be():
    found = findings(toy_trace(rule="greedy"))
    assert {name for name, finding in found.items() if finding.status == "not recorded"} == {
        "uniforms",
        "distributions",
        "draws",
    }


def test_only_the_cheap_contracts_run_when_asked():
    names = set(findings(toy_trace(), cheap_only=True))
    assert names == {contract.name for contract in contracts.REGISTRY if contract.cheap}
    assert "distributions" not in names


@pytest.mark.parametrize(
    ("name", "fault"), [(n, f) for n, _, f in FAULTS], ids=[f"{n}: {what}" for n, what, _ in FAULTS]
)
def test_a_fault_is_rejected_by_its_contract(good, name, fault):
    trace = mutable(good)
    where = fault(trace)
    found = findings(trace)[name]
    assert found.status == "fail", found
    if where is not None:
        assert (found.sequence, found.round) == where
        assert f"sequence {where[0]}, round {where[1]}" in found.where


def test_a_sentence_has_few_digits():
    trace = mutable(toy_trace(target=[1 / 3, 2 / 3], draft=[2 / 3, 1 / 3]))
    row = trace.positions.index[trace.positions["outcome"] == "accepted"][0]
    trace.positions.loc[row, ["u", "accept_prob"]] = 1 / 1.3, 1 / 3.7
    found = findings(trace)
    for name in ("decision", "accept_prob"):
        assert "0.27" in found[name].detail and not re.search(r"\d\.\d{6}", found[name].detail), found[name].detail


def test_every_contract_has_a_fault():
    elsewhere = {"manifest", "draws"}  # below, and in test_draws.py
    assert {name for name, _, _ in FAULTS} | elsewhere == {contract.name for contract in contracts.REGISTRY}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.pop("sampling"), "lacks sampling"),
        (lambda m: m.update(capture="some"), "capture is 'some'"),
        (lambda m: m["sequences"][2].pop("token_ids"), "lacks token_ids"),
        (lambda m: m["sequences"][2].update(stop_reason="bored"), "stop_reason is 'bored'"),
    ],
)
def test_a_manifest_that_is_not_whole_is_rejected(good, change, said):
    trace = mutable(good)
    change(trace.manifest)
    found = findings(trace)["manifest"]
    assert found.status == "fail" and said in found.detail


@pytest.mark.parametrize("fault", ["target row", "draft row", "scaled row", "overlap"])
def test_full_rows_must_be_those_of_the_positions(full, fault):
    trace = mutable(full)
    if fault == "target row":
        trace.rows["target"] = np.roll(trace.rows["target"], 1, axis=0)
    elif fault == "draft row":
        trace.rows["draft"] = trace.rows["draft"][:, ::-1].copy()
    elif fault == "scaled row":
        trace.rows["target"][3] *= 0.5
    else:
        trace.positions.loc[0, "overlap"] -= 0.001
    assert "distributions" in failed(trace)


def test_greedy_accepts_only_the_most_probable_token():
    trace = mutable(toy_trace(rule="greedy"))
    row = pick(trace, "accepted", 0)
    trace.positions.loc[row, "rank_p"] = 2
    assert failed(trace) == {"accept_prob"}


def test_u_is_strictly_below(good):
    """u = 0 against accept_prob = 0 rejects; the comparison is not <=."""
    trace = mutable(good)
    row = pick(trace, "rejected")
    trace.positions.loc[row, ["p", "accept_prob", "u"]] = 0.0
    assert "decision" not in failed(trace)
    trace.positions.loc[row, "outcome"] = "accepted"
    assert "decision" in failed(trace)


def test_float32_uniforms_may_repeat_as_often_as_chance_has_it():
    """24 bits: among 20,000 uniforms some 12 pairs are equal, and that is no reuse; one in every tenth round is."""
    trace = mutable(toy_trace(per_bucket=1, buckets=("a",), max_new_tokens=10))
    rng = np.random.default_rng(0)
    many = trace.positions.iloc[np.zeros(10_000, dtype=int)].copy()
    many["round"] = np.arange(len(many)) // 4
    many["outcome"], many["node"] = "accepted", np.arange(len(many)) % 4
    trace.rounds = trace.rounds.iloc[np.zeros(2500, dtype=int)].assign(round=np.arange(2500))
    for column in ("u", "u_draw"):
        many[column] = rng.integers(0, 2**24, len(many)) / 2**24
    assert many[["u", "u_draw"]].stack().duplicated().sum() > 3
    trace.positions = many.reset_index(drop=True)
    assert findings(trace)["uniforms"].status == "pass"
    trace.positions.loc[::40, "u_draw"] = trace.positions.loc[::40, "u"]
    assert findings(trace)["uniforms"].status == "fail"


def test_accept_prob_of_a_float32_device_is_recomputed_in_float32(good):
    trace = mutable(good)
    judged = trace.positions["node"] >= 0
    for name in ("p", "q"):
        trace.positions[name] = trace.positions[name].astype(np.float32).astype(np.float64)
    ratio = (trace.positions["p"].astype(np.float32) / trace.positions["q"].astype(np.float32)).clip(upper=1)
    trace.positions["accept_prob"] = ratio.astype(np.float64).where(judged)
    assert findings(trace)["accept_prob"].status == "pass"


def test_a_tree_under_a_rule_of_chains_is_rejected(good):
    trace = mutable(good)
    trace.positions.loc[trace.positions["node"] >= 0, "parent"] = -1
    found = findings(trace)["positions"]
    assert found.status == "fail" and "the rule token judges chains" in found.detail


@pytest.mark.parametrize("table", ["rounds", "positions"])
def test_a_trace_too_broken_to_read_fails_and_nothing_is_raised(good, table):
    trace = mutable(good)
    setattr(trace, table, getattr(trace, table).drop(columns=["sequence"]))
    assert failed(trace) == set(findings(trace))
    trace = mutable(good)
    trace.manifest.clear()
    assert "manifest" in failed(trace)


def test_a_finding_tells_the_numbers_and_how_many(good):
    trace = mutable(good)
    trace.positions.loc[trace.positions["outcome"] == "rejected", "u"] = 0.0
    found = findings(trace)["decision"]
    rejected = int((trace.positions["outcome"] == "rejected").sum())
    assert (
        "u = " in found.detail and "accept_prob = " in found.detail and f"first of {rejected} positions" in found.detail
    )
