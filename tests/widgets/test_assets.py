"""Styles and scripts of all widgets: one look of the focus, and no motion for who asked for less of it."""

import re
from pathlib import Path

import pytest

from specworkbench import widgets
from specworkbench.plots import palette

FOLDER = Path(widgets.__file__).parent
SHEETS, SCRIPTS = sorted(FOLDER.glob("*.css")), sorted(FOLDER.glob("*.js"))
STYLED = [member for name in widgets.__all__ if hasattr(member := getattr(widgets, name), "_css")]
MOTION = re.compile(r"\b(?:transition|animation|scroll-behavior)\b[^:;]*:\s*(?!none|auto)")
SCRIPTED_MOTION = re.compile(r"\.animate\(|behavior: *[\"']smooth")


def named(path: Path) -> str:
    return path.name


def without(sheet: str, condition: str) -> str:
    """A style sheet without the blocks of `@media (condition)`."""
    start = sheet.find(f"@media ({condition})")
    if start < 0:
        return sheet
    depth, end = 0, start
    for end in range(sheet.index("{", start), len(sheet)):
        depth += {"{": 1, "}": -1}.get(sheet[end], 0)
        if depth == 0:
            break
    return without(sheet[:start] + sheet[end + 1 :], condition)


def moves(sheet: str) -> bool:
    """Whether something would move for who asked for less motion."""
    always = without(without(sheet, "prefers-reduced-motion: no-preference"), "prefers-reduced-motion: reduce")
    return bool(MOTION.search(always)) and "(prefers-reduced-motion: reduce)" not in sheet


def test_motion_is_recognised():
    moving = ".a { transition: y 1s }"
    assert moves(moving) and moves(".a { animation-name: b }")
    assert not moves(f"@media (prefers-reduced-motion: no-preference) {{ {moving} }} .b {{ color: red }}")
    assert moves(f"@media (prefers-reduced-motion: no-preference) {{ {moving} }} .b {{ animation: c 1s }}")
    assert not moves(f"{moving} @media (prefers-reduced-motion: reduce) {{ .a {{ transition: none }} }}")


@pytest.mark.parametrize("path", SHEETS, ids=named)
def test_no_style_moves_for_who_asked_for_less_motion(path):
    assert not moves(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_no_script_moves_without_asking_for_the_systems_setting(path):
    script = path.read_text(encoding="utf-8")
    assert "prefers-reduced-motion" in script or not SCRIPTED_MOTION.search(script)


@pytest.mark.parametrize("path", SHEETS, ids=named)
def test_no_style_counts_on_the_root_of_the_page(path):
    assert ":root" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("widget", STYLED, ids=lambda widget: widget.__name__)
def test_every_widget_with_a_style_shows_the_focus_alike(widget):
    assert widget._css.startswith(palette.css_variables())
    assert ".swb :focus-visible {outline: 3px" in widget._css and "--swb-focus:" in widget._css
