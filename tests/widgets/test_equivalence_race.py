"""The race: lines, threshold and words without a browser or torch; runs, stops, and tells errors as sentences."""

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from specworkbench.equivalence.statistics.e_process import PROCESSES
from specworkbench.errors import InputError
from specworkbench.plots import e_race
from specworkbench.widgets import EquivalenceRace
from specworkbench.widgets.equivalence_race import EMPTY
from specworkbench.widgets.race_words import MARKS, drawn_from

HARMFUL = "<script>alert(1)</script>"
SLOTS = pd.DataFrame(
    [(1, True, 50, -1.0, HARMFUL), (2, True, 30, 9.0, HARMFUL), (3, False, 20, 0.5, HARMFUL)],
    columns=["slot", "guided", "tokens", "log_e", "best"],
)


class Process:
    """Stands in for an E-process: every step judges ten tokens and moves log E by `slope`."""

    def __init__(self, slope, level=1e-3):
        self.slope, self.level, self.tokens, self.log_e, self.decided_at = slope, level, 0, 0.0, None
        self.history = [(0, 0.0)]

    def step(self):
        self.tokens += 10
        self.log_e += self.slope
        self.history.append((self.tokens, self.log_e))
        if self.decided_at is None and self.log_e >= -math.log(self.level):
            self.decided_at = self.tokens - 3
        return self

    def by_slot(self):
        return SLOTS


def stepping(slope, steps=10_000, started=None, gate=None):
    """A factory for such processes."""

    def steps_of():
        if started is not None:
            started.append(slope)
        process = Process(slope)
        for _ in range(steps):
            process.step()
            if gate is not None:
                gate(process)
            yield process

    return steps_of


def ran(race):
    race.run_button.click()
    race.wait()
    return race


def lines_of(race):
    return {line.name: list(zip(line.x, line.y, strict=True)) for line in race.figure.data}


def test_nothing_is_claimed_before_there_is_anything():
    race = EquivalenceRace()
    assert EMPTY in race.verdict_lines.value and not race.figure.data and race.verdicts == {}
    assert race.children[0].layout.display == "none", "without implementations there is nothing to run"
    race.run()
    assert "nothing to run" in race.message.value


def test_points_from_outside_become_a_line_that_is_rejected_at_the_threshold():
    race = EquivalenceRace(level=1e-2)
    for tokens, log_e in ((0, 0.0), (100, 2.0), (200, 5.0), (300, 4.0)):
        race.add("mine", tokens, log_e)
    race.refresh()
    assert [tokens for tokens, _ in lines_of(race)["mine"]] == [0, 100, 200, 300]
    assert lines_of(race)["mine"][2][1] == pytest.approx(5 / math.log(10))
    assert race.verdicts["mine"] == "rejected after 200 tokens"
    assert race.figure.layout.shapes[0].y0 == pytest.approx(2)


def test_each_line_ends_rejected_or_with_its_budget_and_says_so():
    race = ran(EquivalenceRace({"right": stepping(-0.01), "wrong": stepping(0.5)}, budget=300))
    assert race.runners["right"].tokens == 300 and race.runners["wrong"].tokens == 140
    assert race.verdicts["wrong"].startswith("rejected after 137 tokens: position 2, where a guess is judged")
    assert race.verdicts["right"].startswith("not rejected after 300 tokens")
    assert set(lines_of(race)) == {"right", "wrong"} and race.progress.value == 1
    assert not race.run_button.disabled and race.stop_button.disabled
    for mark in ("kept", "rejected"):
        assert f">{MARKS[mark]}<" in race.verdict_lines.value


def test_what_was_not_rejected_is_said_with_what_could_have_been_seen():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    few, many = (ran(EquivalenceRace({"it": stepping(0.0)}, budget=n)).verdicts["it"] for n in (100, 10_000))
    smallest = [float(text.split("about ")[1].split()[0]) for text in (few, many)]
    assert smallest[1] == pytest.approx(smallest[0] / 10, rel=0.1)


def test_they_take_turns():
    order = []
    race = EquivalenceRace({n: stepping(0.0, 3, gate=lambda _, n=n: order.append(n)) for n in "ab"})
    ran(race)
    assert order == ["a", "b"] * 3


def test_what_became_of_each_is_told_as_it_ends():
    race, told = EquivalenceRace({"a": stepping(0.0, 2), "b": stepping(0.0, 4)}), []
    race.voice.observe(lambda change: told.append(change["new"]), "value")
    ran(race)
    assert [words.split(";")[0] for words in told] == [
        "a: not rejected after 20 tokens", "b: not rejected after 40 tokens",
    ]  # fmt: skip


def test_stop_keeps_what_was_judged_and_run_starts_anew():
    started = []
    race = EquivalenceRace({"it": stepping(0.0, started=started, gate=lambda p: p.tokens == 50 and race.stop())})
    ran(race)
    assert race.verdicts["it"].startswith("stopped, and not rejected after 50 tokens")
    assert not race.run_button.disabled and race.stop_button.disabled
    race.implementations["it"] = stepping(0.0, 2, started=started)
    assert ran(race).verdicts["it"].startswith("not rejected after 20 tokens") and len(started) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("the prompt is empty; give a word"), "broken: The prompt is empty; give a word."),
        (RuntimeError("<b>out of memory</b>"), "broken: RuntimeError: &lt;b&gt;out of memory"),
    ],
)
def test_an_error_is_a_sentence_and_the_others_go_on(error, words):
    def broken():
        yield Process(0.0).step()
        raise error

    race = ran(EquivalenceRace({"broken": broken, "right": stepping(0.0)}, budget=100))
    assert words in race.message.value and 'role="alert"' in race.message.value
    assert race.verdicts["broken"].startswith("failed:") and race.runners["right"].tokens == 100
    assert not race.run_button.disabled


def test_the_table_shows_the_positions_of_the_line_with_most_evidence_until_another_is_chosen():
    race = EquivalenceRace()
    race.show("right", [(0, 0.0), (10, -1.0)], SLOTS.assign(best="to q 0.1"))
    race.show("wrong", [(0, 0.0), (10, 12.0)], SLOTS)
    assert race.chooser.value == "wrong" and "font-weight: 700" in race.slot_table.value
    assert "<script" not in race.slot_table.value and "&lt;script" in race.slot_table.value
    assert "3.91" in race.slot_table.value, "log10 of e^9"
    race.chooser.value = "right"
    race.add("wrong", 20, 13.0)
    race.refresh()
    assert race.chooser.value == "right" and "10 % of p moved to q" in race.slot_table.value


def test_names_are_escaped_everywhere():
    race = EquivalenceRace()
    race.show(HARMFUL, [(0, 0.0), (10, 12.0)], SLOTS)
    assert "<script" not in race.to_html() and "<script" not in race.figure.data[0].name
    assert race.to_html().count("&lt;script") >= 3


def test_an_impossible_token_is_rejected_and_drawn_on_top():
    race = EquivalenceRace()
    race.show("impossible", [(0, 0.0), (7, math.inf)], ended=True)
    assert race.verdicts["impossible"] == "rejected after 7 tokens"
    (_, low), (_, high) = lines_of(race)["impossible"]
    assert low == 0 and 3 < high < 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda race: setattr(race, "level", 1.0), "level is 1.0; it must be between 0 and 1"),
        (lambda race: setattr(race, "budget", 0), "budget is 0"),
        (lambda race: race.add("it", 5, 0.0), "has 10 tokens already and is given 5"),
        (lambda race: race.add("it", 11, math.nan), "is NaN"),
    ],
)
def test_bad_input_is_told_in_a_sentence(change, words):
    race = EquivalenceRace()
    race.add("it", 10, 0.0)
    with pytest.raises(InputError, match=words):
        change(race)


def test_another_level_moves_the_threshold():
    race = EquivalenceRace()
    race.level = 1e-5
    assert race.figure.layout.shapes[0].y0 == pytest.approx(5) and "100,000" in race.figure.layout.annotations[0].text


def test_fewer_lines_replace_more():
    race = EquivalenceRace({"a": stepping(0.0, 2), "b": stepping(0.0, 2)})
    ran(race)
    del race.implementations["a"]
    assert set(lines_of(ran(race))) == {"b"}


def test_it_needs_no_torch():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
from specworkbench.widgets import EquivalenceRace
race = EquivalenceRace()
race.show("right", [(0, 0.0), (10, -1.0)])
assert race.verdicts["right"] == "not rejected after 10 tokens", race.verdicts
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_figure_tells_lines_apart_without_colour():
    table = pd.DataFrame([(name, t, 0.0) for name in "abcdefgh" for t in (0, 1)], columns=["name", "tokens", "log_e"])
    looks = [(line.marker.symbol, line.line.dash) for line in e_race(table, 1e-3).data]
    assert len(set(looks)) == 8


def test_follow_takes_an_e_process_as_it_stands():
    process = SimpleNamespace(
        tokens=25, log_e=1.5, history=[(0, 0.0), (10, 0.3)], decided_at=None, by_slot=lambda: SLOTS
    )
    race = EquivalenceRace()
    race.follow("it", process)
    assert race.runners["it"].history == [(0, 0.0), (10, 0.3), (25, 1.5)] and race.runners["it"].mark == "running"


def test_points_that_came_fast_are_there_when_it_is_shown():
    """And in the state that a page is opened with, which plotly keeps apart from the figure's."""
    race = EquivalenceRace()
    for tokens in range(1, 40):
        race.add("ours", tokens, 0.1 * tokens)
    race._repr_mimebundle_()
    assert len(race.figure.data[0].x) == len(race.figure._widget_data[0]["x"]) == 39
    assert "No race yet" not in race.verdict_lines.value


@pytest.mark.parametrize("alternative", PROCESSES)
def test_every_alternative_is_told_in_words_with_its_amount(alternative):
    amount = alternative.split()[-1]
    words = drawn_from(alternative)
    assert words != alternative and (amount in words or f"{100 * float(amount):g} %" in words)


def test_an_alternative_of_ones_own_keeps_its_name():
    assert drawn_from("my own row") == "my own row"
