"""A study read back: a row a settled cell in the order of its axes, and medians with how far cells lie apart."""

import math

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study, medians, read_study
from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.grid import AXES
from specworkbench.experiments.study.store import Store
from specworkbench.experiments.study.table import varying
from specworkbench.experiments.study.task import task_of
from specworkbench.experiments.study.worker import failure
from tests.experiments.study.cases import toy_row
from tests.test_import import loaded_after

STUDY = Study(proposer=["suffix", "ngram"], gamma=[4, 2], seed=[0, 1], per_bucket=1)


@pytest.fixture
def folder(tmp_path):
    """Speedup 1, 2, 3, ... over the cells; the third failed, the last is not done."""
    store = Store(tmp_path)
    store.begin(STUDY, {}, [])
    for number, cell in enumerate(STUDY.cells()[:-1], start=1):
        task = task_of(STUDY, cell)
        row = failure(task, "no room").row if number == 3 else toy_row(task, speedup=float(number))
        row.get("figures", {}).pop("c", None)
        store.write(row, {})
    return tmp_path


def test_a_row_a_settled_cell_in_the_order_of_the_axes(folder):
    table = read_study(folder)
    assert table["proposer"].tolist() == ["suffix"] * 4 + ["ngram"] * 3 and table["gamma"].tolist()[:4] == [4, 4, 2, 2]
    assert table["status"].tolist() == ["finished"] * 2 + ["failed"] + ["finished"] * 4
    assert table["error"][2] == "no room" and math.isnan(table["speedup_measured"][2])
    assert table["speedup_measured"].dropna().tolist() == [1, 2, 4, 5, 6, 7]
    assert {*AXES, *MEASURES, *(end for pair in INTERVALS.values() for end in pair)} <= set(table.columns)
    assert table["c"].isna().all() and table["host"].dropna().unique().tolist() == ["here"]
    assert varying(table) == ["proposer", "gamma", "seed"]


def test_medians_are_over_the_finished_cells_that_agree_with_the_lowest_and_the_highest(folder):
    table = medians(read_study(folder), ["gamma"])
    assert table["gamma"].tolist() == [4, 2] and table["cells"].tolist() == [4, 2]
    assert table["speedup_measured"].tolist() == [3.5, 5.5]  # of 1, 2, 5, 6 and of 4, 7
    assert table["speedup_low"].tolist() == [1, 4] and table["speedup_high"].tolist() == [6, 7]
    assert medians(read_study(folder), ["proposer", "seed"])["cells"].tolist() == [1, 2, 2, 1]
    with pytest.raises(InputError, match="no axis 'speed'; there are target"):
        medians(read_study(folder), ["speed"])


def test_a_study_is_read_back_without_torch(folder):
    code = f"from specworkbench.experiments.study import read_study; print(len(read_study({str(folder)!r})))"
    assert not {"torch", "transformers"} & loaded_after(code)


def test_a_study_without_a_settled_cell_is_an_empty_table(tmp_path):
    Store(tmp_path).begin(STUDY, {}, [])
    table = read_study(tmp_path)
    assert table.empty and "speedup_measured" in table and medians(table, ["gamma"]).empty
    with pytest.raises(InputError, match="there is no study in"):
        read_study(tmp_path / "nothing")
