"""A saved trace is replayed from its tokens: p that no fresh forward gives is found, with its round."""

from dataclasses import replace

import numpy as np
import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.numerics import allowed, check_fresh_rows, processed, recheck
from specworkbench.equivalence.numerics.recheck import compared
from specworkbench.equivalence.setup import record
from specworkbench.equivalence.toys import toy_model
from specworkbench.equivalence.tree_toys import KINDS
from specworkbench.errors import InputError
from specworkbench.trace import contracts, load_trace, save_trace
from tests.equivalence.numerics.cases import FAULTS, PENALISED, embedded_pair, embedded_setups, toy_setup

SETTINGS = [
    None, PENALISED, SamplingSettings(temperature=0), SamplingSettings(0.7, top_k=3), SamplingSettings(top_p=0.7),
    SamplingSettings(min_p=0.2),
]  # fmt: skip


def recorded(setup, path, sequences=2):
    """The trace of a setup, as it comes back from its file."""
    return load_trace(save_trace(record(setup, sequences, seed=6), path / "t.trace"))


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_every_p_of_a_correct_trace_is_that_of_a_fresh_forward(sampling, tmp_path):
    setup = toy_setup(sampling)
    trace = recorded(setup, tmp_path)
    found = recheck(trace, setup.target)
    assert len(found) == len(trace.positions) and found["difference"].max() < 1e-10
    assert check_fresh_rows(trace, setup.target).status == "pass"


@pytest.mark.parametrize("kind", KINDS)
def test_and_of_a_trace_of_trees(kind, tmp_path):
    setup = toy_setup(PENALISED)
    proposer = KINDS[kind](setup.proposer.draft)
    setup = setup.but(proposer=proposer, verifier=make_verifier(None, PENALISED, proposer))
    assert recheck(recorded(setup, tmp_path), setup.target)["difference"].max() < 1e-10


@pytest.mark.parametrize(
    "name, greedy", [*((name, False) for name in FAULTS), ("rejected_token_stays", True), ("rows_shifted", True)]
)
def test_a_fault_of_rows_fails_at_its_first_round(name, greedy):
    _, fault, sampling = FAULTS[name]
    setup = fault(toy_setup(replace(sampling, temperature=0) if greedy else sampling, vocab=20))
    trace = record(setup, 2, seed=6)
    finding, found = check_fresh_rows(trace, setup.target, None), recheck(trace, setup.target)
    assert finding.status == "fail"
    bad = found[found["difference"] > allowed(trace, setup.target)].iloc[0]
    assert (finding.sequence, finding.round) == (bad["sequence"], bad["round"])


def test_a_single_altered_p_fails():
    setup = toy_setup()
    trace = record(setup, 2, seed=6)
    trace.positions.loc[30, "p"] += 0.01
    finding = check_fresh_rows(trace, setup.target, None)
    assert finding.status == "fail" and finding.round == trace.positions["round"][30]


def test_a_trace_of_the_embedded_pair_passes_in_its_dtype_and_against_float64():
    setup = embedded_setups(1, length=12)[0]
    trace = record(setup, 1)
    for target in (setup.target, embedded_pair("float64")[0], embedded_pair("bfloat16", False)[0]):
        finding = check_fresh_rows(trace, target)
        assert finding.status == "pass", finding.detail
        assert recheck(trace, target)["difference"].max() > 0
    other = check_fresh_rows(trace, embedded_pair()[1])
    assert other.status == "fail"  # another model is no fresh forward of this one


@pytest.mark.parametrize(
    "settings", [SamplingSettings(top_k=2), SamplingSettings(top_p=0.75), SamplingSettings(min_p=0.5)]
)
def test_a_token_at_the_edge_may_fall_on_either_side(settings):
    """The row is changed by a rounding, so that another token is the last to be kept."""
    logits = np.log(np.array([0.5, 0.25, 0.25, 1e-9]))
    near = logits + np.array([1e-7, -1e-7, 1e-7, 0.0])
    p = processed(near, [], settings)
    assert np.abs(p - processed(logits, [], settings)).max() > 0.05
    for token in range(4):
        assert compared(p[token], token, logits, [], settings, 1e-3)["difference"] < 1e-3
        assert compared(p[token] + 0.4, token, logits, [], settings, 1e-3)["difference"] > 0.05


@pytest.mark.parametrize("settings", SETTINGS[3:], ids=str)
def test_where_no_token_is_at_the_edge_nothing_is_allowed_for(settings):
    logits = np.log(np.array([0.4, 0.25, 0.2, 0.1, 0.05]))
    p = processed(logits, [], settings)
    for token in range(5):
        assert compared(p[token] + 1e-5, token, logits, [], settings, 1e-3)["difference"] == pytest.approx(1e-5)


def test_as_many_rounds_as_asked_are_replayed_the_first_and_the_last_among_them():
    setup = toy_setup(length=40)
    trace = record(setup, 2)
    found = recheck(trace, setup.target, 5)[["sequence", "round"]].drop_duplicates()
    every = trace.rounds[["sequence", "round"]]
    assert len(found) == 5 < len(every)
    assert [*found.iloc[0]] == [*every.iloc[0]] and [*found.iloc[-1]] == [*every.iloc[-1]]
    assert "5 of" in check_fresh_rows(trace, setup.target, 5).detail


def test_another_vocabulary_a_shorter_context_and_no_rounds_are_refused():
    setup = toy_setup(length=40)
    trace = record(setup, 1)
    for target, rounds, words in (
        (toy_model(5), 3, "5"), (toy_model(6, context=10), None, "longer contexts"), (setup.target, 0, "at least 1"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            recheck(trace, target, rounds)


@pytest.mark.parametrize("column, value", [("parent", 99), ("token", 4000), ("token", -1)])
def test_a_broken_trace_fails_and_nothing_is_raised(column, value):
    setup = toy_setup()
    trace = record(setup, 1)
    trace.positions.loc[5, column] = value
    assert check_fresh_rows(trace, setup.target, None).status == "fail"


@pytest.mark.parametrize("key", ["sampling", "sequences", "target"])
def test_so_does_a_broken_manifest(key):
    setup = toy_setup()
    trace = record(setup, 1)
    trace.manifest[key] = None
    assert check_fresh_rows(trace, setup.target).status == "fail"


def test_the_registry_sees_no_fault_in_rows_that_are_only_shifted():
    """Which is why this contract is needed."""
    trace = record(FAULTS["rows_shifted"][1](toy_setup()), 2)
    assert {finding.status for _, finding in contracts.run(trace)} == {"pass"} | {
        finding.status for _, finding in contracts.run(record(toy_setup(), 2))
    }
