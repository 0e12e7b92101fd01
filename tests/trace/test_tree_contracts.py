"""Contracts on traces of trees: real ones pass, and every fault is rejected by the contract it belongs to."""

import numpy as np
import pytest

from specworkbench.engine import Decoder, DecodeSettings
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.equivalence.toys import toy_model
from specworkbench.trace import Trace, contracts
from tests.trace.faults import mutable

TARGET, DRAFT = toy_model(6), toy_model(6, seed=1, layers=1)


def recorded(sampled: bool) -> Trace:
    proposer = TreeDraftProposer(DRAFT, nodes=8, width=2, branching="sampled" if sampled else "top-k")
    decoder = Decoder(TARGET, proposer, settings=DecodeSettings(3, 40), seed=3, capture="top-k", top_k_captured=2)
    for prompt in ("abcab", "c"):
        decoder.run(prompt)
    return decoder.trace()


@pytest.fixture(scope="module")
def good() -> dict[str, Trace]:
    return {"certain": recorded(False), "sampled": recorded(True)}


def failed(trace: Trace) -> set[str]:
    return {contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"}


def where(trace: Trace, query: str) -> int:
    """A row of positions that is not in a sequence's last round."""
    last = trace.rounds.groupby("sequence")["round"].transform("max")
    keys = trace.rounds[trace.rounds["round"] < last][["sequence", "round"]]
    frame = trace.positions.reset_index().merge(keys, on=["sequence", "round"])
    frame["children"] = frame.groupby(["sequence", "round", "parent"])["node"].transform("count")
    frame["rank"] = frame[frame["node"] >= 0].groupby(["sequence", "round", "parent"]).cumcount()
    return int(frame.query(query)["index"].iloc[0])


def changed(query: str, **columns):
    """A fault: these columns of one position changed."""

    def fault(trace: Trace) -> None:
        row = where(trace, query)
        for name, change in columns.items():
            trace.positions.loc[row, name] = change(trace.positions.loc[row])

    return fault


def _second_path(trace: Trace) -> None:
    """A sibling after the accepted one is accepted too, and counted."""
    row = where(trace, "outcome == 'discarded' and depth == 1")
    trace.positions.loc[row, ["outcome", "u"]] = ["accepted", 0.0]
    _count(trace, row, "accepted", "examined", "verdict_length")


def _examined_beside(trace: Trace) -> None:
    row = where(trace, "outcome == 'discarded' and depth == 1")
    trace.positions.loc[row, ["outcome", "u"]] = ["rejected", 0.9999999]
    _count(trace, row, "examined")


def _skipped(trace: Trace) -> None:
    """A refused child before the accepted one is said not to have been tried."""
    row = where(trace, "outcome == 'rejected' and depth == 1")
    trace.positions.loc[row, "outcome"] = "discarded"
    _count(trace, row, "examined", by=-1)


def _count(trace: Trace, row: int, *names: str, by: int = 1) -> None:
    place = trace.positions.loc[row]
    same = (trace.rounds["sequence"] == place["sequence"]) & (trace.rounds["round"] == place["round"])
    trace.rounds.loc[same, list(names)] += by


def _wrong_record(trace: Trace) -> None:
    nodes = trace.distributions["node"]
    trace.distributions["node"] = nodes.where(nodes > 1, nodes.replace({0: 1, 1: 0}))


FAULTS = {
    "a parent after its child": ("positions", changed("node == 0", parent=lambda r: 3)),
    "another parent": ("positions", changed("depth == 2", parent=lambda r: -1)),
    "a depth of another level": (
        "positions",
        changed("depth == 2 and node > 0", depth=lambda r: 3, position=lambda r: 3),
    ),
    "position unlike depth": ("positions", changed("depth == 2 and node > 0", position=lambda r: 3)),
    "the drawn token follows another node": (
        "positions",
        changed("outcome == 'corrected' and depth == 2", parent=lambda r: -1),
    ),
    "two children accepted": ("prefix", _second_path),
    "a sibling examined after an accepted one": ("prefix", _examined_beside),
    "a child passed over": ("prefix", _skipped),
    "a child of a refused node examined": (
        "prefix",
        changed("outcome == 'discarded' and depth == 2", outcome=lambda r: "rejected"),
    ),
    "a bonus after refused children": ("prefix", changed("outcome == 'corrected'", outcome=lambda r: "bonus")),
    "deeper than asked": ("order", lambda trace: trace.rounds.__setitem__("asked", trace.rounds["asked"] - 2)),
    "a rule of chains": ("positions", lambda trace: trace.manifest.update(rule={"name": "token", "lossless": True})),
    "the first child judged otherwise": (
        "accept_prob",
        changed("outcome == 'rejected' and rank == 0", accept_prob=lambda r: r["accept_prob"] / 2),
    ),
    "u above and accepted": ("decision", changed("outcome == 'accepted'", u=lambda r: r["accept_prob"])),
    "a uniform used for two nodes": (
        "uniforms",
        lambda trace: trace.positions.__setitem__("u", trace.positions["u"].where(trace.positions["node"] != 1, 0.25)),
    ),
    "a refused token emitted": (
        "output",
        changed("outcome == 'rejected'", emitted=lambda r: True, output_index=lambda r: 0),
    ),
    "no q of a refused node": ("nulls", changed("outcome == 'rejected'", q=lambda r: np.nan)),
    "corrected where the first refused row has more": (
        "probabilities",
        changed("outcome == 'corrected'", p=lambda r: r["q"] / 2, in_overweight=lambda r: True),
    ),
    "rows of a sibling": ("distributions", _wrong_record),
}


def _second_refused(trace: Trace) -> None:
    """The corrected token is the second of two refused guesses."""
    row = where(trace, "outcome == 'rejected' and rank == 1")
    place = trace.positions.loc[row]
    same = (trace.positions[["sequence", "round"]] == place[["sequence", "round"]]).all(axis=1)
    trace.positions.loc[same & (trace.positions["node"] < 0), "token"] = place["token"]


CERTAIN = {
    "corrected to a token that was refused": ("probabilities", _second_refused),
    "the residual forgotten": (
        "accept_prob",
        changed("rank == 1 and outcome != 'accepted' and 0.01 < p < 0.5", accept_prob=lambda r: r["p"]),
    ),
}


@pytest.mark.parametrize("kind", ["certain", "sampled"])
def test_an_honest_trace_passes(good, kind):
    assert failed(good[kind]) == set()
    assert {"accepted", "rejected", "discarded", "corrected", "bonus"} <= set(good[kind].positions["outcome"])


NEEDS_Q = ("sampled", "corrected where the first refused row has more")
"""A fault that certain guesses cannot have: q is 0 there."""


@pytest.mark.parametrize(
    "kind, name", [(kind, name) for name in FAULTS for kind in ("certain", "sampled") if name != NEEDS_Q[1]] + [NEEDS_Q]
)
def test_a_fault_is_rejected_by_its_contract(good, kind, name):
    contract, fault = FAULTS[name]
    trace = mutable(good[kind])
    fault(trace)
    assert contract in failed(trace)


@pytest.mark.parametrize("name", CERTAIN)
def test_a_fault_of_certain_guesses_is_rejected(good, name):
    contract, fault = CERTAIN[name]
    trace = mutable(good["certain"])
    fault(trace)
    assert contract in failed(trace)


def test_a_trace_without_the_column_node_is_read_as_a_chain_of_them(tmp_path):
    """As version 1 of the schema wrote it."""
    from specworkbench.engine.proposers import DraftModelProposer
    from specworkbench.trace import schema

    decoder = Decoder(TARGET, DraftModelProposer(DRAFT), settings=DecodeSettings(3, 20), capture="top-k")
    decoder.run("abc")
    trace = decoder.trace()
    old = schema.with_nodes(trace.distributions.drop(columns="node"), trace.rounds)
    assert schema.conform("distributions", old).equals(trace.distributions)
