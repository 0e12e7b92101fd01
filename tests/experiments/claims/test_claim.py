"""The rule of the verdict: regions, quantifiers, several settings at once, and what has not been measured."""

import math

import numpy as np
import pytest

from specworkbench.experiments.claims.claim import (
    ERROR,
    FAILS,
    HOLDS,
    LEAST_PROMPTS,
    OPEN,
    UNMEASURED,
    Claim,
    Measured,
    Region,
    parts_of,
)
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import DRAWS

ABOVE_ONE = Region(low=1.0)
INSIDE, OUTSIDE, ACROSS = (2.0, 0.1), (0.5, 0.1), (1.0, 0.3)


def figure(centre: float, spread: float):
    """A figure with normal draws."""
    return np.r_[centre, centre + spread * np.random.default_rng(0).standard_normal(DRAWS)]


def claim(*cases, region=ABOVE_ONE, n=20, **more) -> Claim:
    """A claim whose experiment gives figures with these centres and spreads."""
    figures = {f"setting {number}": figure(*case) for number, case in enumerate(cases)}
    measured = Measured(figures, dict.fromkeys(figures, n), **{k: more.pop(k) for k in ("bar", "remark") if k in more})
    return Claim("c", "It is so.", "here", ("s",), "", "effect", region, lambda evidence: measured, **more)


def judged(*cases, **more):
    complete = more.pop("complete", True)
    return claim(*cases, **more).judge({"s": Evidence(None, None, None, complete)})


@pytest.mark.parametrize(
    ("cases", "every", "some"),
    [
        ((INSIDE,), HOLDS, HOLDS),
        ((OUTSIDE,), FAILS, FAILS),
        ((ACROSS,), OPEN, OPEN),
        ((INSIDE, INSIDE), HOLDS, HOLDS),
        ((INSIDE, ACROSS), OPEN, HOLDS),
        ((INSIDE, OUTSIDE), FAILS, HOLDS),
        ((ACROSS, OUTSIDE), FAILS, OPEN),
        ((OUTSIDE, OUTSIDE), FAILS, FAILS),
    ],
)
def test_one_setting_contradicts_every_and_supports_some(cases, every, some):
    assert judged(*cases).verdict == every
    assert judged(*cases, quantifier="some").verdict == some


def test_a_band_is_left_on_either_side():
    band = Region(1.75, 2.25)
    assert [band.verdict(*ends) for ends in ((1.8, 2.2), (2.3, 3), (1, 1.7), (1.7, 2.1))] == [HOLDS, FAILS, FAILS, OPEN]


def test_the_intervals_of_several_settings_hold_together():
    """With twenty settings on the edge, one of twenty 95 % intervals would miss it on either side."""
    one, twenty = (parts_of(claim(*[ACROSS] * count).measure(None), ABOVE_ONE) for count in (1, 20))
    assert one[1] == 1 - ERROR and math.isclose(twenty[1], 1 - ERROR / 20)
    assert twenty[0][0].low < one[0][0].low and twenty[0][0].high > one[0][0].high


@pytest.mark.parametrize("quantifier", ["every", "some"])
def test_where_nothing_is_true_a_verdict_against_the_truth_is_rare(quantifier):
    """Ten settings whose effects lie just on the wrong side: `some` may not hold, `every` may not fail on the right."""
    rng, wrong, edge = np.random.default_rng(1), 0, 1.0
    for _ in range(100):
        centres = edge + 0.1 * rng.standard_normal(10)  # the true effect is the edge itself
        found = judged(*[(centre, 0.1) for centre in centres], quantifier=quantifier)
        wrong += found.verdict == (HOLDS if quantifier == "some" else FAILS)
    assert wrong <= 10  # 5 % of 100 on one side would be 2.5 in the mean


def test_the_deciding_setting_is_the_clearest_against_it_or_the_weakest_for_it():
    assert judged(INSIDE, (0.7, 0.01), (0.5, 0.01)).part == "setting 2"
    assert judged((3.0, 0.1), (2.0, 0.1)).part == "setting 1"
    assert judged((3.0, 0.1), (2.0, 0.1), quantifier="some").part == "setting 0"


def test_few_prompts_decide_nothing():
    assert judged(INSIDE, n=LEAST_PROMPTS).verdict == HOLDS
    assert judged(INSIDE, n=LEAST_PROMPTS - 1).verdict == OPEN


def test_a_bar_keeps_from_holding_but_not_from_failing():
    held = judged(INSIDE, bar="There is no rival.")
    assert held.verdict == OPEN and "There is no rival." in held.sentence
    assert judged(OUTSIDE, bar="There is no rival.").verdict == FAILS


@pytest.mark.parametrize("quantifier", ["every", "some"])
def test_half_a_study_decides_only_what_one_setting_can(quantifier):
    """What takes all settings waits for them: that every one holds, that none does."""
    found = {case: judged(case, quantifier=quantifier, complete=False) for case in (INSIDE, OUTSIDE)}
    alone, all_of_them = (OUTSIDE, INSIDE) if quantifier == "every" else (INSIDE, OUTSIDE)
    assert found[alone].verdict == (FAILS if quantifier == "every" else HOLDS)
    assert found[all_of_them].verdict == OPEN and "The study s is not finished." in found[all_of_them].sentence


def test_without_a_figure_it_is_open_and_without_a_study_it_is_not_measured():
    nothing = judged(remark="Nothing gains.")
    assert nothing.verdict == OPEN and nothing.sentence == "Nothing gains." and nothing.effect is None
    absent = claim(INSIDE).judge({"s": None})
    assert absent.verdict == UNMEASURED and "the study s" in absent.sentence.lower()


def test_a_setting_without_a_number_is_left_out():
    assert [part.name for part in judged(INSIDE, (math.nan, 0.1)).parts] == ["setting 0"]
