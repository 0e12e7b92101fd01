"""The playground: traits and states without a browser, and its static twin."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from specworkbench.errors import InputError
from specworkbench.plots import palette
from specworkbench.theory.one_position import SETTINGS, one_position
from specworkbench.trace import load_trace
from specworkbench.widgets import OverlapPlayground, overlap_playground
from specworkbench.widgets.tables import distribution_table, strip_rows
from tests.widgets.drawn import unpacked
from tests.widgets.overlap import FOLDER, HARMFUL, state_of
from tests.widgets.traces import first, spoken

# ---------------------------------------------------------------- Python


def test_it_opens_on_the_token_rule_and_p_comes_out():
    playground = OverlapPlayground()
    assert playground.rule == "token" and 4 <= len(playground.tokens) == len(playground.p) <= 8
    assert playground.position.emitted == pytest.approx(playground.p, abs=1e-12)
    assert 0.2 < playground.position.acceptance < 0.9, "the figure shows both parts"


def test_traits_drive_the_position():
    playground = OverlapPlayground([0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5], rule="resample from p")
    assert playground.position.tv == pytest.approx(one_position(playground.p, playground.q, "resample from p").tv)
    playground.q = playground.p
    assert playground.position.tv < 1e-12
    playground.rule, playground.settings = "lenient", {"leniency": 0.5}
    playground.q = [0.1, 0.1, 0.3, 0.5]
    expected = one_position(playground.p, playground.q, "lenient", leniency=0.5).emitted
    assert playground.position.emitted == pytest.approx(expected)
    assert playground.settings["weight"] == SETTINGS["weight"].default


def test_what_the_browser_sends_can_be_read_from_python():
    """As `set_state` receives it, of another size and all at once."""
    playground = OverlapPlayground()
    sent = {"tokens": list("abcdef"), "p": [1, 0, 0, 0, 0, 0], "q": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1], "rule": "equality"}
    playground.set_state(sent)
    assert {name: getattr(playground, name) for name in sent} == sent
    assert playground.position.acceptance == 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: setattr(it, "p", [0.5, 0.6]), "p sums to 1.1"),
        (lambda it: setattr(it, "q", [1.5, -0.5]), "it is a probability"),
        (lambda it: setattr(it, "rule", "none"), "there is no rule 'none'"),
        (lambda it: setattr(it, "settings", {"leniency": 0.0}), "leniency is 0.0; it must be from 0.01 to 1"),
        (lambda it: setattr(it, "settings", {"warmth": 1.0}), "there is no setting 'warmth'"),
        (lambda it: it.show([0.5, 0.5], [0.5, 0.5]), "have 2 tokens; the playground shows 4 to 8"),
        (lambda it: it.show([0.25] * 4, [0.2] * 5), "p has 4 tokens, q 5"),
    ],
)
def test_bad_input_is_told_in_a_sentence_and_changes_nothing(change, words):
    playground = OverlapPlayground()
    before = state_of(playground)
    with pytest.raises(InputError, match=words):
        change(playground)
    assert state_of(playground) == before


def test_presets_are_distributions_of_every_size_and_say_what_they_are():
    rows = {(entry["name"], size): pair for entry in overlap_playground.PRESETS for size, pair in entry["rows"].items()}
    assert len(rows) == 5 * 5
    acceptance = {}
    for (name, size), pair in rows.items():
        position = one_position(pair["p"], pair["q"])
        assert len(pair["p"]) == len(pair["q"]) == int(size)
        acceptance[name, size] = position.acceptance
    for size in "45678":
        assert acceptance["agree", size] > 0.9 and acceptance["disjoint", size] == 0
        assert rows["certain", size]["q"].count(1.0) == 1
        sure, flat, p = (max(rows[name, size][of]) for name, of in (("sure", "q"), ("flat", "q"), ("flat", "p")))
        assert sure > p + 0.1 and flat < p - 0.1


def test_a_recorded_position_is_shown_with_its_own_numbers():
    trace = spoken(capture="top-k")
    sequence, index, row = first(trace, "rejected")
    table = distribution_table(trace, row, 5)
    playground = OverlapPlayground.of(trace, sequence)
    assert playground.tokens == table["label"].tolist() and playground.p == pytest.approx(table["p"].tolist())
    assert playground.q == pytest.approx(table["q"].tolist())
    assert OverlapPlayground.of(trace, sequence, index).p == playground.p


def test_positions_without_q_or_without_distributions_are_refused():
    trace = spoken(capture="top-k")
    sequence, index, _ = first(trace, "bonus")
    with pytest.raises(InputError, match="nothing was proposed"):
        OverlapPlayground.of(trace, sequence, index)
    with pytest.raises(InputError, match="there is no token 9999"):
        OverlapPlayground.of(trace, sequence, 9999)
    with pytest.raises(InputError, match="record it with capture"):
        OverlapPlayground.of(spoken(capture="none"), 0)


def test_every_proposed_position_of_the_shipped_trace_fits():
    from specworkbench.paths import traces_dir

    trace = load_trace(traces_dir() / "quickstart.trace")
    rows = strip_rows(trace, 0)
    for index in rows.index[rows["outcome"].isin(["accepted", "rejected"])]:
        assert 4 <= len(OverlapPlayground.of(trace, 0, int(index)).tokens) <= 8


# ---------------------------------------------------------------- the static twin


def test_the_twin_stacks_what_comes_out_to_the_frame_of_p():
    playground = OverlapPlayground()
    html = unpacked(playground.to_html())
    emitted = html.split("<figure")[3]
    bars = [tuple(map(float, pair)) for pair in re.findall(r'y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', emitted)]
    for accepted, replaced, frame in zip(bars[::3], bars[1::3], bars[2::3], strict=True):
        assert accepted[1] + replaced[1] == pytest.approx(frame[1], abs=0.02)
        assert replaced[0] == pytest.approx(frame[0], abs=0.02) and accepted[0] == pytest.approx(
            replaced[0] + replaced[1], abs=0.02
        )
    assert "▲" not in html and "▼" not in html and "= p" in html


def test_the_twin_marks_too_much_and_too_little_by_glyph():
    playground = OverlapPlayground(rule="always accept")
    html = unpacked(playground.to_html())
    off = np.array(playground.q) - playground.p
    assert html.count("▲") == (off > 5e-4).sum() and html.count("▼") == (off < -5e-4).sum()
    assert "≠ p" in html and f"TV {playground.position.tv:.3f}" in html


def test_text_is_escaped_in_the_twin():
    html = OverlapPlayground(tokens=[HARMFUL, "&", '"', "<b>", "x"], title="<img src=x>").to_html()
    html = unpacked(html)
    assert "<script" not in html and "<img" not in html and "<b>" not in html and "&lt;script" in html


def test_the_twin_is_well_formed_and_draws_within_its_frame():
    playground = OverlapPlayground(tokens=[HARMFUL, "&", '"', "long name of a token", "x"], rule="ratio q/p")
    html = unpacked(playground.to_html())
    figures = [ElementTree.fromstring(text) for text in re.findall(r"<figure.*?</figure>", html, re.DOTALL)]
    assert len(figures) == 3
    for rect in (rect for figure in figures for rect in figure.iter("rect") if "x" in rect.attrib):
        x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 34 and x + width <= 354 and y >= 15.9 and y + height <= 196.1


def test_two_twins_on_a_page_do_not_share_names():
    playground = OverlapPlayground()
    one, other = (set(re.findall(r'id="([^"]+)"', unpacked(playground.to_html()))) for _ in range(2))
    assert len(one) == 9 and not one & other


def test_style_has_every_colour_of_the_figures_and_respects_reduced_motion():
    style = (FOLDER / "overlap_playground.css").read_text(encoding="utf-8")
    assert all(f"var(--swb-{name})" in style for name in ("target", "draft", "overlap", "residual"))
    assert all(f"--swb-{name}:" in palette.css_variables() for name in ("target", "draft", "overlap", "residual"))
    moving = style[style.index("@media (prefers-reduced-motion: no-preference)") :]
    assert style.count("transition") == moving.count("transition") == 1 and "touch-action: none" in style
