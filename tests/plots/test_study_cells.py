"""The cells of a study as a figure: named by what varies, with the interval of the figure that is drawn."""

import pandas as pd

from specworkbench.plots import study_cells

TABLE = pd.DataFrame(
    {
        "id": ["one", "two"],
        "proposer": ["suffix", "ngram"],
        "gamma": [4, 4],
        "speedup_measured": [1.5, 1.1],
        "speedup_low": [1.4, 1.0],
        "speedup_high": [1.7, 1.3],
        "tokens": [64.0, 64.0],
    }
)


def test_a_point_is_named_by_the_axes_that_vary_and_keeps_its_id():
    (series,) = study_cells(TABLE, x="proposer").data
    assert list(series.customdata) == ["proposer suffix", "proposer ngram"] and list(series.ids) == ["one", "two"]
    assert list(series.error_y.array) == [1.7 - 1.5, 1.3 - 1.1]


def test_a_speedup_stands_beside_a_line_at_one_and_other_figures_do_not():
    assert study_cells(TABLE, x="proposer").layout.shapes[0].y0 == 1.0
    plain = study_cells(TABLE, x="proposer", y="tokens", title="mine")
    assert not plain.layout.shapes and plain.layout.title.text == "mine"
    assert plain.layout.yaxis.title.text == "tokens decoded speculatively"
