"""What the monitor keeps of a round is what the rows say, computed token by token without tensors."""

from functools import partial

import numpy as np
import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.proposers import NgramProposer, NoProposer
from specworkbench.equivalence.evidence import ALTERNATIVES, CELLS, GUIDED_ONLY
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.toys import SporadicDraft, table_setup
from specworkbench.equivalence.tree_toys import KINDS, tree_setup
from tests.equivalence.statistics.rows import alternative_rows

SETUPS = {
    "chain": partial(table_setup, vocab=22),
    "chain, top-k": partial(table_setup, vocab=22, sampling=SamplingSettings(top_k=3)),
    "at times none": partial(table_setup, vocab=6, proposer=SporadicDraft),
    "certain": partial(table_setup, vocab=4, proposer=NgramProposer(1, 2)),
    "plain": partial(table_setup, vocab=5, proposer=NoProposer()),
    "greedy": partial(table_setup, vocab=5, sampling=SamplingSettings(temperature=0.0)),
    "equality": partial(table_setup, vocab=5, rule="equality"),
    "block": partial(table_setup, vocab=5, rule="block"),
    "end": partial(table_setup, vocab=5, eos=(1,)),
    **{f"tree, {kind}": partial(tree_setup, kind=kind, vocab=5) for kind in KINDS},
}


def rounds_of(setup, sequences=6):
    streams = setup.streams(3)
    for index in range(sequences):
        yield from decode_rounds(setup.start(streams, index))


def expected_rows(step):
    """One dict a token that was emitted, from the rows of p and q, in the words of `Evidence`."""
    decision, n = step.decision, step.proposal.size
    p_rows = step.target_probs.numpy()
    q_rows = step.proposal.draft_probs(step.target_probs).numpy()
    parents = list(range(-1, n - 1)) if decision.parents is None else decision.parents
    node = -1
    for place, token in enumerate(step.emitted):
        p = p_rows[node + 1]
        child = parents.index(node) if node in parents else None
        q = None if child is None else q_rows[child]
        before = None if place == 0 else p_rows[(decision.nodes[place - 2] if place > 1 else -1) + 1]
        yield place + 1, token, p, q, before, place < decision.accepted and decision.nodes[place] == child
        node = decision.nodes[place] if place < decision.accepted else None


def rows_of(p, q, before):
    """(alternatives, vocab) the rows r at one token; those that lack what they need are p."""
    rows = alternative_rows(p[None], p[None] if q is None else q[None], None if before is None else before[None])
    return np.array([p if q is None and name in GUIDED_ONLY else row[0]
                     for name, row in zip(ALTERNATIVES, rows, strict=True)])  # fmt: skip


@pytest.mark.parametrize("name", SETUPS)
def test_every_figure_is_that_of_the_rows(name):
    setup = SETUPS[name](2, length=12, gamma=3)
    monitor, expected, whole = Monitor(setup.verifier.name), [], []
    for step in rounds_of(setup):
        monitor(step)
        expected += expected_rows(step)
    found = monitor.take()
    assert len(found) == len(expected) > 20 and len(monitor.take()) == 0
    for i, (slot, token, p, q, before, accepted) in enumerate(expected):
        assert (found.slot[i], found.token[i], found.guided[i]) == (slot, token, q is not None)
        assert found.p[i] == p[token]
        rows = rows_of(p, q, before)
        np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-9)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(found.log_ratios[i], np.log(rows[:, token] / p[token]), atol=1e-9)
        heavy = np.zeros(len(p), dtype=bool) if q is None else q > p
        rank = np.array([1 + (p > value).sum() for value in p])
        band = np.searchsorted([1, 4, 16], rank)
        cell = band + np.where(heavy, 0, len(CELLS) // 2)
        whole.append(p)
        assert found.cell[i] == cell[token]
        np.testing.assert_allclose(found.cell_probs[i], np.bincount(cell, p, minlength=len(CELLS)), atol=1e-12)
        if q is None:
            assert np.isnan([found.overweight_p[i], found.in_overweight[i], found.expected_accept[i]]).all()
            continue
        assert found.overweight_p[i] == pytest.approx(p[heavy].sum(), abs=1e-12)
        assert found.in_overweight[i] == heavy[token]
        if name == "block":
            assert np.isnan(found.expected_accept[i]) and np.isnan(found.accepted[i])
        else:
            accept = (p * q).sum() if name == "equality" else np.minimum(p, q).sum()
            assert found.expected_accept[i] == pytest.approx(accept, abs=1e-12)
            assert found.accepted[i] == accepted
    if not name.startswith(("greedy", "plain")):
        assert found.guided.any()


def test_it_judges_by_other_rows_where_told_to():
    setup = table_setup(2, vocab=5, length=8)
    monitor = Monitor("token", rows=lambda step: step.target_probs.flip(-1))
    for step in rounds_of(setup, 1):
        monitor(step)
        flipped = step.target_probs[0].flip(-1)
        assert monitor.take().p[0] == flipped[step.emitted[0]]
