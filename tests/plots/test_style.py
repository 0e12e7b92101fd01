"""Ink: a grey as far from white as from JupyterLab's dark page, and rules that give it a page's own colour."""

import plotly.graph_objects as go
import pytest

from specworkbench.plots.style import INK, NEUTRAL, finish, ink_css


def luminance(color: str) -> float:
    """WCAG's relative luminance of #RRGGBB."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#FFFFFF", "#111111"])
def test_without_a_colour_of_the_page_ink_reads_on_both(page):
    low, high = sorted((luminance(INK), luminance(page)))
    assert (high + 0.05) / (low + 0.05) > 4.2


def test_rules_go_by_the_colour_that_plotly_writes():
    assert NEUTRAL.layout.font.color == NEUTRAL.layout.xaxis.linecolor == INK == "#7A7A7A"
    screen, paper = ink_css("red").split("@media print")
    for what in ('text[style*="fill: rgb(122, 122, 122)"] {fill: ', '[style*="stroke: rgb(122, 122, 122)"] {stroke: '):
        assert f"{what}red !important" in screen and f"{what}#000 !important" in paper


def test_where_a_page_has_no_colour_of_its_own_the_grey_stays():
    assert f"fill: var(--jp-ui-font-color1, {INK}) !important" in ink_css()


def test_a_long_title_is_broken_into_lines_and_the_legend_and_the_axes_move_below_them():
    short, long = (finish(go.Figure(), title, None, 400) for title in ("Speedup", "a word and another " * 5))
    assert short.layout.title.text == "Speedup" and long.layout.title.text.count("<br>") == 1
    assert max(map(len, long.layout.title.text.split("<br>"))) <= 52
    assert long.layout.margin.t - short.layout.margin.t == 20
    assert 400 * (short.layout.legend.y - long.layout.legend.y) == pytest.approx(20)
    assert finish(go.Figure(), f"{'x ' * 40}<br>y", None, 400).layout.title.text.count("<br>") == 1
