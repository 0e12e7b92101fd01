"""The lab's table and bars: a label of any length can be read, and is text."""

import pytest

from specworkbench.widgets.lab_words import lines, table_html, time_figure
from tests.widgets.traces import spoken

LONG = "draft_model:/home/somebody/.cache/models/qwen2.5-coder-0.5b-instruct"


def test_a_label_has_a_row_of_its_own_and_may_be_broken_where_a_part_begins():
    html = table_html([], {LONG: "there is no such model", "<b>": "no"})
    head, _, cells = html.partition("qwen2.5-coder-0.5b-instruct</th></tr>")
    assert 'scope="rowgroup" colspan="9"' in head and "draft_model:<wbr>/<wbr>home/<wbr>somebody/<wbr>" in head
    assert cells.startswith("<tr") and "there is no such model" in cells and "&lt;b&gt;" in html


@pytest.mark.parametrize("label", ["ngram", "plain decoding", LONG, "draft_tree:embedded/draft-m,nodes=16,width=4"])
def test_lines_hold_the_whole_label_and_are_as_short_as_its_parts_allow(label):
    found = lines(label, most=20)
    assert "".join(found) == label
    assert all(len(line) <= 20 or not set(line[:-1]) & set(":/,") for line in found)


def test_a_bar_has_room_for_all_lines_of_its_label():
    short, long = (time_figure({"none": spoken(proposer="none"), label: spoken()}) for label in ("ngram", LONG))
    assert long.layout.height > short.layout.height
    assert long.layout.yaxis.ticktext[0] == "plain decoding" and long.layout.yaxis.ticktext[1].count("<br>") == 2
    assert list(long.layout.yaxis.tickvals) == list(long.data[0].y)
