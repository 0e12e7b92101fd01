"""The trace says what happened: every scalar from the full rows, and enough to replay the run."""

import numpy as np
import pytest
import torch

from specworkbench.engine import SamplingSettings, decode, make_proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.trace import contracts, load_trace, save_trace
from tests.engine.toys import toy_model

TARGET, DRAFT = toy_model(7, layers=3), toy_model(7, seed=1, layers=1)
SETTINGS = {
    "sampled": SamplingSettings(),
    "filtered": SamplingSettings(temperature=0.8, top_k=4, top_p=0.9),
    "greedy": SamplingSettings(temperature=0),
}


def traced(capture: str, sampling: str = "sampled", proposer: str = "draft_model", **options):
    built = make_proposer("draft_model", draft=DRAFT) if proposer == "draft_model" else make_proposer(proposer)
    options = dict(gamma=3, max_new_tokens=40, seed=2) | options
    return decode(
        "abcabc", target=TARGET, proposer=built, sampling=SETTINGS[sampling], capture=capture, **options
    ).trace


@pytest.mark.parametrize("proposer", ["draft_model", "ngram", "none"])
@pytest.mark.parametrize("sampling", SETTINGS)
@pytest.mark.parametrize("capture", ["none", "top-k", "full"])
def test_a_recorded_trace_keeps_every_contract_through_saving(tmp_path, capture, sampling, proposer):
    save_trace(traced(capture, sampling, proposer), tmp_path / "a.trace")
    trace = load_trace(tmp_path / "a.trace")
    assert {contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"} == set()


def test_the_scalars_are_those_of_the_full_rows():
    steps = []
    decode(
        "abcabc", target=TARGET, proposer=make_proposer("draft_model", draft=DRAFT), gamma=3, max_new_tokens=40, seed=2,
        capture=None, on_round=steps.append,
    )  # fmt: skip
    positions = traced("none").positions
    for step in steps:
        p, q = step.target_probs.numpy(), step.proposal.probs.numpy() if step.proposal.size else np.empty((0, 7))
        for row in positions[positions["round"] == step.index].itertuples():
            j = row.position - 1
            assert row.p == p[j, row.token] and row.rank_p == 1 + (p[j] > p[j, row.token]).sum()
            assert row.entropy_p == pytest.approx(-(p[j] * np.log(p[j])).sum())
            if j == len(q):
                assert np.isnan([row.q, row.overlap, row.tv, row.residual_mass, row.entropy_q]).all()
                continue
            assert row.q == q[j, row.token] and row.rank_q == 1 + (q[j] > q[j, row.token]).sum()
            assert row.overlap == pytest.approx(np.minimum(p[j], q[j]).sum())
            assert row.residual_mass == pytest.approx(np.maximum(p[j] - q[j], 0).sum())
            assert row.tv == pytest.approx(np.abs(p[j] - q[j]).sum() / 2)
            heavy = q[j] > p[j]
            assert row.overweight_p == pytest.approx(p[j][heavy].sum()) and row.in_overweight == heavy[row.token]
            assert row.overweight_q == pytest.approx(q[j][heavy].sum())


def test_recording_changes_nothing_that_is_decoded():
    ids = [traced(capture).sequences[0]["token_ids"] for capture in ("none", "top-k", "full")]
    bare = decode(
        "abcabc", target=TARGET, proposer=make_proposer("draft_model", draft=DRAFT), gamma=3, max_new_tokens=40, seed=2,
        capture=None,
    )  # fmt: skip
    assert ids == [bare.token_ids] * 3 and bare.trace is None


def test_a_trace_replays_bit_for_bit_from_its_own_seed():
    first = traced("none")
    again = traced("none", seed=first.manifest["seed"])
    assert first.positions.equals(again.positions)
    assert not first.positions.equals(traced("none", seed=3).positions)


def test_captured_tokens_are_the_top_of_both_rows_and_the_drawn_ones():
    few, full = traced("top-k", top_k_captured=2), traced("full")
    for key in few.distributions[["sequence", "round", "position"]].itertuples(index=False, name=None):
        some, all_of_it = few.distribution(*key), full.distribution(*key)
        assert not some.complete and all_of_it.complete and len(all_of_it.tokens) == 7
        whole = dict(zip(all_of_it.tokens, all_of_it.p, strict=True))
        assert np.allclose([whole[token] for token in some.tokens], some.p, atol=1e-6)
        assert set(all_of_it.tokens[:2]) <= set(some.tokens)
        assert (some.q is None) == (all_of_it.q is None)
        here = few.round_positions(key[0], key[1]).query("position == @key[2]")
        assert set(here["token"]) <= set(some.tokens)
        assert some.p.sum() + some.p_other == pytest.approx(1)


def test_the_manifest_names_every_token_that_occurs():
    for capture in ("none", "top-k", "full"):
        trace = traced(capture)
        known = set(map(int, trace.manifest["vocabulary"]))
        assert set(trace.positions["token"]) | set(trace.sequences[0]["prompt_tokens"]) <= known
        assert trace.token_text(0) == "a"


def test_certain_guesses_have_no_uniform_of_their_own():
    proposed = traced("none", proposer="ngram").positions.query("node >= 0")
    assert len(proposed) > 0
    assert proposed["u_draw"].isna().all() and (proposed["q"] == 1).all() and proposed["u"].notna().all()


def test_float32_rows_are_measured_in_float64():
    double = toy_model(7)
    small = LanguageModel(double.model.float(), double.tokenizer, "toy in float32")
    trace = decode("abc", target=small, max_new_tokens=5).trace
    assert (
        trace.positions["p"].dtype == np.float64
        and small.forward(torch.tensor([1]), small.new_cache()).logits.dtype == torch.float32
    )
