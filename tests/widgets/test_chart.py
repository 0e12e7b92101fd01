"""The chart of p and q: bars to scale, everything named, nothing of a token taken for markup."""

import re

import pandas as pd
import pytest

from specworkbench.plots import palette
from specworkbench.widgets.chart import describe, distribution_svg, ticks

TABLE = pd.DataFrame(
    {
        "label": ["·a", '<script>&"', "all others"],
        "p": [0.5, 0.3, 0.2],
        "q": [0.2, 0.7, 0.1],
        "overlap": [0.2, 0.3, 0.1],
        "residual": [0.3, 0.0, 0.1],
        "mark": ["corrected", "rejected", ""],
    }
)
ALONE = TABLE.assign(q=float("nan"), overlap=float("nan"), residual=float("nan"))


def heights(svg, color):
    """Heights of the bars of one colour, the legend's square left out."""
    return [float(height) for height in re.findall(rf'height="([\d.]+)" fill="{color}"/>', svg)][1:]


def test_bars_are_to_scale():
    svg = distribution_svg(TABLE)
    p, q = heights(svg, palette.TARGET), heights(svg, palette.DRAFT)
    assert [height / q[1] for height in p] == pytest.approx([0.5 / 0.7, 0.3 / 0.7, 0.2 / 0.7], abs=0.01)
    residual = heights(svg, palette.RESIDUAL)
    assert residual[0] / residual[1] == pytest.approx(3, abs=0.05)
    assert svg.count(f'stroke="{palette.OVERLAP}"') == 1 + 3


def test_text_is_escaped_and_the_tokens_of_the_round_stand_out():
    svg = distribution_svg(TABLE)
    assert "<script>" not in svg and "&lt;script&gt;&amp;&quot;" in svg
    assert svg.count('font-weight="700"') == 2 and "↻ ·a" in svg and "✗ &lt;script" in svg


def test_every_token_has_its_numbers_and_the_chart_its_sentence():
    svg = distribution_svg(TABLE)
    assert "<title>·a: p 0.50, q 0.20, overlap 0.20, residual 0.30</title>" in svg
    assert "overlap 0.60, residual 0.40" in describe(TABLE)
    assert describe(ALONE).startswith("Target p, highest first: ·a 0.50")


def test_without_a_proposal_only_p_is_drawn():
    svg = distribution_svg(ALONE)
    assert len(heights(svg, palette.TARGET)) == 3 and palette.DRAFT not in svg and "residual" not in svg


def test_two_charts_on_a_page_do_not_share_names():
    first, second = (set(re.findall(r'id="([^"]+)"', distribution_svg(TABLE))) for _ in range(2))
    assert first and not first & second


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(1.0, [0, 0.5, 1.0]), (0.7, [0, 0.5]), (0.33, [0, 0.2]), (0.0, [0]), (2e-4, [0, 1e-4, 2e-4])],
)
def test_grid_lines_are_at_round_values(highest, expected):
    assert ticks(highest, 2) == pytest.approx(expected)
