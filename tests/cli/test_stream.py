"""Text on a terminal: outcomes told apart, characters whole, nothing that a token says is obeyed."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from specworkbench.cli.screen import printable
from specworkbench.cli.stream import STYLES, Stream, TokenText, outcomes

PIECES = [b"ab", "é".encode()[:1], "é".encode()[1:], b"[bold]", b"\x1b]0;title\x07", b"\t<", "长".encode()]


def decode(tokens):
    return b"".join(PIECES[token] for token in tokens).decode("utf-8", errors="replace")


def step(emitted, accepted, proposed):
    drawn = "plain" if not proposed else "bonus" if accepted == proposed else "corrected"
    decision = SimpleNamespace(accepted=accepted, emitted=len(emitted), outcome=drawn)
    return SimpleNamespace(emitted=emitted, decision=decision)


def shown(steps, **options):
    console = Console(file=io.StringIO(), markup=False, emoji=False, highlight=False, width=20, **options)
    stream = Stream(console, decode)
    for one in steps:
        stream.show(one)
    stream.close()
    return console.file.getvalue()


def test_a_character_of_several_tokens_appears_once_it_is_whole():
    text = TokenText(decode)
    assert [text.add(token) for token in (0, 1, 2, 6)] == ["ab", "", "é", "长"]
    assert text.rest() == ""


def test_a_character_cut_by_the_end_is_not_lost():
    text = TokenText(decode)
    assert [text.add(token) for token in (0, 1)] == ["ab", ""] and text.rest() == "\ufffd"


@pytest.mark.parametrize(
    "accepted, proposed, emitted, expected",
    [
        (2, 2, 3, ["accepted", "accepted", "bonus"]),
        (1, 2, 2, ["accepted", "corrected"]),
        (2, 2, 1, ["accepted"]),
        (0, 0, 1, ["plain"]),
    ],
)
def test_outcomes_are_those_of_the_tokens_that_were_emitted(accepted, proposed, emitted, expected):
    assert outcomes(step([0] * emitted, accepted, proposed)) == expected


def test_off_a_terminal_the_text_is_the_text():
    tokens = [0, 3, 4, 5, 1, 2, 6]
    assert shown([step(tokens[:3], 2, 4), step(tokens[3:], 4, 6)]) == decode(tokens) + "\n"


def test_on_a_terminal_outcomes_differ_and_are_explained():
    out = shown([step([0, 0], 1, 2), step([0, 0], 1, 1), step([0], 0, 0)], force_terminal=True, color_system="standard")
    assert len({out.split("ab")[i] for i in range(2)}) == 2
    for kind in STYLES:
        assert kind in out
    assert len({str(style) for style in STYLES.values()}) == len(STYLES)


def test_on_a_terminal_markup_stays_text_and_escapes_are_shown_not_sent():
    out = shown([step([3, 4, 5], 2, 4)], force_terminal=True, color_system=None)
    assert "[bold]␛]0;title␇\t<" in out and "\x1b" not in out and "\x07" not in out


def test_a_long_line_is_not_broken():
    assert "ab" * 40 in shown([step([0], 0, 0)] * 40, force_terminal=True, color_system=None)


def test_printable_keeps_text_and_pictures_controls():
    assert printable("a\nb\té长🙂\u200d") == "a\nb\té长🙂\u200d"
    assert printable("\x00\x1b\x7f\x9b\u202e\r") == "␀␛␡��␍"
