"""The explorer without a browser or torch: points that stay, snap, predict and reveal, words for every state."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specworkbench import analysis, theory
from specworkbench.errors import InputError
from specworkbench.widgets import SpeedupExplorer
from specworkbench.widgets.speedup_explorer import START
from specworkbench.widgets.speedup_words import EMPTY
from tests.widgets.traces import spoken

HARMFUL = "<script>alert(1)</script>"
POINTS = [
    {
        "label": "draft", "alpha_counts": 0.71, "gamma": 4, "c": 0.22, "verify_cost": 1.6, "overhead": 0.04,
        "speedup_measured": 1.32, "speedup_low": 1.25, "speedup_high": 1.4, "block_efficiency": 2.8,
    },
    {"label": HARMFUL, "alpha_counts": 0.5, "gamma": 8, "speedup_measured": 0.8},
    {"label": "dial", "alpha_counts": 0.9, "gamma": 2, "block_efficiency": 2.7, "block_low": 2.6, "block_high": 2.8},
]  # fmt: skip


def words_of(html):
    return re.sub(r"<style>.*?</style>|<[^>]+>", "", html, flags=re.S)


def circles(explorer):
    """Measured points drawn in the three figures: surface, over gamma, over alpha."""
    figures = explorer.figures.value.split("<figure>")[1:]
    return [len(re.findall(r'class="swb-(?:measured|chosen)"><title>', figure)) for figure in figures]


def test_it_is_usable_without_anything_and_says_what_to_do():
    explorer = SpeedupExplorer()
    assert EMPTY in words_of(explorer.verdict.value) and explorer.point_row.layout.display == "none"
    assert circles(explorer) == [0, 0, 0] and explorer.message.value == ""
    assert explorer.speedup == pytest.approx(theory.speedup(0.7, 4, 0.1, verify_cost=1.2))


def test_sliders_and_traits_are_one_and_the_headline_is_the_formula():
    explorer = SpeedupExplorer(alpha=0.6, gamma=3, c=0.1, v=0.1, overhead=0.05)
    explorer.sliders["alpha"].value = 0.8
    explorer.c = 0.2
    assert (explorer.alpha, explorer.sliders["c"].value) == (0.8, 0.2)
    said = words_of(explorer.headline.value)
    assert "brings 2.95 tokens and costs 1.95 plain target steps: speedup 1.51" in said
    best = theory.optimal_gamma(0.8, 0.2, verify_costs=lambda n: 1 + 0.1 * (n - 1), overhead=0.05, max_gamma=16)
    least = theory.break_even_alpha(3, 0.2, verify_cost=1.3, overhead=0.05)
    assert f"The best gamma here is {best}" in said and f"it pays from alpha = {least:.2f} on" in said


def test_a_browser_that_shows_a_value_between_two_steps_does_not_change_it():
    explorer = SpeedupExplorer(alpha=0.657, gamma=4, c=0.2)
    slider, said = explorer.sliders["alpha"], explorer.headline.value
    slider.value = 0.66  # what the drawn slider sends by itself
    assert explorer.alpha == 0.657 and explorer.headline.value == said
    slider.value = 0.65  # and then somebody presses the left arrow
    assert explorer.alpha == 0.65 and explorer.headline.value != said
    explorer.alpha = 0.657
    slider.value = 0.67
    assert explorer.alpha == 0.67


def test_where_nothing_pays_it_says_so():
    explorer = SpeedupExplorer(alpha=0.2, c=0.9)
    assert "no gamma pays: decode plainly" in words_of(explorer.headline.value)
    explorer.c = 3.0
    assert "no alpha would pay" in words_of(explorer.headline.value) and explorer.sliders["c"].max == 3.0
    explorer.show(POINTS)
    explorer.c, explorer.v = 0.0, 0.0
    assert "every alpha pays" in words_of(explorer.headline.value)


def test_measured_points_stay_while_the_theory_moves():
    explorer = SpeedupExplorer(POINTS)
    assert circles(explorer) == [2, 2, 2], "the dial has no speedup"

    def places():
        return re.findall(r'transform="(translate[^"]+)" class="swb-measured"', explorer.figures.value)[:2]

    before, line = places(), re.findall(r'points="([^"]+)" class="swb-theory"', explorer.figures.value)
    explorer.alpha = 0.75
    assert places() == before and re.findall(r'points="([^"]+)" class="swb-theory"', explorer.figures.value) != line
    explorer.quantity = "tokens"
    assert circles(explorer) == [2, 2, 2], "the harmful one has no tokens per round"
    assert explorer.figures.value.count('class="swb-bar"') == 2 * 3, "one interval, in both slices"


def test_snapping_takes_what_the_point_has_and_leaves_the_rest():
    explorer = SpeedupExplorer(POINTS, c=0.5)
    explorer.point_choice.value = 0
    assert (explorer.alpha, explorer.gamma, explorer.c, explorer.overhead) == (0.71, 4, 0.22, 0.04)
    assert explorer.v == pytest.approx(0.15) and explorer.costs.verify_cost(4) == pytest.approx(1.6)
    said = words_of(explorer.verdict.value)
    assert "draft: measured 1.32 (1.25 to 1.40); the theory, where the sliders stand, 1.12" in said
    assert "outside the interval" in said and explorer.figures.value.count('class="swb-chosen"><title>') == 3
    explorer.alpha = 0.3
    explorer.snap_button.click()
    assert explorer.alpha == 0.71
    explorer.snap(2)
    assert (explorer.gamma, explorer.c) == (2, 0.22) and explorer.point_choice.value == 2
    assert "dial: not measured; look at tokens per round instead" in words_of(explorer.verdict.value)
    explorer.point_choice.value = -1
    assert explorer.chosen == -1 and "Choose a measured point" in words_of(explorer.verdict.value)


def test_predict_hides_what_was_measured_until_it_is_revealed():
    explorer = SpeedupExplorer(POINTS)
    explorer.predict_box.value = True
    assert circles(explorer) == [0, 0, 0] and explorer.reveal_button.disabled
    explorer.snap(0)
    assert "hidden. Move your guess, then press Reveal" in words_of(explorer.verdict.value)
    assert "measured 1.32" not in words_of(explorer.to_html()) and not explorer.guess_slider.disabled
    explorer.guess_slider.value = 1.65
    assert explorer.figures.value.count('class="swb-guess"><title>') == 2
    explorer.reveal_button.click()
    said = words_of(explorer.verdict.value)
    assert "You said 1.65: 25.0% too high. draft: measured 1.32" in said and circles(explorer) == [1, 1, 1]
    assert explorer.guess_slider.disabled, "a guess is not moved after the fact"
    explorer.predict = False
    assert circles(explorer) == [2, 2, 2]
    explorer.predict = True
    assert circles(explorer) == [0, 0, 0], "hidden again"


def test_a_guess_inside_the_interval_is_told():
    explorer = SpeedupExplorer(POINTS, predict=True)
    explorer.snap(0)
    explorer.guess = 1.3
    explorer.reveal()
    assert "You said 1.30: inside the interval." in words_of(explorer.verdict.value)


def test_a_measured_table_of_v_is_used_and_says_how_far_gamma_goes():
    table = [1.0, 1.4, 1.5, 1.9, 2.5]
    explorer = SpeedupExplorer(verify_costs=table, alpha=0.8, gamma=3, c=0.0)
    assert explorer.max_gamma == explorer.sliders["gamma"].max == 4 and explorer.sliders["v"].disabled
    assert explorer.speedup == pytest.approx(theory.speedup(0.8, 3, 0.0, verify_cost=1.9))
    explorer.measured_v = False
    assert explorer.speedup == pytest.approx(theory.speedup(0.8, 3, 0.0, verify_cost=1.15))
    explorer.show(POINTS)
    explorer.measured_v = True
    explorer.snap(0)
    assert not explorer.measured_v, "the point brings a v of its own"
    explorer.snap(1)
    assert "gamma = 8, beyond the 4 shown; give max_gamma=8" in words_of(explorer.message.value)


def test_break_even_and_best_gamma_are_drawn():
    explorer = SpeedupExplorer(alpha=0.8, c=0.05)
    assert explorer.figures.value.count('class="swb-even"') == 1 and "break-even" in words_of(explorer.figures.value)
    assert f"<title>best gamma: {explorer.view.best}" in explorer.figures.value
    explorer.alpha, explorer.c = 0.1, 1.0
    assert "<title>best gamma" not in explorer.figures.value


def test_labels_are_escaped_and_made_where_there_are_none():
    explorer = SpeedupExplorer(POINTS)
    assert "<script>" not in explorer.to_html() and "&lt;script&gt;" in explorer.to_html()
    rows = [{"proposer": "ngram", "bucket": "code", "alpha_counts": 0.4, "gamma": 4, "speedup_measured": None}]
    rows.append({"proposer": "tree", "bucket": "code", "alpha_counts": None, "gamma": 4})
    assert SpeedupExplorer(rows).points["label"].tolist() == ["ngram, code, gamma 4"]
    assert SpeedupExplorer([{"alpha": 0.4, "gamma": 2}]).points["label"].tolist() == ["gamma 2"]


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        (pd.DataFrame({"gamma": [4]}), "The measured points have no column &#x27;alpha&#x27;; they have gamma."),
        ([{"alpha": 1.4, "gamma": 4}], "Alpha is 1.4; it is a probability"),
        ([{"alpha": 0.4, "gamma": 0}], "Gamma is 0; it is a number of guesses"),
        ([{"alpha": 0.4, "gamma": 2, "c": "cheap"}], "something that is no number"),
    ],
)
def test_a_table_that_cannot_be_read_is_told_in_the_widget(points, sentence):
    explorer = SpeedupExplorer(points)
    assert sentence in explorer.message.value and explorer.points.empty and circles(explorer) == [0, 0, 0]
    explorer.show(POINTS)
    assert explorer.message.value == "" and len(explorer.points) == 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: SpeedupExplorer(alpha=1.5), "alpha is 1.5; it must be from 0 to 1"),
        (lambda: SpeedupExplorer(gamma=17), "gamma is 17; it must be from 1 to 16"),
        (lambda: SpeedupExplorer(c=-0.1), "c is -0.1; it must be from 0 to 5"),
        (lambda: SpeedupExplorer(verify_costs=[1.0]), "max_gamma is 0; the surface needs a gamma of at least 1"),
        (lambda: SpeedupExplorer(verify_costs=[1.0, 0.0]), "verify_costs is 0; it is a cost"),
        (lambda: SpeedupExplorer(measured_v=True), "without a measured table; give verify_costs"),
        (lambda: SpeedupExplorer(POINTS).snap(3), "there is no point 3; there are 3"),
        (lambda: SpeedupExplorer().figure("pie"), "there is no figure 'pie'; choose surface, gamma or alpha"),
    ],
)
def test_a_setting_out_of_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_the_figures_for_print_show_the_same():
    explorer = SpeedupExplorer(POINTS, alpha=0.8, c=0.05)
    surface, over_gamma, over_alpha = (explorer.figure(name) for name in ("surface", "gamma", "alpha"))
    grid = np.array(surface.data[0].customdata)
    assert grid.shape == (16, 25) and grid[3, 12] == pytest.approx(explorer.costs.speedup(0.5, 4))
    assert surface.data[1].name == "break-even" and surface.data[1].line.width > surface.data[2].line.width
    ideal, line, points = over_gamma.data
    assert line.y[0] == 1 and line.y[4] == pytest.approx(explorer.speedup)
    assert ideal.y[4] == pytest.approx(theory.expected_tokens(0.8, 4))
    assert list(points.x) == [4, 8] and over_alpha.data[2].x[0] == 0.71


def test_it_needs_no_torch():
    code = "import sys, specworkbench as swb; swb.widgets.SpeedupExplorer(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_recorded_run_gives_the_points_and_where_the_sliders_stand():
    trace = spoken()
    explorer = SpeedupExplorer.of(trace, quantity="tokens")
    parts = analysis.by_bucket(trace)
    assert list(explorer.points["label"]) == list(parts)
    assert explorer.points["block_efficiency"].tolist() == [analysis.block_efficiency(p).value for p in parts.values()]
    assert (explorer.alpha, explorer.gamma) == (analysis.alpha_counts(trace).value, trace.gamma)
    verify = 1 + explorer.v * trace.gamma
    assert verify == pytest.approx(max(1.0, analysis.verify_cost(trace, trace.gamma + 1).value))
    assert explorer.c == pytest.approx(analysis.draft_cost(trace).value)


def test_a_run_without_a_plain_round_leaves_the_costs_where_they_were():
    trace = spoken()
    trace = replace(trace, rounds=trace.rounds[trace.rounds["target_positions"] > 1])
    explorer = SpeedupExplorer.of(trace, c=0.3)
    assert (explorer.c, explorer.v, explorer.overhead) == (0.3, START["v"], START["overhead"])
    assert explorer.gamma == trace.gamma and len(explorer.points)
