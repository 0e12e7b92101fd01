"""The trace says what happened: every scalar from the full rows, and enough to replay the run."""

import weakref
from dataclasses import replace
from functools import cache
from itertools import chain, zip_longest

import numpy as np
import pandas as pd
import pytest
import torch

from specworkbench.engine import SamplingSettings, TraceRecorder, decode, make_proposer, recording
from specworkbench.engine.measuring import MEASURED, measure, top_entries
from specworkbench.engine.models import LanguageModel
from specworkbench.equivalence.tree_toys import KINDS
from specworkbench.trace import contracts, load_trace, save_trace
from tests.engine.recording_reference import SUMS, reference_tables
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


@cache
def rounds_of(kind: str, sampling: str = "sampled", sequence: int = 0) -> list:
    """The rounds of one sequence, by the name of a proposer or of a kind of tree."""
    steps = []
    draft = DRAFT if kind == "draft_model" else None
    proposer = KINDS[kind](DRAFT) if kind in KINDS else make_proposer(kind, draft=draft)
    decode(
        "abcabc", target=TARGET, proposer=proposer, sampling=SETTINGS[sampling], gamma=3, max_new_tokens=40,
        seed=sequence, capture=None, on_round=steps.append,
    )  # fmt: skip
    return [replace(step, sequence=sequence) for step in steps]


MIXED = "sampled, certain and trees, in turn"


@cache
def expected_of(kind: str, sampling: str, capture: str) -> tuple:
    """Rounds, and what must be recorded of them."""
    if kind == MIXED:
        each = [rounds_of(one, sampling, i) for i, one in enumerate(("draft_model", "ngram", "independent"))]
        rounds = [step for step in chain(*zip_longest(*each)) if step is not None]
    else:
        rounds = rounds_of(kind, sampling, 0) + rounds_of(kind, sampling, 1)
    return rounds, *reference_tables(rounds, capture, 3)


def assert_as_by_the_plain_formulas(kind: str, sampling: str, capture: str, compiled=None) -> None:
    rounds, tables, rows = expected_of(kind, sampling, capture)
    recorder = TraceRecorder(capture, 3, compiled)
    for step in rounds:
        recorder.record(step)
    trace = recorder.trace({"capture": capture})
    for name, expected in tables.items():
        found = getattr(trace, name)
        if expected is None:
            assert found is None
            continue
        sums = [column for column in expected.columns if column in SUMS]
        lists = [column for column in expected.columns if expected[column].dtype == object]
        pd.testing.assert_frame_equal(
            found.drop(columns=sums + lists), expected.drop(columns=sums + lists), check_exact=True
        )
        for column in sums:
            np.testing.assert_allclose(found[column], expected[column], rtol=0, atol=1e-12, err_msg=column)
        for column in lists:
            for one, other in zip(found[column], expected[column], strict=True):
                assert (one is None) == (other is None)
                assert one is None or (one.dtype == other.dtype and np.array_equal(one, other))
    assert (trace.rows is None) == (rows is None)
    for name in rows or ():
        np.testing.assert_array_equal(trace.rows[name], rows[name])


@pytest.mark.parametrize("waiting", ["each alone", "some"])
@pytest.mark.parametrize("capture", ["none", "top-k", "full"])
@pytest.mark.parametrize("sampling", SETTINGS)
@pytest.mark.parametrize("kind", ["draft_model", "ngram", "none", *KINDS, MIXED])
def test_the_tables_are_those_of_the_plain_formulas(kind, sampling, capture, waiting, monkeypatch):
    monkeypatch.setattr(recording, "WAITING_BYTES", 0 if waiting == "each alone" else 2000)
    monkeypatch.setattr(recording, "PENDING_ROUNDS", 16)
    assert_as_by_the_plain_formulas(kind, sampling, capture)


@pytest.mark.parametrize("column", ["p", "rank_q", "tv", "output_index", "u_draw", "entropy_q", "in_overweight"])
def test_a_wrong_number_in_any_column_would_be_noticed(column, monkeypatch):
    from specworkbench.engine import tables

    right = tables.tables

    def wrong(noted, numbers):
        rounds, positions, *rest = right(noted, numbers)
        values = np.array(positions[column], dtype=float)
        values[np.flatnonzero(~np.isnan(values))[5]] -= 1e-10 if column in SUMS else 1
        return rounds, positions | {column: values}, *rest

    monkeypatch.setattr(recording, "tables", wrong)
    with pytest.raises(AssertionError):
        assert_as_by_the_plain_formulas("draft_model", "sampled", "none")


def test_a_trace_asked_for_in_between_changes_nothing():
    rounds, recorder = rounds_of("draft_model"), TraceRecorder()
    for number, step in enumerate(rounds, start=1):
        recorder.record(step)
        if number % 5 == 0:
            assert len(recorder.trace({"capture": "none"}).rounds) == number
    once = TraceRecorder()
    for step in rounds:
        once.record(step)
    pd.testing.assert_frame_equal(*(one.trace({"capture": "none"}).positions for one in (recorder, once)))


def test_rounds_that_wait_hold_no_more_bytes_than_their_bound(monkeypatch):
    bound = 2000
    monkeypatch.setattr(recording, "WAITING_BYTES", bound)
    recorder, known, most = TraceRecorder(), [], 0
    for step in rounds_of("draft_model"):
        copied = replace(step, target_probs=step.target_probs.clone())
        known.append((weakref.ref(copied.target_probs), step.target_probs.nbytes + step.proposal.tokens.shape[0] * 56))
        recorder.record(copied)
        del copied
        held = sum(size for rows, size in known if rows() is not None)
        assert held <= bound
        most = max(most, held)
    assert most > bound / 2


@pytest.mark.parametrize("capture", ["none", "top-k"])
def test_numbers_are_fetched_from_the_device_many_rounds_at_once(capture, monkeypatch):
    monkeypatch.setattr(recording, "WAITING_BYTES", 0)
    monkeypatch.setattr(recording, "PENDING_ROUNDS", 8)
    rounds, fetched, cpu = rounds_of("draft_model"), [], torch.Tensor.cpu

    def refused(self, *_):
        raise AssertionError("a synchronisation with the device")

    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: fetched.append(self) or cpu(self))
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, refused)
    recorder = TraceRecorder(capture, 3)
    for step in rounds:
        recorder.record(step)
    assert len(fetched) == (len(rounds) - 1) // 8 > 1


def test_what_is_measured_does_not_depend_on_a_branch_on_a_value():
    """Tensors without values have none to branch on."""

    def of(*shape, dtype=torch.int64):
        return torch.empty(shape, dtype=dtype, device="meta")

    for kinds in (1, 2):
        rows = of(kinds, 6, 7, dtype=torch.float64)
        for room in (None, torch.empty_like(rows)):
            assert measure(rows, of(6), of(6), room).shape == (len(MEASURED), 6)
    assert {part.shape for part in top_entries(rows, 3, of(6), of(6))} == {(6, 8)}


@pytest.mark.parametrize("where", ["measure", "_uniforms", "_joined"])
def test_an_interrupt_in_the_recorder_leaves_out_the_round_it_was_given_and_no_other(where, monkeypatch):
    monkeypatch.setattr(recording, "WAITING_BYTES", 2000)
    monkeypatch.setattr(recording, "PENDING_ROUNDS", 8)
    rounds, work = rounds_of("draft_model"), getattr(recording, where)
    recorder, left_out = TraceRecorder(), []

    def interrupted(*arguments):
        if len(left_out) < 2:
            raise KeyboardInterrupt
        return work(*arguments)

    monkeypatch.setattr(recording, where, interrupted)
    for step in rounds:
        try:
            recorder.record(step)
        except KeyboardInterrupt:
            left_out.append(step.index)
    found = recorder.trace({"capture": "none"}).rounds["round"].tolist()
    assert len(left_out) == 2 and found == [step.index for step in rounds if step.index not in left_out]


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
