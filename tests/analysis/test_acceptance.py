"""Acceptance figures are what a loop over the rounds counts, and what the rows of p and q make them in expectation."""

import numpy as np
import pytest

from specworkbench import analysis, theory
from specworkbench.errors import InputError
from specworkbench.trace import Trace
from tests.trace.toy import toy_trace

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
BETA = 0.7  # sum_x min(P, Q)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return toy_trace(misses=0.2, max_new_tokens=40)


@pytest.fixture(scope="module")
def iid() -> Trace:
    """Rows that do not depend on the context, so that the i.i.d. formulas hold exactly."""
    return toy_trace(P, Q, gamma=4, per_bucket=10, max_new_tokens=120, seed=5)


@pytest.fixture(scope="module")
def plain() -> Trace:
    return toy_trace(proposer="none")


def inside(estimate: analysis.Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def test_figures_are_those_of_a_count_by_hand(trace):
    rounds = trace.rounds
    assert analysis.alpha_counts(trace).value == rounds["accepted"].sum() / rounds["examined"].sum()
    assert analysis.accepted_per_proposed(trace).value == rounds["accepted"].sum() / rounds["proposed"].sum()
    assert analysis.emitted_per_forward(trace).value == rounds["emitted"].sum() / len(rounds)
    examined = trace.positions[trace.positions["outcome"].isin(["accepted", "rejected"])]
    assert analysis.alpha_overlap(trace).value == pytest.approx(examined["overlap"].mean(), rel=1e-12)
    assert analysis.alpha_overlap(trace).n == analysis.alpha_counts(trace).n == len(examined)


def test_both_alphas_and_the_block_efficiency_agree_with_the_law(iid):
    assert inside(analysis.alpha_counts(iid), BETA)
    assert analysis.alpha_overlap(iid).value == pytest.approx(BETA, rel=1e-12)
    assert inside(analysis.block_efficiency(iid), theory.expected_tokens(BETA, 4))


def test_overlap_is_the_alpha_of_less_variance(trace):
    counts, overlap = analysis.alpha_counts(trace), analysis.alpha_overlap(trace)
    assert overlap.high - overlap.low < counts.high - counts.low


def test_block_efficiency_leaves_out_shortened_rounds_and_keeps_rounds_without_a_guess(trace):
    whole = trace.rounds[trace.rounds["shortened"] == ""]
    assert (whole["proposed"] == 0).any() and len(whole) < len(trace.rounds)
    estimate = analysis.block_efficiency(trace)
    assert estimate.value == pytest.approx(whole["verdict_length"].mean())
    assert estimate.n == len(whole)


def test_block_efficiency_does_not_see_what_eos_cut_off():
    trace = toy_trace(eos_ids=(2,), per_bucket=20)
    cut = trace.rounds[(trace.rounds["emitted"] < trace.rounds["verdict_length"])]
    assert len(cut)
    whole = trace.rounds[trace.rounds["shortened"] == ""]
    assert analysis.block_efficiency(trace).value == pytest.approx(whole["verdict_length"].mean())
    assert analysis.emitted_per_forward(trace).value < whole["verdict_length"].mean()


def test_one_plus_the_survivals_is_the_block_efficiency_when_all_rounds_propose(iid):
    whole = analysis.acceptance_by_position(
        Trace(iid.manifest, iid.rounds[iid.rounds["shortened"] == ""], iid.positions)
    )
    expected = theory.expected_tokens_survival(whole["survival"])
    assert analysis.block_efficiency(iid).value == pytest.approx(expected, rel=1e-12)


def test_by_position_conditional_multiplies_to_survival(iid):
    whole = iid.rounds[iid.rounds["shortened"] == ""]
    table = analysis.acceptance_by_position(Trace(iid.manifest, whole, iid.positions))
    np.testing.assert_allclose(table["acceptance"].cumprod(), table["survival"], rtol=1e-12)
    assert ((table["low"] <= BETA) & (table["high"] >= BETA)).all()
    assert (table["examined"] == whole["examined"].ge(1).sum()).iloc[0]
    np.testing.assert_allclose(table["overlap"], BETA)


def test_survival_is_over_rounds_that_asked_so_far_and_proposed(trace):
    table = analysis.acceptance_by_position(trace).set_index("position")
    rounds = trace.rounds
    for position in (1, 2, 3):
        able = rounds[(rounds["asked"] >= position) & (rounds["proposed"] > 0)]
        assert table.loc[position, "rounds"] == len(able)
        assert table.loc[position, "survival"] == (able["accepted"] >= position).mean()
    assert table.loc[1, "rounds"] > table.loc[3, "rounds"]
    assert analysis.survival_by_position(trace) == table["survival"].tolist()


def test_guesses_a_draft_could_not_make_are_not_guesses_rejected(trace):
    rounds = trace.rounds.copy()
    row = rounds.index[(rounds["proposed"] == 3) & (rounds["accepted"] == 1)][0]
    rounds.loc[row, ["proposed", "examined", "shortened"]] = [1, 1, "draft_context"]
    before, after = (
        analysis.acceptance_by_position(Trace(trace.manifest, table, trace.positions))
        for table in (trace.rounds, rounds)
    )
    assert (before["rounds"] - after["rounds"]).tolist() == [0, 1, 1]


def test_nothing_examined_is_none_and_never_nan(plain):
    assert analysis.alpha_counts(plain).value is None
    assert analysis.alpha_overlap(plain).value is None
    assert analysis.accepted_per_proposed(plain).value is None
    assert analysis.block_efficiency(plain).value == analysis.emitted_per_forward(plain).value == 1
    assert len(analysis.acceptance_by_position(plain)) == 0
    assert analysis.survival_by_position(plain) == []
    assert len(analysis.acceptance_by(plain, "bucket")) == 0


def test_positions_that_no_round_reached_are_none():
    trace = toy_trace(gamma=6, max_new_tokens=3)
    assert analysis.survival_by_position(trace)[2:] == [None] * 4
    assert analysis.acceptance_by_position(trace)["acceptance"].isna().tolist()[2:] == [True] * 4


def test_by_bucket_splits_what_the_whole_counts(trace):
    table = analysis.acceptance_by(trace, "bucket").set_index("bucket")
    assert list(table.index) == ["code", "prose"]
    assert table["examined"].sum() == trace.rounds["examined"].sum()
    assert table["accepted"].sum() == trace.rounds["accepted"].sum()
    for bucket, part in analysis.by_bucket(trace).items():
        assert table.loc[bucket, "acceptance"] == analysis.alpha_counts(part).value
        assert table.loc[bucket, "overlap"] == pytest.approx(analysis.alpha_overlap(part).value)


@pytest.mark.parametrize("bins", [1, 4, 1000, [0, 5, 40]])
def test_by_output_index_every_examined_token_falls_in_one_bin(trace, bins):
    table = analysis.acceptance_by(trace, "output_index", bins=bins)
    assert table["examined"].sum() == trace.rounds["examined"].sum()
    assert (table["output_index"].iloc[1:].to_numpy() == table["output_index_end"].iloc[:-1].to_numpy()).all()
    assert (
        ((table["low"] <= table["acceptance"]) & (table["acceptance"] <= table["high"]))
        .loc[table["examined"] > 0]
        .all()
    )


def test_the_output_index_of_an_accepted_token_is_its_own(trace):
    table = analysis.acceptance_by(trace, "output_index", bins=list(range(42)))
    accepted = trace.positions[trace.positions["outcome"] == "accepted"]
    counted = np.bincount(accepted["output_index"].astype(int), minlength=41)
    assert table["accepted"].tolist() == counted.tolist()


@pytest.mark.parametrize(
    ("by", "bins", "sentence"),
    [("token", 8, "by 'bucket' or 'output_index', not by 'token'"), ("output_index", 0, "bins is 0"),
     ("output_index", [3, 3], "edges must be at least two, and rise")],
)  # fmt: skip
def test_an_unknown_grouping_is_told_in_a_sentence(trace, by, bins, sentence):
    with pytest.raises(InputError, match=sentence):
        analysis.acceptance_by(trace, by, bins=bins)


def test_repeated_prompts_are_one_cluster():
    trace = toy_trace(per_bucket=3)
    for sequence in trace.sequences:
        sequence["id"] = "the same"
    estimate = analysis.alpha_counts(trace)
    assert estimate.value is not None and estimate.low is estimate.high is None
