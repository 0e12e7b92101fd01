"""A study's figure by its structure: a point a cell with its interval, series by colour and symbol, panels by facet."""

import pandas as pd
import pytest

from specworkbench.plots.study_grid import study_grid

TABLE = pd.DataFrame(
    {
        "gamma": [4, 1, 4, 1, 1],
        "proposer": ["<b>", "<b>", "suffix", "suffix", "ngram"],
        "bucket": ["code", "code", "code", "prose", "prose"],
        "speedup": [2.0, 1.5, 1.2, 1.1, None],
        "low": [1.8, 1.4, None, 1.0, None],
        "high": [2.3, 1.7, None, 1.3, None],
        "cell": ["a", "b", "c", "d<i>", "e"],
    }
)
SPEEDUP = {"y": "speedup", "low": "low", "high": "high"}


def test_points_of_a_series_are_joined_in_order_and_carry_their_interval():
    first, second = study_grid(TABLE, x="gamma", color="proposer", **SPEEDUP).data
    assert list(first.x) == [1, 4] and list(first.y) == [1.5, 2.0] and first.mode == "lines+markers"
    assert list(first.error_y.array) == pytest.approx([0.2, 0.3])
    assert list(first.error_y.arrayminus) == pytest.approx([0.1, 0.2])
    assert first.name == "&lt;b&gt;" and list(second.customdata) == ["d&lt;i&gt;", "c"]
    assert first.marker.color != second.marker.color and first.marker.symbol != second.marker.symbol


def test_points_that_share_a_place_are_not_joined():
    (points,) = study_grid(TABLE, x="gamma", **SPEEDUP).data
    assert points.mode == "markers" and list(points.x) == [1, 1, 4, 4] and len(points.y) == 4


def test_text_has_places_of_its_own_and_series_stand_beside_each_other():
    figure = study_grid(TABLE, x="bucket", color="proposer", **SPEEDUP)
    assert list(figure.layout.xaxis.ticktext) == ["code", "prose"] and list(figure.layout.xaxis.tickvals) == [0, 1]
    first, second = figure.data
    assert first.mode == "markers" and max(first.x) < 0 < max(second.x)


def test_a_facet_is_a_panel_each_with_the_same_axes_and_one_legend():
    figure = study_grid(TABLE, x="gamma", color="proposer", facet="bucket", **SPEEDUP)
    assert [note.text for note in figure.layout.annotations] == ["bucket code", "bucket prose"]
    assert [(trace.name, trace.xaxis, trace.showlegend) for trace in figure.data] == [
        ("&lt;b&gt;", "x", True),
        ("suffix", "x", True),
        ("suffix", "x2", False),
    ]
    assert figure.layout.yaxis2.matches == "y"
    many = study_grid(TABLE.assign(bucket=list("abcde")), x="gamma", facet="bucket", **SPEEDUP)
    assert len(many.data) == 4 and many.layout.height > figure.layout.height


def test_titles_name_both_axes_and_a_reference_is_a_line():
    figure = study_grid(TABLE, x="gamma", y="speedup", y_title="speedup $x$", reference=1.0)
    assert figure.layout.title.text == "speedup &#36;x&#36; by gamma" and figure.layout.xaxis.title.text == "gamma"
    assert figure.layout.yaxis.title.text == "speedup &#36;x&#36;" and figure.layout.shapes[0].y0 == 1.0
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert not figure.layout.showlegend and figure.data[0].error_y.array is None
    dark = study_grid(TABLE, x="gamma", y="speedup", template="plotly_dark", title="mine")
    assert dark.layout.template.layout.font.color == "#f2f5fa" and dark.layout.title.text == "mine"


def test_everything_drawn_lies_within_the_axis_which_begins_at_zero():
    for options in ({"x": "gamma"}, {"x": "bucket", "facet": "proposer"}, {"x": "gamma", "reference": 4.0}):
        figure = study_grid(TABLE, **options, **SPEEDUP)
        highest = max(2.3, options.get("reference", 0))
        ranges = [axis.range for axis in figure.select_yaxes()]
        assert ranges and all(low == 0 and highest < high < 1.2 * highest for low, high in ranges)
    below = study_grid(TABLE.assign(low=-1.0), x="gamma", **SPEEDUP)
    assert below.layout.yaxis.range[0] < -1
    assert study_grid(TABLE.tail(1), x="gamma", **SPEEDUP).layout.yaxis.range is None


def test_a_missing_column_is_named():
    with pytest.raises(KeyError, match="seed"):
        study_grid(TABLE, x="seed", y="speedup")
