"""One selection: trace, sequence and token; round and position follow; what is not there is refused."""

import pytest

from specworkbench.errors import InputError
from specworkbench.widgets.selection import Selection
from tests.widgets.traces import first, spoken

TRACE = spoken()


def test_nothing_is_selected_without_a_trace():
    selection = Selection()
    assert (selection.selected, selection.round, selection.position, selection.row) == (-1, -1, -1, None)
    selection.selected = 5
    assert selection.selected == -1


def test_a_sequence_opens_on_its_first_rejected_token():
    selection = Selection(TRACE, 1)
    assert selection.row["outcome"] == "rejected" and selection.row["sequence"] == 1
    assert not (selection.rows["outcome"].iloc[: selection.selected] == "rejected").any()


def test_round_and_position_are_those_of_the_selected_token():
    selection = Selection(TRACE)
    for index in (0, 5, len(selection.rows) - 1):
        selection.selected = index
        row = selection.rows.iloc[index]
        assert (selection.round, selection.position) == (row["round"], row["position"])
    selection.selected = 10**6
    assert selection.selected == len(selection.rows) - 1
    selection.selected = -1
    assert (selection.round, selection.position) == (-1, -1)


def test_a_token_is_selected_by_round_and_position():
    selection = Selection(TRACE)
    _, index, row = first(TRACE, "bonus")
    selection.at(int(row["round"]), int(row["position"]))
    assert selection.selected == index


def test_trace_and_sequence_are_both_set_before_either_is_told():
    selection, told = Selection(TRACE), []
    selection.observe(lambda change: told.append((selection.trace, selection.sequence, len(selection.rows))), "trace")
    other = spoken(seed=1)
    selection.show(other, 2)
    assert told == [(other, 2, len(selection.rows))] and selection.row["sequence"] == 2


def test_what_is_not_there_is_refused_and_what_was_shown_stays():
    selection = Selection(TRACE, 1)
    before = selection.selected
    with pytest.raises(InputError, match="no sequence 99"):
        selection.show(TRACE, 99)
    with pytest.raises(InputError, match="no token at position 50 of round 0"):
        selection.at(0, 50)
    with pytest.raises(InputError, match="no token at position"):
        Selection().at(0, 1)
    assert (selection.sequence, selection.selected) == (1, before)
