"""A field draws to scale, leaves out what is beyond its axes, and takes no text for markup."""

import re

from specworkbench.widgets.field import Field

FIELD = Field(0.0, 10.0, 0.0, 2.0)


def test_points_are_to_scale():
    assert FIELD.x(5) - FIELD.x(0) == FIELD.x(10) - FIELD.x(5) > 0
    assert FIELD.y(0) - FIELD.y(1) == FIELD.y(1) - FIELD.y(2) > 0


def test_what_is_beyond_the_axes_is_left_out_or_cut_off():
    assert FIELD.mark("circle", 11, 1, "") == FIELD.mark("circle", 1, 2.5, "") == ""
    assert FIELD.level(3, "x") == FIELD.upright(-1, "x") == FIELD.curve([(1, 1), (2, 9)], "") == ""
    assert len(re.findall(r"[\d.]+,[\d.]+", FIELD.curve([(1, 1), (2, 1.5), (3, 9)], ""))) == 2
    assert FIELD.interval(1, 0.5, 9, "x") == FIELD.interval(1, 0.5, 2, "x") != ""
    assert FIELD.interval(1, float("nan"), 1, "x") == ""


def test_text_is_escaped_and_the_picture_has_a_name():
    svg = FIELD.svg('a "b"', "<x>", "y", [FIELD.mark("star", 1, 1, "", "<t>"), FIELD.note(1, 1, "<n>")])
    assert 'aria-label="a &quot;b&quot;"' in svg and 'role="img"' in svg
    assert not any(tag in svg for tag in ("<x>", "<t>", "<n>")) and "&lt;x&gt;" in svg
