"""Rounds fed one by one become tables of the schema, whatever way null was written."""

import time

import numpy as np
import pandas as pd
import pytest

from specworkbench.trace import TraceBuilder, schema

MANIFEST = {"capture": "none"}


def a_round(number: int = 0, **columns) -> dict:
    row = {column.name: 0 for column in schema.ROUNDS}
    return row | {"sequence": 3, "round": number, "shortened": ""} | columns


def tokens(length: int = 2, **columns) -> dict:
    frame = {column.name: np.zeros(length) for column in schema.POSITIONS if column.name not in ("sequence", "round")}
    frame |= {"outcome": ["accepted"] * (length - 1) + ["bonus"], "emitted": np.ones(length, dtype=bool)}
    return frame | columns


def test_tables_conform_to_the_schema():
    builder = TraceBuilder()
    builder.add_round(a_round(0), tokens(2))
    builder.add_round(a_round(1), tokens(3))
    assert len(builder) == 2
    trace = builder.build(MANIFEST)
    for table in ("rounds", "positions"):
        expected = schema.empty(table).dtypes
        pd.testing.assert_series_equal(getattr(trace, table).dtypes, expected)
    assert trace.positions["round"].tolist() == [0, 0, 1, 1, 1]
    assert set(trace.positions["sequence"]) == {3}
    assert trace.distributions is None


@pytest.mark.parametrize(
    "values", [[1.0, np.nan], [1, None], np.array([1.0, np.nan]), np.array([1, None], dtype=object)]
)
def test_null_may_be_nan_or_none_in_any_nullable_column(values):
    builder = TraceBuilder()
    builder.add_round(a_round(), tokens(2, output_index=values, rank_q=values, in_overweight=values, u=values))
    row = builder.build(MANIFEST).positions
    assert row["output_index"].tolist() == row["rank_q"].tolist() == [1, pd.NA]
    assert row["in_overweight"].tolist() == [True, pd.NA]
    assert row["u"].iloc[0] == 1 and np.isnan(row["u"].iloc[1])


def test_arrays_and_lists_may_alternate():
    builder = TraceBuilder()
    builder.add_round(a_round(0), tokens(2, p=np.array([0.25, 0.5]), outcome=np.array(["accepted", "bonus"])))
    builder.add_round(a_round(1), tokens(2, p=[0.125, None]))
    trace = builder.build(MANIFEST)
    assert trace.positions["p"].iloc[:3].tolist() == [0.25, 0.5, 0.125]
    assert trace.positions["outcome"].tolist() == ["accepted", "bonus"] * 2


def test_no_round_gives_empty_tables():
    trace = TraceBuilder().build(MANIFEST)
    assert len(trace.rounds) == len(trace.positions) == 0
    pd.testing.assert_series_equal(trace.positions.dtypes, schema.empty("positions").dtypes)


def test_distributions_keep_their_lists_and_take_the_keys_of_their_round():
    builder = TraceBuilder()
    first = {"position": 1, "tokens": [2, 0], "p": [0.5, 0.25], "q": np.array([0.5, 0.5])}
    builder.add_round(a_round(7), tokens(2), [first, {"position": 2, "tokens": [1, 0], "p": [0.5, 0.5], "q": None}])
    table = builder.build({"capture": "top-k"}).distributions
    assert table[["sequence", "round", "position"]].to_numpy().tolist() == [[3, 7, 1], [3, 7, 2]]
    assert table["tokens"][0].dtype == np.int32 and table["p"][0].dtype == np.float64
    assert table["q"][1] is None and table["row"].isna().all()
    assert len(TraceBuilder().build({"capture": "top-k"}).distributions) == 0


def test_full_rows_are_float32():
    rows = {"target": np.full((2, 4), 0.25), "draft": np.full((2, 4), 0.25)}
    trace = TraceBuilder().build({"capture": "full"}, rows)
    assert {value.dtype for value in trace.rows.values()} == {np.dtype(np.float32)}


def test_columns_of_unequal_length_name_the_column_and_the_round():
    builder = TraceBuilder()
    builder.add_round(a_round(4), tokens(2, q=np.zeros(1)))
    with pytest.raises(ValueError, match=r"column 'q' has 1 values for 2 tokens.*'round': 4"):
        builder.build(MANIFEST)


@pytest.mark.parametrize("where", ["round", "positions"])
def test_a_missing_column_is_named(where):
    builder = TraceBuilder()
    row, frame = a_round(), tokens()
    (row if where == "round" else frame).pop("ms_total" if where == "round" else "entropy_p")
    builder.add_round(row, frame)
    with pytest.raises(KeyError, match=r"ms_total|entropy_p"):
        builder.build(MANIFEST)


def test_a_round_costs_far_less_than_a_tenth_of_a_millisecond():
    """CPU time, and ten times less than the limit, so that a busy machine does not fail it."""
    builder, row, frame = TraceBuilder(), a_round(), tokens(5)
    distributions = [{"position": i, "tokens": [1], "p": [1.0]} for i in range(1, 6)]
    start = time.process_time()
    for _ in range(2000):
        builder.add_round(row, frame, distributions)
    assert (time.process_time() - start) / 2000 < 1e-4
