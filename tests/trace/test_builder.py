"""Columns of rounds, many at a time or one, become tables of the schema, whatever way null was written."""

import numpy as np
import pandas as pd
import pytest

from specworkbench.trace import TraceBuilder, schema
from tests.trace.toy import toy_trace

MANIFEST = {"capture": "none"}


def rounds(*numbers: int, **columns) -> dict:
    frame = {column.name: np.zeros(len(numbers)) for column in schema.ROUNDS}
    keys = {"sequence": [3] * len(numbers), "round": list(numbers), "shortened": [""] * len(numbers)}
    return frame | keys | columns


def tokens(*numbers: int, **columns) -> dict:
    """A token for each number, which is its round's."""
    frame = {column.name: np.zeros(len(numbers)) for column in schema.POSITIONS}
    keys = {"sequence": [3] * len(numbers), "round": np.array(numbers), "emitted": np.ones(len(numbers), dtype=bool)}
    return frame | keys | {"outcome": ["accepted"] * (len(numbers) - 1) + ["bonus"]} | columns


def test_tables_conform_to_the_schema():
    builder = TraceBuilder()
    builder.add_rounds(rounds(0), tokens(0, 0))
    builder.add_rounds(rounds(1, 2), tokens(1, 1, 1, 2))
    assert len(builder) == 3
    trace = builder.build(MANIFEST)
    for table in ("rounds", "positions"):
        expected = schema.empty(table).dtypes
        pd.testing.assert_series_equal(getattr(trace, table).dtypes, expected)
    assert trace.rounds["round"].tolist() == [0, 1, 2]
    assert trace.positions["round"].tolist() == [0, 0, 1, 1, 1, 2]
    assert set(trace.positions["sequence"]) == {3}
    assert trace.distributions is None


def test_one_block_of_many_rounds_is_the_same_as_many_of_one():
    whole, parts = TraceBuilder(), TraceBuilder()
    p = np.linspace(0, 1, 6)
    whole.add_rounds(rounds(0, 1, 2), tokens(0, 0, 1, 1, 2, 2, p=p, outcome=["accepted", "bonus"] * 3))
    for i in range(3):
        parts.add_rounds(rounds(i), tokens(i, i, p=p[2 * i : 2 * i + 2]))
    for table in ("rounds", "positions"):
        pd.testing.assert_frame_equal(*(getattr(builder.build(MANIFEST), table) for builder in (whole, parts)))


@pytest.mark.parametrize(
    "values", [[1.0, np.nan], [1, None], np.array([1.0, np.nan]), np.array([1, None], dtype=object)]
)
def test_null_may_be_nan_or_none_in_any_nullable_column(values):
    builder = TraceBuilder()
    builder.add_rounds(rounds(0), tokens(0, 0, output_index=values, rank_q=values, in_overweight=values, u=values))
    row = builder.build(MANIFEST).positions
    assert row["output_index"].tolist() == row["rank_q"].tolist() == [1, pd.NA]
    assert row["in_overweight"].tolist() == [True, pd.NA]
    assert row["u"].iloc[0] == 1 and np.isnan(row["u"].iloc[1])


def test_arrays_and_lists_may_alternate():
    builder = TraceBuilder()
    builder.add_rounds(rounds(0), tokens(0, 0, p=np.array([0.25, 0.5]), outcome=np.array(["accepted", "bonus"])))
    builder.add_rounds(rounds(1), tokens(1, 1, p=[0.125, None]))
    trace = builder.build(MANIFEST)
    assert trace.positions["p"].iloc[:3].tolist() == [0.25, 0.5, 0.125]
    assert trace.positions["outcome"].tolist() == ["accepted", "bonus"] * 2


def test_no_round_gives_empty_tables():
    trace = TraceBuilder().build(MANIFEST)
    assert len(trace.rounds) == len(trace.positions) == 0
    pd.testing.assert_series_equal(trace.positions.dtypes, schema.empty("positions").dtypes)


def test_distributions_keep_their_lists():
    keys = {"sequence": [3, 3], "round": [7, 7], "position": [1, 2], "node": [0, -1]}
    builder = TraceBuilder()
    lists = {"tokens": [[2, 0], [1, 0]], "p": [[0.5, 0.25], [0.5, 0.5]], "q": [np.array([0.5, 0.5]), None]}
    builder.add_rounds(rounds(7), tokens(7, 7), keys | lists)
    table = builder.build({"capture": "top-k"}).distributions
    pd.testing.assert_series_equal(table.dtypes, schema.empty("distributions").dtypes)
    assert table[["sequence", "round", "position", "node"]].to_numpy().tolist() == [[3, 7, 1, 0], [3, 7, 2, -1]]
    assert table["tokens"][0].dtype == np.int32 and table["p"][0].dtype == np.float64
    assert table["q"][1] is None and table["row"].isna().all()
    assert len(TraceBuilder().build({"capture": "top-k"}).distributions) == 0


def test_full_rows_are_float32():
    rows = {"target": np.full((2, 4), 0.25), "draft": np.full((2, 4), 0.25)}
    trace = TraceBuilder().build({"capture": "full"}, rows)
    assert {value.dtype for value in trace.rows.values()} == {np.dtype(np.float32)}


def test_columns_of_unequal_length_name_the_column_and_its_table():
    builder = TraceBuilder()
    builder.add_rounds(rounds(4), tokens(4, 4, q=np.zeros(1)))
    with pytest.raises(ValueError, match=r"column 'q' of 'positions' has 1 values for 2 rows"):
        builder.build(MANIFEST)


@pytest.mark.parametrize("where, name", [("rounds", "ms_total"), ("positions", "entropy_p"), ("distributions", "node")])
def test_a_missing_column_is_named(where, name):
    keys = {"sequence": [3], "round": [0], "position": [1], "node": [-1]}
    tables = {"rounds": rounds(0), "positions": tokens(0, 0), "distributions": keys}
    tables[where].pop(name)
    builder = TraceBuilder()
    builder.add_rounds(**tables)
    with pytest.raises(KeyError, match=name):
        builder.build({"capture": "full"})


def test_a_round_is_found_with_all_its_tokens_in_order_and_anew_in_other_positions():
    trace = toy_trace()
    for (sequence, number), expected in trace.positions.groupby(["sequence", "round"]):
        assert trace.round_positions(sequence, number).equals(expected)
    assert trace.round_positions(0, 10**6).empty and list(trace.round_positions(99, 0)) == list(trace.positions)
    trace.positions = trace.positions[trace.positions["round"] > 0].reset_index(drop=True)
    assert trace.round_positions(0, 0).empty and len(trace.round_positions(0, 1))
