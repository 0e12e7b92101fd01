"""The study browser: choices, filters, points that open traces, and a sentence for what is not there."""

from html import escape
from types import SimpleNamespace

import pandas as pd
import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study, run_study
from specworkbench.experiments.study.store import Store
from specworkbench.widgets import StudyBrowser
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.study_browser import EMPTY, NOTHING_DONE, NOTHING_LEFT
from tests.experiments.study.cases import toy_study
from tests.experiments.toys import save_toys
from tests.widgets.studies import ids, write_study


@pytest.fixture
def folder(tmp_path):
    return write_study(tmp_path / "study", done=10, failed=2, traced=4)


def points(browser):
    """How many are drawn."""
    return sum(len(series.x) for series in browser.figure.data)


def test_a_study_opens_with_a_figure_a_table_and_a_count(folder):
    browser = StudyBrowser(folder)
    assert browser.message.value == "" and browser.body.layout.display is None
    assert points(browser) == len(browser.cells) == 9 and browser.figure_box.children == (browser.figure,)
    assert "9 cells shown" in browser.status.value and "no &lt;room&gt;" in browser.remarks.value
    assert browser.table.value.count("<tr>") == 10


def test_it_opens_with_what_is_asked_for(folder):
    browser = StudyBrowser(folder, x="temperature", measure="alpha_overlap", color="gamma", facet="")
    assert (browser.view.x, browser.view.measure, browser.view.color, browser.view.facet) == (
        "temperature", "alpha_overlap", "gamma", ""
    )  # fmt: skip
    assert browser.figure.layout.xaxis.title.text == "temperature"
    wrong = StudyBrowser(folder, x="bucket")
    assert "X is &#x27;bucket&#x27;, and the finished cells offer" in wrong.message.value and points(wrong) == 9


def test_every_control_has_a_label(folder):
    browser = StudyBrowser(folder)
    controls = [
        *browser.controls.choices.values(), *browser.controls.filters.values(), browser.folder, browser.cell,
        browser.side, browser.sort, browser.falling, browser.csv_name, browser.csv_button, browser.open_button,
        browser.refresh_button, browser.controls.all_button,
    ]  # fmt: skip
    assert all(control.description for control in controls)


def test_a_choice_redraws_and_a_panel_is_a_value(folder):
    browser = StudyBrowser(folder)
    browser.controls.choices["facet"].value = ""
    assert len({series.xaxis for series in browser.figure.data}) == 1
    browser.show(facet="gamma", color="proposer")
    assert len({series.xaxis for series in browser.figure.data}) == 3
    with pytest.raises(InputError, match="x is 'seed'"):
        browser.show(x="seed")


def test_filters_choose_cells_in_the_figure_and_in_the_table(folder):
    browser = StudyBrowser(folder)
    browser.controls.filters["gamma"].value = (4, 1)
    browser.controls.filters["proposer"].value = ("suffix",)
    assert points(browser) == len(browser.cells) == 4 and browser.table.value.count("<tr>") == 5
    assert "4 cells shown, 5 hidden by the filters" in browser.status.value
    browser.controls.filters["gamma"].value = ()
    assert NOTHING_LEFT in browser.figure_box.children[0].value
    browser.controls.all_button.click()
    assert points(browser) == 9
    browser.keep(temperature=[1.0])
    assert set(browser.cells["temperature"]) == {1.0} and len(browser.cells) == 5
    with pytest.raises(InputError, match="no finished cell has gamma 7; there are 4, 2, 1"):
        browser.keep(gamma=[7])
    with pytest.raises(InputError, match="'bucket' does not vary"):
        browser.keep(bucket=["code"])


def click(browser, id):
    """A click on the point of a cell, as plotly tells it."""
    for series in browser.figure.data:
        if id in series.ids:
            browser._clicked(series, SimpleNamespace(point_inds=[series.ids.index(id)]), None)


def test_a_click_opens_the_trace_of_its_cell_for_all_panels(folder):
    selection = Selection()
    browser = StudyBrowser(folder, selection=selection)
    assert browser.explorer.layout.display == "none"
    click(browser, ids()[4])
    assert browser.cell.value == ids()[4] and browser.explorer.layout.display is None
    assert browser.explorer.strip.tokens and selection.trace is browser.explorer.trace
    shown = browser.explorer.trace
    browser.show(measure="tokens")
    assert browser.explorer.trace is shown
    browser.side.value = "plain"
    assert browser.explorer.trace is not shown
    browser.keep(gamma=[4])
    assert browser.cell.value == "" and browser.explorer.layout.display == "none" and selection.trace is None


def test_a_cell_without_traces_says_how_to_have_them(folder):
    browser = StudyBrowser(folder)
    click(browser, ids()[0])
    assert "was kept without its traces" in browser.cell_message.value and 'role="alert"' in browser.cell_message.value
    assert "run_study(Study(proposer=(" not in browser.cell_message.value
    assert "run_study(Study(proposer=&#x27;suffix&#x27;, temperature=0.0" in browser.cell_message.value
    assert browser.explorer.layout.display == "none"
    click(browser, ids()[4])
    assert browser.cell_message.value == "" and browser.explorer.strip.tokens


def test_a_damaged_trace_is_a_sentence(folder):
    Store(folder).trace_path(ids()[4]).write_bytes(b"no trace")
    browser = StudyBrowser(folder)
    browser.open_cell(ids()[4])
    assert 'role="alert"' in browser.cell_message.value and browser.explorer.layout.display == "none"


def test_the_table_is_sorted(folder):
    browser = StudyBrowser(folder)
    browser.sort.value = "speedup_measured"
    rising = browser.table.value
    browser.falling.value = True
    assert 'aria-sort="ascending"' in rising and 'aria-sort="descending"' in browser.table.value


def test_the_cells_shown_are_saved_and_no_file_is_overwritten(folder, tmp_path):
    browser = StudyBrowser(folder)
    browser.keep(gamma=[1])
    browser.csv_name.value = str(tmp_path / "cells.csv")
    browser.csv_button.click()
    saved = pd.read_csv(tmp_path / "cells.csv")
    assert saved["id"].tolist() == browser.cells["id"].tolist() and "speedup_low" in saved
    assert "2 cells saved as" in browser.status.value
    browser.save_csv()
    assert "choose another name" in browser.message.value


def test_without_a_folder_it_asks_for_one_and_opens_what_is_typed(folder, tmp_path):
    browser = StudyBrowser()
    assert escape(EMPTY, quote=False) in browser.status.value and browser.refresh_button.disabled
    assert browser.body.layout.display == "none"
    browser.folder.value = str(tmp_path / "nothing")
    assert "There is no folder" in browser.message.value and browser.body.layout.display == "none"
    browser.folder.value = str(folder)
    assert browser.message.value == "" and points(browser) == 9


def test_a_folder_that_holds_no_study_is_a_sentence(tmp_path):
    browser = StudyBrowser(tmp_path)
    assert "There is no study in" in browser.message.value and browser.opened is None


def test_a_study_that_is_being_decoded_grows_with_refresh_and_keeps_what_was_chosen(tmp_path):
    browser = StudyBrowser(write_study(tmp_path, done=0))
    assert NOTHING_DONE in browser.status.value and "12 not decoded yet" in browser.status.value
    write_study(tmp_path, done=6)
    browser.refresh_button.click()
    assert points(browser) == 6 and "6 not decoded yet" in browser.status.value
    browser.show(measure="tokens", color="gamma")
    browser.keep(gamma=[4])
    write_study(tmp_path)
    browser.refresh_button.click()
    assert browser.view.measure == "tokens" and browser.view.color == "gamma"
    assert set(browser.cells["gamma"]) == {4} and set(browser.cells["proposer"]) == {"suffix", "ngram"}
    for file in tmp_path.glob("cells/*/row.json"):
        file.write_text("{")
    browser.refresh_button.click()
    assert NOTHING_DONE in browser.status.value and browser.body.layout.display == "none"


def test_a_study_that_was_run_opens_its_traces(tmp_path):
    pytest.importorskip("torch")
    study = toy_study(save_toys(tmp_path), proposer=["ngram"])
    run_study(study, tmp_path / "run")
    browser = StudyBrowser(tmp_path / "run")
    browser.open_cell(browser.cells["id"].iloc[0])
    assert browser.explorer.strip.tokens and browser.selection.trace.manifest["proposer"]["name"] == "ngram"
    assert isinstance(browser.opened.study, Study)
