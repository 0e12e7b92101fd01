"""What is shown of a trace is what the trace holds: order, marks, and bars that sum to 1."""

from itertools import pairwise

import numpy as np
import pytest

from specworkbench.errors import InputError
from specworkbench.trace.schema import PROPOSED
from specworkbench.widgets.tables import distribution_table, strip_rows, tokens_of
from tests.widgets.traces import first, spoken

TRACE = spoken()


def test_tokens_come_by_round_as_proposed_and_then_as_drawn():
    tokens = tokens_of(TRACE, 1)
    assert len(tokens) == (TRACE.positions["sequence"] == 1).sum()
    for before, after in pairwise(tokens):
        assert before["round"] <= after["round"]
        if before["round"] == after["round"]:
            assert before["outcome"] in PROPOSED
    emitted = [row["token"] for _, row in strip_rows(TRACE, 1).iterrows() if row["emitted"]]
    assert sorted(emitted) == sorted(TRACE.sequences[1]["token_ids"])


def test_tokens_are_plain_data_with_a_label():
    token = next(t for t in tokens_of(TRACE) if "script" in t["text"])
    assert token["text"] == "<script>alert(1)</script>"
    assert token["label"].startswith(f"Round {token['round']}, position {token['position']}: ")
    assert {type(value) for value in token.values()} == {str, int, bool}


def test_an_unknown_sequence_is_refused_with_a_sentence():
    with pytest.raises(InputError, match="there is no sequence 9"):
        tokens_of(TRACE, 9)


@pytest.mark.parametrize("capture", ["top-k", "full"])
@pytest.mark.parametrize("top", [1, 12])
def test_bars_sum_to_one_and_to_the_scalars_of_whole_rows(capture, top):
    trace = spoken(capture=capture)
    for outcome in ("accepted", "rejected", "discarded", "corrected"):
        _, _, row = first(trace, outcome)
        table = distribution_table(trace, row, top)
        sums = table[["p", "q", "overlap", "residual"]].sum()
        assert np.allclose(sums, [1, 1, row["overlap"], row["residual_mass"]], atol=1e-6)
        assert table["label"].iloc[-1] == "all others" and table["p"].iloc[:-1].is_monotonic_decreasing


def test_the_tokens_of_the_position_are_marked_however_improbable():
    _, _, row = first(TRACE, "rejected")
    marks = distribution_table(TRACE, row, top=1)["mark"]
    assert set(marks) - {""} == {"rejected", "corrected"}


def test_where_nothing_was_proposed_there_is_no_q():
    table = distribution_table(TRACE, first(TRACE, "bonus")[2])
    assert table["p"].sum() == pytest.approx(1) and table[["q", "overlap", "residual"]].isna().all(axis=None)


def test_without_distributions_there_is_no_table():
    trace = spoken(capture="none")
    assert distribution_table(trace, first(trace, "rejected")[2]) is None
