"""Every contract passes on honest traces and rejects the fault it is there for, naming where it is."""

import copy

import numpy as np
import pytest

from specworkbench.trace import Trace, contracts
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


def mutable(trace: Trace) -> Trace:
    rows = copy.deepcopy(trace.rows)
    distributions = None if trace.distributions is None else trace.distributions.copy()
    return Trace(copy.deepcopy(trace.manifest), trace.rounds.copy(), trace.positions.copy(), distributions, rows)


def pick(trace: Trace, outcome: str, nth: int = 3) -> int:
    """Row of the nth position of that outcome, not in a sequence's last round."""
    last = trace.rounds.groupby("sequence")["round"].max()
    rows = trace.positions[trace.positions["outcome"] == outcome]
    return rows.index[(rows["round"] < rows["sequence"].map(last)).to_numpy()][nth]


@pytest.mark.parametrize("settings", GOOD.values(), ids=GOOD)
def test_an_honest_trace_passes(settings):
    assert failed(toy_trace(**settings)) == set()


def test_what_was_not_recorded_is_said_to_be():
    found = findings(toy_trace(rule="greedy"))
    assert {name for name, finding in found.items() if finding.status == "not recorded"} == {
        "uniforms",
        "distributions",
    }


def test_only_the_cheap_contracts_run_when_asked():
    names = set(findings(toy_trace(), cheap_only=True))
    assert names == {contract.name for contract in contracts.REGISTRY if contract.cheap}
    assert "distributions" not in names


def positions(outcome: str, column: str, change):
    """A fault in one position: its value in a column changed."""

    def mutate(trace: Trace) -> tuple[int, int]:
        row = pick(trace, outcome)
        trace.positions.loc[row, column] = change(trace.positions.loc[row])
        return tuple(trace.positions.loc[row, ["sequence", "round"]])

    return mutate


def rounds(column: str, change):
    """A fault in one round: its value in a column changed."""

    def mutate(trace: Trace) -> tuple[int, int]:
        row = trace.rounds.index[(trace.rounds["accepted"] > 0) & (trace.rounds["round"] == 1)][0]
        trace.rounds.loc[row, column] = change(trace.rounds.loc[row])
        return tuple(trace.rounds.loc[row, ["sequence", "round"]])

    return mutate


FAULTS = [
    ("rounds", "a round is missing", lambda t: _drop(t, "rounds", 1)),
    ("rounds", "rounds misnumbered", lambda t: _renumber_round(t)),
    ("rounds", "no token drawn", lambda t: _drop(t, "positions", pick(t, "bonus"))),
    ("positions", "position off by one", positions("rejected", "position", lambda r: r["position"] + 1)),
    ("positions", "corrected one beyond the rejected", positions("corrected", "position", lambda r: r["position"] + 1)),
    ("positions", "depth off", positions("accepted", "depth", lambda r: r["depth"] + 1)),
    ("prefix", "accepted beyond the rejected", positions("discarded", "outcome", lambda r: "accepted")),
    ("prefix", "discarded without rejection", positions("rejected", "outcome", lambda r: "discarded")),
    ("prefix", "a bonus after a rejection", positions("corrected", "outcome", lambda r: "bonus")),
    ("prefix", "an unknown outcome", positions("accepted", "outcome", lambda r: "kept")),
    ("counts", "accepted as a sum of flags", rounds("accepted", lambda r: r["accepted"] - 1)),
    ("counts", "verdict length without the drawn token", rounds("verdict_length", lambda r: r["accepted"])),
    ("counts", "emitted miscounted", rounds("emitted", lambda r: r["emitted"] + 1)),
    ("counts", "one target row too few", rounds("target_positions", lambda r: r["proposed"])),
    ("order", "more proposed than asked", rounds("asked", lambda r: r["proposed"] - 1)),
    ("order", "more asked than gamma", rounds("gamma", lambda r: r["asked"] - 1)),
    ("order", "an unknown reason", rounds("shortened", lambda r: "tired")),
    ("order", "shortened without a reason", rounds("gamma", lambda r: r["asked"] + 1)),
    ("decision", "accepted with u above", positions("accepted", "u", lambda r: np.nextafter(r["accept_prob"], 2))),
    ("decision", "accepted with u equal", positions("accepted", "u", lambda r: r["accept_prob"])),
    ("decision", "rejected with u below", positions("rejected", "u", lambda r: r["accept_prob"] / 2)),
    ("decision", "no u", positions("rejected", "u", lambda r: np.nan)),
    ("decision", "a drawn token that was judged", positions("bonus", "u", lambda r: 0.123)),
    (
        "accept_prob",
        "ratio off by one bit",
        positions("rejected", "accept_prob", lambda r: np.nextafter(r.accept_prob, 2)),
    ),
    ("accept_prob", "ratio q/p", positions("rejected", "accept_prob", lambda r: min(1.0, r["q"] / r["p"]))),
    ("accept_prob", "ratio with lenience", positions("rejected", "accept_prob", lambda r: r["accept_prob"] * 1.25)),
    ("uniforms", "a uniform of 1", positions("rejected", "u", lambda r: 1.0)),
    ("uniforms", "u used again for the residual", lambda t: _reuse_for_residual(t)),
    ("uniforms", "one u for all positions of a round", lambda t: _one_u_for_all(t)),
    ("uniforms", "a draw of another sequence", lambda t: _reuse_across_sequences(t)),
    ("output", "another token in the output", positions("accepted", "token", lambda r: (r["token"] + 1) % 4)),
    (
        "output",
        "a place in the output taken twice",
        positions("bonus", "output_index", lambda r: r["output_index"] - 1),
    ),
    ("output", "a rejected token emitted", lambda t: _emit_rejected(t)),
    ("output", "token_ids lacks its last", lambda t: t.sequences[0]["token_ids"].pop() and None),
    ("end", "output beyond an EOS", lambda t: t.manifest.update(eos_ids=[t.sequences[0]["token_ids"][4]])),
    ("end", "output beyond the limit", lambda t: t.manifest.update(max_new_tokens=20)),
    ("end", "stopped at EOS without one", lambda t: t.sequences[0].update(stop_reason="eos")),
    ("end", "stopped at a length not reached", lambda t: t.manifest.update(max_new_tokens=40)),
    ("end", "cut in the middle", lambda t: _cut_in_the_middle(t)),
    ("context", "a token lost from the context", rounds("context_length", lambda r: r["context_length"] - 1)),
    (
        "context",
        "last accepted lost from the cache",
        rounds("target_cache_tokens", lambda r: r.target_cache_tokens - 1),
    ),
    ("context", "rejected token left in the cache", rounds("target_cache_tokens", lambda r: r.target_cache_tokens + 1)),
    ("nulls", "q at the bonus", positions("bonus", "q", lambda r: 0.5)),
    ("nulls", "no overlap where examined", positions("rejected", "overlap", lambda r: np.nan)),
    ("nulls", "no p", positions("accepted", "p", lambda r: np.nan)),
    ("probabilities", "p above 1", positions("bonus", "p", lambda r: 1.0001)),
    ("probabilities", "overlap and tv apart", positions("accepted", "overlap", lambda r: r["overlap"] + 1e-6)),
    ("probabilities", "residual of |p - q|", positions("rejected", "residual_mass", lambda r: 2 * r["tv"])),
    (
        "probabilities",
        "overweight set of other rows",
        positions("accepted", "overweight_q", lambda r: r["overweight_p"]),
    ),
    ("probabilities", "in_overweight wrong", positions("accepted", "in_overweight", lambda r: not r["in_overweight"])),
    ("probabilities", "corrected where q >= p", lambda t: _correct_without_residual(t)),
    ("probabilities", "negative entropy", positions("bonus", "entropy_p", lambda r: -0.1)),
    ("probabilities", "rank 0", positions("bonus", "rank_p", lambda r: 0)),
    ("times", "a negative time", rounds("ms_verify", lambda r: -1.0)),
    ("times", "phases longer than the round", rounds("ms_total", lambda r: r["ms_verify"])),
    ("times", "rounds longer than the sequence", lambda t: t.sequences[1].update(ms_total=50.0)),
    ("distributions", "p of another row", lambda t: _shift_distribution(t, "p")),
    ("distributions", "q of another row", lambda t: _shift_distribution(t, "q")),
    ("distributions", "the drawn token is not listed", lambda t: _unlist(t)),
    ("distributions", "more than all the mass", lambda t: _overfill(t)),
]


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


def test_every_contract_has_a_fault():
    assert {name for name, _, _ in FAULTS} | {"manifest"} == {contract.name for contract in contracts.REGISTRY}


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


def test_trees_are_left_to_checks_that_know_them(good):
    trace = mutable(good)
    trace.positions.loc[trace.positions["node"] >= 0, "parent"] = -1
    found = findings(trace)
    assert {found[name].status for name in ("positions", "prefix", "order")} == {"not recorded"}


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


def _drop(trace, table, row):
    frame = getattr(trace, table)
    setattr(trace, table, frame.drop(index=row))
    return tuple(frame.loc[row, ["sequence", "round"]])


def _renumber_round(trace):
    for table in (trace.rounds, trace.positions):
        table.loc[(table["sequence"] == 1) & (table["round"] == 2), "round"] = 90
    return (1, 3)


def _reuse_for_residual(trace):
    row = pick(trace, "corrected")
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.positions[["sequence", "round"]] == keys).all(axis=1) & (trace.positions["outcome"] == "rejected")
    trace.positions.loc[row, "u_draw"] = trace.positions.loc[same, "u"].item()
    return tuple(keys)


def _one_u_for_all(trace):
    row = pick(trace, "bonus")
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.positions[["sequence", "round"]] == keys).all(axis=1) & (trace.positions["node"] >= 0)
    trace.positions.loc[same, "u"] = trace.positions.loc[same, "u"].min()
    return tuple(keys)


def _reuse_across_sequences(trace):
    first, last = trace.positions.index[0], trace.positions.index[-1]
    trace.positions.loc[last, "u_draw"] = trace.positions.loc[first, "u_draw"]


def _emit_rejected(trace):
    row = pick(trace, "rejected")
    trace.positions.loc[row, ["emitted", "output_index"]] = [True, 0]
    return tuple(trace.positions.loc[row, ["sequence", "round"]])


def _cut_in_the_middle(trace):
    row = pick(trace, "bonus")
    trace.positions.loc[row, "emitted"] = False
    keys = trace.positions.loc[row, ["sequence", "round"]]
    same = (trace.rounds[["sequence", "round"]] == keys).all(axis=1)
    trace.rounds.loc[same, "emitted"] -= 1
    return tuple(keys)


def _correct_without_residual(trace):
    row = pick(trace, "corrected")
    trace.positions.loc[row, "p"] = trace.positions.loc[row, "q"] / 2
    trace.positions.loc[row, "in_overweight"] = True
    return tuple(trace.positions.loc[row, ["sequence", "round"]])


def _shift_distribution(trace, column):
    row = trace.distributions.index[2]
    trace.distributions.at[row, column] = trace.distributions.at[row, column] * 0.9
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])


def _unlist(trace):
    row = trace.distributions.index[2]
    keys = ["sequence", "round", "position"]
    same = (trace.positions[keys] == trace.distributions.loc[row, keys]).all(axis=1)
    token = trace.positions.loc[same, "token"].iloc[0]
    kept = trace.distributions.at[row, "tokens"] != token
    for column in ("tokens", "p", "q"):
        trace.distributions.at[row, column] = trace.distributions.at[row, column][kept]
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])


def _overfill(trace):
    row = trace.distributions.index[2]
    trace.distributions.at[row, "tokens"] = np.append(trace.distributions.at[row, "tokens"], 99).astype(np.int32)
    for column in ("p", "q"):
        trace.distributions.at[row, column] = np.append(trace.distributions.at[row, column], 0.99)
    return tuple(trace.distributions.loc[row, ["sequence", "round"]])
