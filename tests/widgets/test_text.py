"""Tokens and numbers can be read: nothing hides, nothing is rounded into a falsehood."""

import math

import pytest

from specworkbench.widgets.text import distinct, number, quoted, spoken, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", "·the"),
        ("\n\n", "⏎⏎"),
        ("\tx\r", "→x␍"),
        ("", "∅"),
        ("plain", "plain"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\x00", "⟨U+0000⟩"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u0301", "◌\u0301"),
        ("\ud800", "⟨U+D800⟩"),
        ("汉字", "汉字"),
    ],
)
def test_every_character_is_visible(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "heard"),
    [("    ", "4 spaces"), ("\n", "newline"), ("\n\n  \t", "2 newlines, 2 spaces, tab"), (" x", "·x"), ("", "∅")],
)
def test_marks_alone_are_told_in_words(text, heard):
    assert spoken(text) == heard


def test_quoted_text_shows_its_spaces():
    assert quoted(" x") == "“·x”"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.4137, "0.41"),
        (0.05, "0.050"),
        (0.00317, "0.0032"),
        (3.2e-7, "3.2e-7"),
        (0.99996, "0.99996"),
        (1.0, "1"),
        (0.0, "0"),
        (math.nan, "unknown"),
        (None, "unknown"),
    ],
)
def test_numbers_keep_their_meaning(value, shown):
    assert number(value) == shown


def test_two_numbers_are_told_apart_by_as_many_digits_as_it_takes():
    assert distinct(0.5612, 0.5641) == ("0.561", "0.564")
    assert distinct(0.25, 0.75) == ("0.25", "0.75")
    assert distinct(0.3, 0.3) == ("0.30", "0.30")
