"""The map of acceptance: from any source of traces, a click selects, and the selection is marked."""

import pytest

from specworkbench import analysis
from specworkbench.analysis.acceptance import output_index
from specworkbench.errors import InputError
from specworkbench.trace import save_trace
from specworkbench.widgets import AcceptanceMap, Explorer, Selection, acceptance_map_figure
from specworkbench.widgets.acceptance_map import EMPTY, NOTHING_EXAMINED
from tests.widgets.traces import spoken

TRACE = spoken()


def marks(acceptance):
    """{bucket: (output index, position)} of the panels with a mark."""
    found = {}
    for number, bucket in enumerate(dict.fromkeys(acceptance.table["bucket"])):
        mark = acceptance.figure.data[3 * number + 2]
        found |= {bucket: (mark.x[0], mark.y[0])} if mark.x else {}
    return found


def lies_in(selection, bucket, position, start, end):
    row = selection.row
    place = output_index(selection.trace, selection.rows.iloc[[selection.selected]])[0]
    own = selection.trace.sequences[selection.sequence]["bucket"]
    assert row["outcome"] in ("accepted", "rejected")
    return own == bucket and selection.position == position and start <= place < end


def test_without_a_trace_it_says_what_to_do_and_shows_no_empty_axes():
    acceptance = AcceptanceMap()
    assert EMPTY in acceptance.message.value and acceptance.figure_box.layout.display == "none"
    assert EMPTY in acceptance.to_html()


def test_plain_decoding_is_told_to_have_nothing_examined():
    assert NOTHING_EXAMINED in AcceptanceMap(spoken(proposer="none")).message.value


def test_every_cell_can_be_picked_and_gives_a_token_that_lies_in_it():
    acceptance = AcceptanceMap(TRACE, bins=4)
    for cell in acceptance.table.itertuples():
        acceptance.pick(cell.bucket, cell.position, cell.output_index)
        assert lies_in(acceptance.selection, cell.bucket, cell.position, cell.output_index, cell.output_index_end)


def test_picking_again_goes_through_all_tokens_of_the_cell_and_begins_anew():
    acceptance = AcceptanceMap(TRACE, bins=4)
    cell = acceptance.table.iloc[0]
    seen = []
    for _ in range(cell["examined"] + 1):
        acceptance.pick(cell["bucket"], cell["position"], cell["output_index"])
        seen.append((acceptance.selection.sequence, acceptance.selection.selected))
    assert len(set(seen)) == cell["examined"] and seen[0] == seen[-1]
    assert f"token 1 of {cell['examined']} in this cell" in acceptance.cell_line.value


def test_a_click_selects_and_every_panel_follows():
    explorer = Explorer(TRACE)
    acceptance = AcceptanceMap(selection=explorer.selection, bins=4)
    cell = acceptance.table[acceptance.table["bucket"] == "prose"].iloc[1]
    middle = (cell["output_index"] + cell["output_index_end"]) / 2
    clicked = {"xs": [middle], "ys": [int(cell["position"])], "point_indexes": [[0, 1]], "trace_indexes": [3]}
    acceptance.figure._js2py_pointsCallback = {"event_type": "plotly_click", "points": clicked}
    assert lies_in(explorer.selection, *cell[["bucket", "position", "output_index", "output_index_end"]])
    assert explorer.strip.selected == explorer.selection.selected
    assert explorer.trace is TRACE and explorer.sequence == explorer.selection.sequence


def test_cells_can_be_chosen_without_a_mouse():
    acceptance = AcceptanceMap(TRACE, bins=4)
    assert len(acceptance.cell_choice.options) == len(acceptance.table) + 1
    label, value = acceptance.cell_choice.options[3]
    acceptance.cell_choice.value = value
    first = acceptance.selection.selected
    assert label.startswith(f"{value[0]}, position {value[1]}") and acceptance.selection.position == value[1]
    acceptance.next_button.click()
    assert acceptance.selection.selected != first and acceptance.cell_choice.value == value


def test_the_selected_token_is_marked_where_it_lies():
    acceptance = AcceptanceMap(TRACE)
    assert marks(acceptance) == {}
    acceptance.selection.show(TRACE, 4, selected=0)
    assert marks(acceptance) == {"prose": (0.5, pytest.approx(0.64))}
    acceptance.bucket = "all"
    assert list(marks(acceptance)) == ["all"]
    acceptance.bucket = "code"
    assert marks(acceptance) == {}
    acceptance.selection.show(spoken(seed=3))
    acceptance.bucket = "each"
    assert marks(acceptance) == {}, "a token of another trace lies nowhere here"


def test_a_page_opened_later_shows_the_mark_where_it_is_by_then():
    acceptance = AcceptanceMap(TRACE)
    acceptance.selection.show(TRACE, 0, selected=0)
    data = acceptance._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert list(acceptance.figure._widget_data[2]["x"]) == [0.5]


def test_it_follows_a_shared_selection_unless_it_has_traces_of_its_own():
    other = spoken(seed=3)
    selection = Selection(TRACE)
    following, own = AcceptanceMap(selection=selection), AcceptanceMap(TRACE, selection=selection)
    selection.show(other)
    assert following.traces == [other] and own.traces[0] is TRACE
    assert following.table.equals(analysis.acceptance_map(other, bins=following.bins))


def test_buckets_side_by_side_together_or_one():
    acceptance = AcceptanceMap(TRACE)
    assert set(acceptance.table["bucket"]) == {"code", "prose"}
    for choice, buckets in (("all", {"all"}), ("prose", {"prose"}), ("each", {"code", "prose"})):
        acceptance.bucket_choice.value = choice
        assert acceptance.bucket == choice and set(acceptance.table["bucket"]) == buckets
    one = AcceptanceMap(spoken(buckets=("code",)))
    assert one.bucket_choice.layout.display == "none"


def test_without_bins_there_are_as_many_as_leave_cells_enough():
    counts = [AcceptanceMap(TRACE, few=few).table["examined"] for few in (1, 15, 10**6)]
    assert [count.median() >= few for count, few in zip(counts, (1, 15, 10**6), strict=True)] == [True, True, False]
    bins = [AcceptanceMap(TRACE, few=few).bins for few in (1, 15, 10**6)]
    assert bins[0] == 8 > bins[1] > bins[2] == 1


def test_columns_follow_the_slider_and_are_within_limits():
    acceptance = AcceptanceMap(TRACE, bins=2)
    assert acceptance.bins_slider.value == 2 and acceptance.table["output_index"].nunique() == 2
    acceptance.bins_slider.value = 5
    assert acceptance.table["output_index"].nunique() == 5
    with pytest.raises(InputError, match="bins is 0; it must be from 1 to 32"):
        acceptance.bins = 0


def test_a_folder_a_file_and_a_list_are_the_same_map(tmp_path):
    for index in range(len(TRACE.sequences)):
        save_trace(analysis.select(TRACE, [index]), tmp_path / f"{index}.trace")
    files = sorted(tmp_path.glob("*.trace"))
    expected = analysis.acceptance_map(TRACE)
    for source in (tmp_path, files, [str(file) for file in files]):
        assert AcceptanceMap(source, bins=8).table.equals(expected)
    alone = AcceptanceMap(tmp_path)
    alone.pick("code", 1, 0)
    assert alone.selection.trace in alone.traces and alone.selection.trace.distributions is not None


def test_what_cannot_be_shown_is_a_sentence(tmp_path):
    (tmp_path / "no.trace").write_text("nothing")
    sources = [
        (tmp_path / "missing.trace", "missing.trace"),
        (tmp_path / "no.trace", "no.trace"),
        ([TRACE, spoken(gamma=2)], "Trace 2 is no part of the run of trace 1: gamma differ"),
    ]
    for source, words in sources:
        acceptance = AcceptanceMap(source)
        assert 'role="alert"' in acceptance.message.value and words in acceptance.message.value
        assert not acceptance.traces
    with pytest.raises(InputError, match="nothing was examined at position 9"):
        AcceptanceMap(TRACE).pick("code", 9, 0)


def test_the_plain_figure_takes_traces_and_tables():
    table = analysis.acceptance_map(TRACE, bins=3)
    first, second = acceptance_map_figure(TRACE, bins=3), acceptance_map_figure(table)
    assert first == second and len(acceptance_map_figure(TRACE, by_bucket=False).data) == 3


def test_the_static_twin_has_every_cell_and_no_markup_of_a_bucket():
    trace = spoken(buckets=("<i>",))
    html = AcceptanceMap(trace, bins=3, few=20).to_html()
    table = analysis.acceptance_map(trace, bins=3)
    assert "<i>" not in html and "&lt;i&gt;" in html and "<script" not in html
    assert html.count("<td ") == len(table)
    assert html.count('class="swb-few"') == (table["examined"] < 20).sum() > 0
    assert "grey: fewer than 20" in html
