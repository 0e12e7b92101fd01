"""A tree in the widgets: the strip shows the path and what was tried, the sentences speak of siblings."""

import pytest

from specworkbench import analysis
from specworkbench.engine import Decoder, DecodeSettings
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.equivalence.toys import toy_model
from specworkbench.trace import Trace
from specworkbench.widgets.explorer import Explorer
from specworkbench.widgets.sentences import decision_of, sentence
from specworkbench.widgets.tables import distribution_table, strip_rows, tokens_of

TARGET, DRAFT = toy_model(6), toy_model(6, seed=1, layers=1)


@pytest.fixture(scope="module", params=[False, True], ids=["certain", "sampled"])
def trace(request) -> Trace:
    proposer = TreeDraftProposer(DRAFT, nodes=8, width=3, branching="sampled" if request.param else "top-k")
    decoder = Decoder(TARGET, proposer, settings=DecodeSettings(3, 60), seed=3, capture="top-k")
    decoder.run("abcab")
    return decoder.trace()


def every(trace: Trace, outcome: str):
    return [row for _, row in trace.positions.iterrows() if row["outcome"] == outcome]


def test_the_strip_shows_the_output_in_order_and_what_was_tried(trace):
    rows = strip_rows(trace, 0)
    emitted = [token for token, outcome in zip(rows["token"], rows["outcome"], strict=True) if outcome != "rejected"]
    assert emitted[: len(trace.sequences[0]["token_ids"])] == trace.sequences[0]["token_ids"]
    assert len(rows) == len(tokens_of(trace)) == (trace.positions["outcome"] != "discarded").sum()
    assert all(group["position"].is_monotonic_increasing for _, group in rows.groupby("round"))


def test_a_rejected_guess_names_what_came_instead(trace):
    said = [sentence(trace, row) for row in every(trace, "rejected")]
    assert any("its sibling" in text and "was accepted in its place" in text for text in said)
    assert any("none of its siblings was accepted either" in text for text in said)
    assert any("min(1, r/q), r what the siblings rejected before it leave of p, =" in text for text in said)


def test_a_discarded_guess_names_why_it_was_not_tried(trace):
    said = [sentence(trace, row) for row in every(trace, "discarded")]
    assert any("was accepted there, so it was discarded" in text for text in said)
    assert any("it continues a token that was not kept" in text for text in said)


def test_a_corrected_token_counts_the_guesses_it_replaces(trace):
    for row in every(trace, "corrected"):
        text = sentence(trace, row)
        beside = trace.round_positions(0, row["round"]).query("outcome == 'rejected' and parent == @row.parent")
        assert f"{len(beside)} rejected guesses" in text if len(beside) > 1 else "the rejected" in text
        assert decision_of(trace, row).u == beside["u"].iloc[-1]


def test_every_token_has_its_own_bars(trace):
    for _, row in trace.positions.iterrows():
        table = distribution_table(trace, row)
        own = table[table["mark"] == row["outcome"]]
        assert (own["p"] - row["p"]).abs().min() < 1e-9
        assert table["p"].sum() == pytest.approx(1)


def test_the_explorer_shows_a_tree(trace):
    html = Explorer(trace).to_html()
    assert "corrected" in html and "Traceback" not in html


def test_acceptance_goes_by_depth_and_counts_rounds(trace):
    rounds = trace.rounds
    table = analysis.acceptance_by_position(trace)
    examined = trace.positions[trace.positions["outcome"].isin(["accepted", "rejected"])]
    for depth, row in enumerate(table.itertuples(), start=1):
        tried = examined[examined["position"] == depth]["round"].nunique()
        kept = int((rounds["accepted"] >= depth).sum())
        assert (row.examined, row.accepted, row.survived) == (tried, kept, kept)
    assert analysis.alpha_counts(trace).value == rounds["accepted"].sum() / len(examined)
    assert analysis.summary(trace)["block_efficiency"] is not None


def test_theory_for_chains_says_nothing_of_trees(trace):
    decoder = Decoder(TARGET, settings=DecodeSettings(3, 60), seed=3)
    decoder.run("abcab")
    row = analysis.compare(decoder.trace(), trace)
    assert row["expected_tokens"] is None and row["speedup_predicted"] is None
    assert row["speedup_measured"] > 0
