"""The map of acceptance: a panel a bucket, a cell where something was examined, grey where that was little."""

import pandas as pd
import pytest

from specworkbench import plots
from specworkbench.plots import palette

TABLE = pd.DataFrame(
    [
        ("<b>", 1, 0, 8, 40, 30),
        ("<b>", 1, 8, 16, 20, 5),
        ("<b>", 3, 8, 16, 4, 4),
        ("prose", 2, 0, 8, 12, 6),
    ],
    columns=["bucket", "position", "output_index", "output_index_end", "examined", "accepted"],
)
TABLE = TABLE.assign(acceptance=TABLE["accepted"] / TABLE["examined"], low=0.1, high=0.9)


def panels(figure):
    """[(cells with enough, grey cells, mark)] a panel."""
    return [figure.data[i : i + 3] for i in range(0, len(figure.data), 3)]


def filled(cells):
    """{(position, first output index): acceptance} of the cells that are drawn."""
    return {
        (position, start): value
        for position, row in zip(cells.y, cells.z, strict=True)
        for start, value in zip(cells.x, row, strict=False)
        if value is not None
    }


def test_every_bucket_has_a_panel_with_its_name_as_text():
    figure = plots.acceptance_map(TABLE)
    assert [label.text for label in figure.layout.annotations] == ["&lt;b&gt;", "prose"]
    assert len(panels(figure)) == 2


def test_a_cell_is_where_it_was_measured_and_nothing_is_drawn_where_nothing_was_examined():
    (enough, few, _), (other, none, _) = panels(plots.acceptance_map(TABLE))
    assert filled(enough) == {(1, 0): 0.75, (1, 8): 0.25} and filled(few) == {(3, 8): 1.0}
    assert filled(other) == {(2, 0): 0.5} and filled(none) == {}
    assert list(enough.x) == [0, 8, 16] and list(enough.y) == [1, 2, 3] and not enough.hoverongaps


def test_few_observations_are_grey_and_the_title_says_so():
    figure = plots.acceptance_map(TABLE, few=15)
    enough, few, _ = panels(figure)[0]
    assert filled(few) == {(3, 8): 1.0} and filled(panels(figure)[1][1]) == {(2, 0): 0.5}
    assert len({color for _, color in few.colorscale}) == 1 and enough.coloraxis == "coloraxis"
    assert "grey: fewer than 15" in figure.layout.title.text


def test_counts_stand_in_the_cells_and_all_else_when_hovering():
    enough, *_ = panels(plots.acceptance_map(TABLE))[0]
    assert enough.text[0][0] == "0.75<br>40" and enough.texttemplate
    assert enough.hovertext[0][0] == (
        "position 1, output index 0 to 7: 0.75 (0.10 to 0.90), 30 of 40 examined accepted"
    )


def test_too_many_columns_for_numbers_keep_them_for_hovering():
    many = pd.concat([TABLE.iloc[:1].assign(output_index=i, output_index_end=i + 1) for i in range(40)])
    (enough, *_) = panels(plots.acceptance_map(many))[0]
    assert enough.texttemplate is None and enough.hovertext[0][39]


def test_one_scale_from_none_to_all_that_any_colour_vision_reads():
    scale = plots.acceptance_map(TABLE).layout.coloraxis
    assert (scale.cmin, scale.cmax) == (0, 1)
    expected = plots.acceptance_map(TABLE).layout.coloraxis.update(colorscale=palette.SEQUENTIAL).colorscale
    assert scale.colorscale == expected


def test_light_and_dark_and_other_templates():
    figure = plots.acceptance_map(TABLE)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert plots.acceptance_map(TABLE, template="plotly_dark").layout.template.layout.font.color == "#f2f5fa"
    titles = {axis.title.text for axis in (*figure.select_xaxes(), *figure.select_yaxes())}
    assert {"output index", "position in the round"} <= titles


def test_a_missing_column_is_named_and_an_empty_table_is_an_empty_figure():
    with pytest.raises(KeyError, match="examined"):
        plots.acceptance_map(TABLE.drop(columns="examined"))
    assert len(panels(plots.acceptance_map(TABLE.iloc[:0]))) == 1
