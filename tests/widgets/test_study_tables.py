"""What the study browser offers, keeps and says of a study, without a widget."""

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study
from specworkbench.experiments.study.store import STUDY as STUDY_FILE
from specworkbench.widgets import study_tables as module
from specworkbench.widgets.study_tables import (
    View,
    chosen_view,
    code_with_traces,
    columns,
    count_sentence,
    first_view,
    offered,
    open_study,
    overlaid,
    remarks_html,
    table_html,
    trace_file,
    within,
)
from tests.widgets.studies import STUDY, ids, write_study


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Ten of twelve cells: the third failed, the fifth has its traces."""
    return open_study(write_study(tmp_path_factory.mktemp("study"), done=10, failed=2, traced=4))


def test_x_is_the_axis_of_most_values_and_numbers_come_before_text(opened):
    assert first_view(opened.finished) == View("gamma", "speedup_measured", "temperature", "proposer")
    assert first_view(opened.finished[opened.finished["gamma"] == 1]).x == "temperature"


def test_every_axis_that_varies_and_every_figure_that_was_measured_is_offered(opened):
    allowed = offered(opened.finished)
    assert allowed["color"] == allowed["facet"] == ["", "proposer", "gamma", "temperature"]
    assert allowed["x"][:3] == ["proposer", "gamma", "temperature"] and "alpha_overlap" in allowed["x"]
    assert "c" in allowed["measure"] and "c" not in offered(opened.finished.assign(c=float("nan")))["measure"]
    assert offered(opened.finished.head(1))["x"][0] == "gamma"


def test_a_choice_that_the_cells_do_not_offer_is_a_sentence_that_names_those_they_do(opened):
    view = first_view(opened.finished)
    assert chosen_view(view, opened.finished, color="", x=None) == View(view.x, view.measure, "", view.facet)
    with pytest.raises(InputError, match="facet is 'bucket', and the finished cells offer proposer, gamma, temp"):
        chosen_view(view, opened.finished, facet="bucket")


def test_filters_keep_the_finished_cells_with_one_of_the_values_on_every_axis(opened):
    kept = within(opened.finished, {"gamma": (4, 1), "temperature": (0.0,)})
    assert set(kept["gamma"]) == {4, 1} and set(kept["temperature"]) == {0.0} and len(kept) == 3
    assert within(opened.finished, {"gamma": ()}).empty and len(within(opened.finished, {})) == 9


def test_all_cells_are_counted(opened):
    shown = within(opened.finished, {"proposer": ("suffix",)})
    sentence = count_sentence(opened, shown, "c")
    assert sentence == (
        "5 cells shown, 4 hidden by the filters, 1 failed, 2 not decoded yet, 1 of those shown without this figure, "
        "and so without a point."
    )


def test_axes_that_the_view_does_not_tell_apart_are_named(opened):
    assert overlaid(opened.finished, first_view(opened.finished)) == ""
    assert "differ in proposer, temperature" in overlaid(opened.finished, View("gamma", "tokens"))


def test_failed_cells_are_listed_with_their_sentences_which_are_text(opened):
    html = remarks_html(opened.remarks)
    assert "failed: proposer suffix, gamma 2, temperature 0: no &lt;room&gt;" in html and "10 of 12 cells" in html
    assert remarks_html([]) == ""


def test_the_table_has_the_figure_drawn_and_is_sorted_by_any_column(opened):
    names = columns(opened.finished, "tokens")
    assert names[:4] == ["proposer", "gamma", "temperature", "tokens"] and "speedup_measured" in names
    falling = table_html(opened.finished, names, "speedup_measured", True)
    assert falling.index(">10.00 <small>9.50–11.00</small>") < falling.index(">9.00 <small>8.50–10.00</small>")
    assert 'aria-sort="descending"' in falling and falling.count("<tr>") == 10 and ">24<" in falling
    assert ">–</td>" in falling and "aria-sort" not in table_html(opened.finished, names)


def test_a_long_table_says_how_much_of_it_there_is(opened, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    html = table_html(opened.finished, ["gamma"])
    assert html.count("<tr>") == 5 and "first 4 of 9 cells" in html


def test_values_of_axes_are_text_in_the_table(opened):
    assert "<b>" not in table_html(opened.finished.assign(proposer="<b>"), ["proposer"])


def test_a_cell_has_the_trace_in_its_folder_or_a_sentence(opened):
    path = trace_file(opened, ids()[4], "plain")
    assert path == opened.folder / "cells" / ids()[4] / "plain.trace" and path.exists()
    with pytest.raises(InputError, match="suffix, gamma 4, temperature 0 was kept without its traces"):
        trace_file(opened, ids()[0])
    with pytest.raises(InputError, match="no finished cell"):
        trace_file(opened, ids()[2])


def test_the_code_that_keeps_traces_decodes_the_same_cell(opened):
    cell = opened.finished.to_dict("records")[1]
    code = code_with_traces(STUDY, cell)
    (line,) = (line for line in code.splitlines() if line.startswith("run_study"))
    study = eval(line.removeprefix("run_study(").removesuffix(', "with-traces")'), {"Study": Study})
    assert study.traces and ids(study) == [cell["id"]]


def test_what_is_no_study_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="there is no study in"):
        open_study(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        open_study(tmp_path / "nowhere")
    (tmp_path / STUDY_FILE).write_text('{"version": 1, "study": {"proposer": ["ngram"]}}')
    with pytest.raises(InputError, match="is damaged"):
        open_study(tmp_path)


def test_a_study_that_has_just_begun_has_no_cell(tmp_path):
    opened = open_study(write_study(tmp_path, done=0))
    assert opened.finished.empty and opened.planned == 12
    assert count_sentence(opened, opened.finished) == (
        "0 cells shown, 0 hidden by the filters, 0 failed, 12 not decoded yet."
    )
