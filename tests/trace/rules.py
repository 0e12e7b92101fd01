"""Real traces of every rule on toy tables, short and with whole rows, and how to change them."""

from __future__ import annotations

from functools import cache

import numpy as np

from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.setup import record
from specworkbench.equivalence.toys import table_setup
from specworkbench.equivalence.tree_toys import tree_setup
from specworkbench.trace import Trace, contracts
from specworkbench.trace.view import View
from tests.trace.faults import mutable

RULES = ("token", "greedy", "tree", "block", "equality", "lenient,leniency=0.5", "ensemble,weight=0.5", "typical")


@cache
def _recorded(rule: str, capture: str, kind: str) -> Trace:
    greedy = rule == "greedy"
    sampling = SamplingSettings(temperature=0.0 if greedy else 1.0)
    options = dict(vocab=5, length=16, gamma=3, sampling=sampling, noise=0.5 if greedy else 1.0)
    setup = tree_setup(3, kind=kind, **options) if kind else table_setup(0 if greedy else 1, **options)
    return record(setup.but(verifier=make_verifier(rule, sampling)), 8, seed=2, capture=capture)


def trace_of(rule: str, capture: str = "full", kind: str = "") -> Trace:
    """A trace under a rule that nobody has changed yet. kind: of trees; empty for chains from a draft."""
    return mutable(_recorded(rule, capture, kind))


def finding(trace: Trace, name: str) -> contracts.Finding:
    """What the contract of that name finds."""
    (contract,) = [contract for contract in contracts.REGISTRY if contract.name == name]
    return contract.check(View(trace))


def rows(trace: Trace, query: str) -> np.ndarray:
    """Rows of `positions` that the query names. later: with an earlier sibling; last: a round's last guess."""
    frame = trace.positions.copy()
    by_round = frame.groupby(["sequence", "round"])["node"]
    frame["last"] = frame["node"] == by_round.transform("max")
    frame["later"] = frame[frame["node"] >= 0].groupby(["sequence", "round", "parent"]).cumcount() > 0
    frame["later"] = frame["later"].fillna(False).astype(bool)
    found = frame.query(query).index.to_numpy()
    assert len(found), f"no position is {query}"
    return found
