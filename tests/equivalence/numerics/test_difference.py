"""Rows that differ by rounding are called that, in every dtype; faults of caches and of rows by their names."""

import numpy as np
import pandas as pd
import pytest

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, make_proposer
from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.numerics import RowDifference, judge_rows, same_shape, watch
from specworkbench.equivalence.tree_toys import KINDS
from specworkbench.errors import InputError
from tests.equivalence.numerics.cases import FAULTS, PENALISED, embedded_pair, embedded_setups, toy_setup


def observed(setups, sequences=1, every=1):
    difference = RowDifference(setups[0].target, setups[0].settings.sampling, every)
    for setup in setups:
        watch(setup, difference, seed=4, sequences=sequences)
    return difference


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_on_the_embedded_pair_is_called_what_it_is(name):
    kind, fault, sampling = FAULTS[name]
    setups = embedded_setups(sampling=sampling)
    assert observed(setups).verdict().kind == "rounding"
    verdict = observed([fault(setup) for setup in setups]).verdict()
    assert verdict.kind == kind and verdict.p_value <= 1e-3 and verdict.ratio > 100
    assert f"fault of the {kind}" in verdict.sentence


@pytest.mark.parametrize("name", FAULTS)
def test_and_so_on_a_small_llama(name):
    kind, fault, sampling = FAULTS[name]
    setup = toy_setup(sampling, vocab=20)
    assert observed([setup], sequences=2).verdict().kind == "rounding"
    assert observed([fault(setup)], sequences=2).verdict().kind == kind


@pytest.mark.parametrize(
    "dtype, fused, most", [("float32", False, 1e-4), ("bfloat16", False, 0.2), ("float64", True, 1e-12)]
)
def test_correct_code_is_rounding_in_every_dtype(dtype, fused, most):
    difference = observed(embedded_setups(2, dtype, fused, length=12))
    verdict = difference.verdict()
    assert verdict.kind == "rounding", verdict.sentence
    assert 0 < difference.frame()["d"].max() < most


@pytest.mark.parametrize("sampling", [SamplingSettings(temperature=0), SamplingSettings(0.7, top_p=0.8, top_k=50)])
def test_correct_code_is_rounding_where_settings_cut(sampling):
    assert observed(embedded_setups(1, sampling=sampling)).verdict().kind == "rounding"


def test_the_tv_of_rounding_is_about_four_tenths_of_the_logit_noise():
    frame = observed(embedded_setups(2)).frame()
    assert 0.2 < frame["d"].mean() / np.sqrt((frame["noise"] ** 2).mean()) < 0.8


def test_the_same_shape_baseline_is_as_far_from_single_tokens_as_speculation_is():
    setups = embedded_setups(2)
    one, other = (observed(some).frame()["d"].mean() for some in (setups, [same_shape(s) for s in setups]))
    assert 1 / 3 < one / other < 3


def test_rejections_and_the_tokens_since_are_counted_along_the_output():
    setup = toy_setup(length=30)
    difference = RowDifference(setup.target)
    observe, expected, since, rejections = difference.on(setup.prompt), [], 0, 0
    for step in decode_rounds(setup.start(setup.streams(1))):
        observe(step)
        corrected = step.decision.outcome == "corrected"
        for slot in range(1, len(step.emitted) + 1):
            expected.append((step.index, slot, since, rejections))
            since += rejections > 0
        if corrected and len(step.emitted) == step.decision.accepted + 1:
            rejections, since = rejections + 1, 1
    frame = difference.frame()
    assert rejections > 3
    assert list(frame[["round", "slot", "since", "rejections"]].itertuples(index=False, name=None)) == expected
    assert frame["index"].tolist() == list(range(30)) and difference.lengths == [30]


def test_the_table_holds_every_token_once():
    difference = observed([toy_setup(length=30)], sequences=2)
    for by in (("slot", "since"), "since", "slot"):
        table = difference.table(by)
        assert table["tokens"].sum() == 60 and (table["d_mean"] <= table["d_max"]).all()


def test_every_third_round_is_measured_and_the_others_are_counted():
    difference, whole = (observed([toy_setup(length=30)], every=every) for every in (3, 1))
    assert set(difference.frame()["round"] % 3) == {0}
    some = whole.frame()[lambda f: f["round"] % 3 == 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(difference.frame(), some)
    assert difference.lengths == [30]


def test_a_tree_is_measured_along_the_path_that_was_kept():
    setup = toy_setup(PENALISED, length=30)
    proposer = KINDS["independent"](setup.proposer.draft)
    setup = setup.but(proposer=proposer, verifier=make_verifier(None, PENALISED, proposer))
    difference = observed([setup], sequences=3)
    assert difference.verdict().kind == "rounding"
    assert difference.frame()["slot"].max() > 1 and difference.frame()["d"].max() < 1e-12


def test_the_real_decoder_takes_it_as_an_observer_and_may_be_stopped_half_way():
    target, draft = embedded_pair()
    decoder = Decoder(
        target, make_proposer("draft_model", target=target, draft=draft), settings=DecodeSettings(max_new_tokens=12)
    )
    difference, prompt = RowDifference(target), "def main():"
    observe = difference.on(target.encode(prompt))
    result = decoder.run(prompt, on_round=lambda step: observe(step) or step.index < 1)
    assert result.stop_reason == "stopped"
    assert len(difference.frame()) == len(result.token_ids) and difference.frame()["d"].max() < 1e-4


def test_too_few_tokens_are_no_verdict():
    verdict = RowDifference(toy_setup().target).verdict()
    assert verdict.kind == "too few" and "0 tokens" in verdict.sentence
    assert observed([toy_setup(length=9)]).verdict().kind == "too few"
    assert observed([toy_setup(length=10)]).verdict().kind == "rounding"


@pytest.mark.parametrize("seed", range(20))
def test_random_rounding_is_hardly_ever_called_a_fault(seed):
    """Heavy tails, as where a nucleus gains or loses a token, fall on rows and floor alike."""
    rng = np.random.default_rng(seed)
    rows = rng.lognormal(-8, 1, size=(200, 2))
    frame = pd.DataFrame({"d": rows[:, 0], "floor": rows[:, 1], "round": np.arange(200) // 3, "slot": 1})
    assert judge_rows(frame.assign(rejections=frame["round"]), "float32").kind == "rounding"
    worse = frame.assign(rejections=frame["round"], d=np.where(frame.index % 8 == 0, 0.1, frame["d"]))
    assert judge_rows(worse, "float32").kind != "rounding"


def test_it_refuses_a_round_in_zero():
    with pytest.raises(InputError, match="every is 0"):
        RowDifference(toy_setup().target, every=0)
