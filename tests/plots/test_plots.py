"""Figures by their structure: what is drawn, in which unit, on light and dark pages alike."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from specworkbench import plots
from specworkbench.plots import palette
from specworkbench.plots.style import literal

TABLE = pd.DataFrame(
    {
        "label": ["·a", "<b>", "all others"],
        "p": [0.5, 0.3, 0.2],
        "q": [0.2, 0.7, 0.1],
        "overlap": [0.2, 0.3, 0.1],
        "residual": [0.3, 0.0, 0.1],
        "mark": ["corrected", "rejected", ""],
    }
)
MEASURED = pd.DataFrame({"gamma": [1, 4], "block_efficiency": [1.5, 2.0], "low": [1.4, 1.9], "high": [1.7, 2.2]})
THEORY = pd.DataFrame({"gamma": [2, 1, 1, 2], "alpha": [0.5, 0.5, 0.8, 0.8], "expected_tokens": [1.75, 1.5, 1.8, 2.4]})
POSITIONS = pd.DataFrame(
    {
        "position": [1, 2],
        "examined": [100, 60],
        "rounds": [100, 100],
        "acceptance": [0.6, 0.5],
        "low": [0.5, 0.4],
        "high": [0.7, 0.6],
        "survival": [0.6, 0.3],
        "survival_low": [0.5, 0.2],
        "survival_high": [0.7, 0.4],
    }
)
PHASES = pd.DataFrame(
    {
        "group": ["plain", "round"],
        "ms_propose": [0.0, 3.0],
        "ms_verify": [5.0, 7.0],
        "ms_accept": 0.1,
        "ms_rollback": 0.2,
    }
)

RACE = pd.DataFrame(
    [("ours", 0, 0.0), ("ours", 50, -1.0), ("<b>", 0, 0.0), ("<b>", 20, 9.0), ("<b>", 30, float("inf"))],
    columns=["name", "tokens", "log_e"],
)

CELLS = pd.DataFrame({"gamma": [1, 1, 2, 2], "alpha": [0.25, 0.75] * 2, "value": [0.5, 2.0, 1.0, 8.0]})
LINES = pd.DataFrame({"level": [1, 1, 2, 2], "gamma": [1, 2, 1, 2], "alpha": [0.2, 0.4, 0.8, 0.9]})
SLICE = pd.DataFrame({"x": [0, 1, 2], "value": [1.0, 1.3, 1.2], "ideal": [1.0, 1.8, 2.4]})
SPEEDUPS = pd.DataFrame(
    {"label": ["<b>", "b"], "alpha": [0.5, 0.8], "gamma": [1, 2], "x": [1, 2], "measured": [1.2, 1.5]}
).assign(low=[1.1, None], high=[1.4, None])
GAP = pd.DataFrame(
    [
        ("uneven <b>acceptance", "3.00 → 2.50", 3.0, 2.5, 2.4, 2.6, -0.5, -0.6, -0.4),
        ("nothing", "", 2.5, 2.5, 2.4, 2.6, 1e-9, 0.0, 0.0),
        ("prefill", "$5 %", 2.5, 2.504, 2.0, 3.0, 0.004, None, None),
    ],
    columns=["step", "figures", "before", "after", "low", "high", "change", "change_low", "change_high"],
)

PARTS = pd.DataFrame(
    [("<b>", 0.5, 0.4, 0.6, 12, "does not hold here"), ("b", 1.2, 1.1, 1.3, 12, "holds here")],
    columns=["part", "effect", "low", "high", "n", "verdict"],
)


def figures():
    return {
        "distribution": plots.distribution(TABLE),
        "expected_tokens": plots.expected_tokens(MEASURED, THEORY),
        "acceptance": plots.acceptance(POSITIONS),
        "phases": plots.phases(PHASES),
        "e_race": plots.e_race(RACE, 1e-3),
        "speedup_surface": plots.speedup_surface(CELLS, LINES, SPEEDUPS),
        "speedup_slice": plots.speedup_slice(SLICE, SPEEDUPS),
        "gap": plots.gap(GAP),
        "claim_parts": plots.claim_parts(PARTS, low=1.0),
    }


@pytest.mark.parametrize("name", figures())
def test_figure_has_a_title_and_named_axes_and_a_transparent_background(name):
    figure = figures()[name]
    assert figure.layout.title.text
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    named = [axis.title.text for axis in (*figure.select_xaxes(), *figure.select_yaxes()) if axis.title.text]
    assert named


@pytest.mark.parametrize("name", figures())
def test_template_can_be_chosen(name):
    arguments = {"expected_tokens": (MEASURED, THEORY), "acceptance": (POSITIONS,), "phases": (PHASES,)}
    arguments |= {"e_race": (RACE, 1e-3), "speedup_surface": (CELLS, LINES), "speedup_slice": (SLICE,), "gap": (GAP,)}
    arguments |= {"claim_parts": (PARTS,)}
    figure = getattr(plots, name)(*arguments.get(name, (TABLE,)), template="plotly_dark")
    assert figure.layout.template.layout.font.color == "#f2f5fa"


def test_bars_of_p_and_of_q_sum_to_one_and_the_overlap_lies_across_both():
    residual, p, q, overlap = plots.distribution(TABLE).data
    assert residual.legendrank > 1000, "the lowest panel is the last in the legend"
    assert sum(p.y) == pytest.approx(1) and sum(q.y) == pytest.approx(1)
    assert list(overlap.y) == [0.2, 0.3, 0.1] and overlap.width == p.width + q.width and overlap.offset == p.offset
    assert list(residual.y) == [0.3, 0.0, 0.1] and residual.yaxis == "y2"


def test_tokens_of_the_round_are_marked_on_the_axis_and_text_is_taken_literally():
    ticks = plots.distribution(TABLE).layout.xaxis.ticktext
    assert ticks == ("<b>↻ ·a</b>", "<b>✗ &lt;b&gt;</b>", "all others")
    assert literal("<i>$x$&") == "&lt;i&gt;&#36;x&#36;&amp;"


def test_without_a_proposal_only_p_is_drawn_in_one_panel():
    nothing = TABLE.assign(q=None, overlap=None, residual=None, mark="")
    figure = plots.distribution(nothing)
    assert [trace.name for trace in figure.data] == ["p (target)"] and len(list(figure.select_yaxes())) == 1


def test_a_long_label_is_shortened_on_the_axis_but_not_on_hovering():
    figure = plots.distribution(TABLE.assign(label=["x" * 40, "·b", "all others"]))
    assert figure.layout.xaxis.ticktext[0] == f"<b>↻ {'x' * 13}…</b>" and figure.data[1].customdata[0] == "x" * 40


def test_measured_points_carry_their_interval_and_each_alpha_has_a_curve_in_order_of_gamma():
    low_alpha, high_alpha, points = plots.expected_tokens(MEASURED, THEORY).data
    assert list(low_alpha.x) == [1, 2] and list(high_alpha.y) == [1.8, 2.4]
    assert "0.50" in low_alpha.name and "0.80" in high_alpha.name
    assert list(points.error_y.array) == pytest.approx([0.2, 0.2])
    assert list(points.error_y.arrayminus) == pytest.approx([0.1, 0.1])
    assert points.mode == "markers"


def test_series_differ_in_colour_and_symbol_and_share_colour_with_their_curve():
    measured = pd.concat([MEASURED.assign(series="code"), MEASURED.assign(series="prose")])
    theory = THEORY.assign(series=["code", "code", "prose", "prose"])
    code, prose, code_points, prose_points = plots.expected_tokens(measured, theory).data
    assert code.line.color == code_points.marker.color != prose.line.color == prose_points.marker.color
    assert code_points.marker.symbol != prose_points.marker.symbol
    assert [trace.showlegend for trace in (code, prose)] == [False, False]  # they are told by their points
    alone = plots.expected_tokens(measured, theory.assign(series="theory alone")).data[0]
    assert alone.showlegend is True


def test_acceptance_shows_both_quantities_with_intervals_and_counts():
    conditional, survival = plots.acceptance(POSITIONS).data
    assert list(conditional.y) == [0.6, 0.5] and list(survival.y) == [0.6, 0.3]
    assert list(survival.error_y.array) == pytest.approx([0.1, 0.1])
    assert conditional.customdata[1][2] == 60 and survival.customdata[1][2] == 100


def test_phases_are_stacked_in_order_and_told_apart_without_colour():
    figure = plots.phases(PHASES)
    assert [trace.name for trace in figure.data] == ["propose", "verify", "accept", "rollback"]
    assert figure.layout.barmode == "stack" and figure.layout.xaxis.title.text == "ms per round"
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 4
    assert figure.layout.yaxis.automargin  # names of groups are of any length


def test_a_gap_falls_from_the_formula_to_the_measurement_and_leaves_out_what_changes_nothing():
    bars, measured, label = plots.gap(GAP, start="a <i> formula").data
    assert list(bars.y) == ["a &lt;i&gt; formula", "uneven &lt;b&gt;acceptance", "prefill", "measured"]
    assert list(bars.x) == [3.0, -0.5, 0.004, 2.504] and list(bars.measure) == ["absolute", *["relative"] * 2, "total"]
    assert list(bars.text) == ["3.00", "−0.50", "+0.004", ""], "the sign tells what the colour does"
    assert len({bars[kind].marker.color for kind in ("totals", "increasing", "decreasing")}) == 3
    assert list(measured.error_x.array) == pytest.approx([0.496]) and list(label.text) == [" 2.50"]
    assert "-0.500 (-0.600 to -0.400), so 2.500" in bars.hovertext[1] and "&#36;5 %" in bars.hovertext[2]


def test_a_gap_without_intervals_and_of_one_step_is_drawn():
    bars, measured, label = plots.gap(GAP.iloc[:1].assign(low=None, high=None)).data
    assert len(bars.y) == 3 and list(label.x) == [2.5] and list(measured.x) == [2.5]


def test_a_missing_column_is_named():
    with pytest.raises(KeyError, match="ms_verify"):
        plots.phases(PHASES.drop(columns="ms_verify"))


def test_every_outcome_has_a_colour_and_a_glyph_of_its_own():
    marks = palette.OUTCOMES.values()
    assert len({mark.color for mark in marks}) == len({mark.glyph for mark in marks}) == 6
    css = palette.css_variables()
    assert all(f"--swb-{name}: {mark.color};" in css for name, mark in palette.OUTCOMES.items())


def test_figures_are_not_shown_and_not_written():
    assert all(type(figure) is go.Figure for figure in figures().values())


def test_the_race_is_in_logarithms_to_base_10_with_the_line_of_rejection():
    figure = plots.e_race(RACE, 1e-3)
    ours, wrong = figure.data
    assert ours.y[1] == pytest.approx(-0.4343, abs=1e-4) and wrong.y[1] == pytest.approx(3.9087, abs=1e-4)
    assert wrong.y[2] > 1.05 * max(wrong.y[1], 3) and wrong.customdata[2] == "infinite", "an impossible token is on top"
    assert figure.layout.shapes[0].y0 == pytest.approx(3) and "1,000" in figure.layout.annotations[0].text
    assert wrong.name == literal("<b>")


def test_a_surface_has_no_colour_at_one_and_its_break_even_line_is_the_heaviest():
    cells, even, two, points = plots.speedup_surface(CELLS, LINES, SPEEDUPS).data
    assert cells.zmin == -cells.zmax and cells.z[1][0] == 0 and cells.customdata[1][1] == 8
    shades = [color for place, color in cells.colorscale if place == 0.5]
    assert all(color.endswith(", 0)") for color in shades) and len(shades) == 2
    assert even.name == "break-even" and list(even.x) == [0.2, 0.4] and even.line.width > two.line.width
    assert list(points.y) == [1, 2] and points.text[0] == "&lt;b&gt;"


def test_a_slice_has_theory_ideal_and_points_with_what_intervals_there_are():
    ideal, theory, points = plots.speedup_slice(SLICE, SPEEDUPS, over="gamma").data
    assert list(ideal.y) == [1, 1.8, 2.4] and ideal.line.dash == "dash" and list(theory.y) == [1, 1.3, 1.2]
    assert points.error_y.array[0] == pytest.approx(0.2) and points.error_y.arrayminus[0] == pytest.approx(0.1)
    assert len(plots.speedup_slice(SLICE).data) == 2


def test_settings_of_a_claim_stand_in_order_with_the_mark_of_their_verdict_and_the_region_shaded():
    figure = plots.claim_parts(PARTS, low=1.0)
    held, failed = figure.data
    assert (list(held.x), list(held.y)) == ([1.2], [1]) and (list(failed.x), list(failed.y)) == ([0.5], [0])
    assert held.marker.color != failed.marker.color and held.marker.symbol != failed.marker.symbol
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "b") and figure.layout.yaxis.range == (1.5, -0.5)
    region, edge = figure.layout.shapes
    assert region.x0 == 1.0 and region.x1 == figure.layout.xaxis.range[1] and edge.x0 == 1.0
    assert list(held.error_x.array) == pytest.approx([0.1])


def test_every_verdict_has_a_mark():
    from specworkbench.experiments.claims import VERDICTS

    assert tuple(palette.VERDICTS) == VERDICTS
    assert len({mark.glyph for mark in palette.VERDICTS.values()}) == len(VERDICTS)


@pytest.mark.parametrize("height", [220, 420, 800])
def test_the_legend_hangs_below_the_title_whatever_the_height(height):
    figure = plots.expected_tokens(MEASURED, THEORY, height=height)
    own = figure.layout.template.layout
    assert own.title.y == 1 and own.title.yanchor == "top" and own.legend.yref == "container"
    assert own.legend.yanchor == "top" and height * (1 - figure.layout.legend.y) == pytest.approx(34)
    assert plots.expected_tokens(MEASURED, THEORY, template="plotly_dark").layout.legend.y is None
