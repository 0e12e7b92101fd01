"""The map's cells add up to what the tables over one axis say, and name the tokens that lie in them."""

import pytest

from specworkbench import analysis
from specworkbench.analysis.acceptance_map import ALL, NO_BUCKET, acceptance_map, examined_cells
from specworkbench.errors import InputError
from specworkbench.trace.schema import EXAMINED
from tests.trace.toy import toy_trace

TRACE = toy_trace(gamma=3, max_new_tokens=40)


def test_over_all_output_indices_the_cells_are_the_positions():
    table = acceptance_map(TRACE, bins=1, by_bucket=False)
    by_position = analysis.acceptance_by_position(TRACE)
    for name in ("position", "examined", "accepted", "acceptance", "low", "high"):
        assert table[name].tolist() == by_position.loc[by_position["examined"] > 0, name].tolist()


def test_over_all_positions_the_cells_are_the_output_indices():
    edges = [0, 7, 20, 40]
    table = acceptance_map(TRACE, bins=edges, by_bucket=False)
    totals = table.groupby("output_index")[["examined", "accepted"]].sum()
    expected = analysis.acceptance_by(TRACE, "output_index", bins=edges)
    assert totals["examined"].tolist() == expected["examined"].tolist()
    assert totals["accepted"].tolist() == expected["accepted"].tolist()


def test_buckets_together_are_all():
    each, together = acceptance_map(TRACE), acceptance_map(TRACE, by_bucket=False)
    assert len(set(each["bucket"])) > 1 and set(together["bucket"]) == {ALL}
    keys = ["position", "output_index"]
    counts = ["examined", "accepted"]
    assert each.groupby(keys)[counts].sum().equals(together.groupby(keys)[counts].sum())


def test_only_cells_with_something_examined_are_there_in_order():
    table = acceptance_map(TRACE, bins=20)
    assert (table["examined"] > 0).all() and (table["accepted"] <= table["examined"]).all()
    buckets = list(dict.fromkeys(entry["bucket"] for entry in TRACE.sequences))
    order = [(buckets.index(row.bucket), row.position, row.output_index) for row in table.itertuples()]
    assert order == sorted(order) and len(set(order)) == len(order)


def test_every_examined_token_lies_in_one_cell():
    cells = examined_cells(TRACE, bins=5)
    examined = TRACE.positions[TRACE.positions["outcome"].isin(EXAMINED)]
    keys = ["sequence", "round", "position"]
    assert sorted(cells[keys].itertuples(index=False, name=None)) == sorted(
        examined[keys].itertuples(index=False, name=None)
    )
    assert cells["accepted"].sum() == (examined["outcome"] == "accepted").sum()


def test_several_traces_add_up():
    other = toy_trace(gamma=3, max_new_tokens=40, seed=1)
    edges = [0, 20, 40]
    parts = [acceptance_map(trace, bins=edges, by_bucket=False) for trace in (TRACE, other)]
    both = acceptance_map([TRACE, other], bins=edges, by_bucket=False)
    assert both["examined"].sum() == sum(part["examined"].sum() for part in parts)
    assert set(examined_cells([TRACE, other])["trace"]) == {0, 1}


def test_where_nothing_was_examined_there_is_no_cell():
    for traces in ([], toy_trace(gamma=3, proposer="none", max_new_tokens=10)):
        table = acceptance_map(traces)
        assert table.empty and list(table.columns)[:3] == ["bucket", "position", "output_index"]


def test_a_sequence_without_bucket_is_in_one_that_says_so():
    trace = toy_trace(gamma=3, max_new_tokens=20)
    for entry in trace.sequences:
        entry["bucket"] = ""
    assert set(acceptance_map(trace)["bucket"]) == {NO_BUCKET}


def test_bins_that_make_none_are_refused():
    with pytest.raises(InputError, match="bins is 0"):
        acceptance_map(TRACE, bins=0)
