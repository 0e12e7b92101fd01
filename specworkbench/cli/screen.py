"""What all commands share: sentences on standard error, one JSON object on standard output, text safe to show."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from specworkbench.errors import InputError

INTERRUPTED = 130
PLAIN_WIDTH = 140
"""Columns of a table where standard output is no terminal."""

_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_HARMLESS = {"\n", "\t"}


def printable(text: str) -> str:
    """The text without what a terminal would obey: control characters (as pictures) and changes of direction.

    Token text comes from a model and file names from anywhere; an escape sequence in them must not reach a terminal.
    """
    return "".join(_picture(character) for character in text)


def _picture(character: str) -> str:
    code = ord(character)
    if character in _HARMLESS:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0x80 <= code < 0xA0 or code in _BIDI else character


def say(sentence: str) -> None:
    """One sentence on standard error."""
    print(f"specworkbench: {printable(sentence)}", file=sys.stderr, flush=True)


class _Said(logging.Handler):
    """Says what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def say_what_is_logged() -> None:
    """From now on what this program logs, such as a step that is being compiled, is said on standard error."""
    logger = logging.getLogger("specworkbench")
    logger.setLevel(logging.INFO)
    if not any(isinstance(handler, _Said) for handler in logger.handlers):
        logger.addHandler(_Said())
        logger.propagate = False


def screen() -> Console:
    """Standard output for text and tables; nothing in a string is taken for markup."""
    console = Console(markup=False, emoji=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH)


@contextlib.contextmanager
def only_json(wanted: bool) -> Iterator[None]:
    """While it lasts, whatever a library prints goes to standard error, so that standard output holds one object."""
    with contextlib.redirect_stdout(sys.stderr) if wanted else contextlib.nullcontext():
        yield


def figure(value: Any, digits: int = 3, unit: str = "") -> str:
    """A number for a table; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.{digits}f}{unit}" if isinstance(value, float) else f"{value}{unit}"


def quiet_transformers() -> None:
    """transformers says only what went wrong, and draws no bars while it reads weights."""
    from specworkbench.engine.loading import quiet_transformers

    quiet_transformers()


def check_writable(path: Path, what: str) -> None:
    """Raises `InputError` where a file could not be written in the end, before work has gone into it."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir():
        raise InputError(f"cannot write {what} to {path}: it is a folder; name a file in it")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {what} to {path}: {folder} is no folder that you may write to")


class StopOnInterrupt:
    """Ctrl-C as a request: `asked` becomes true, and whoever works stops after the round at hand.

    A second Ctrl-C interrupts at once. signals: what counts as Ctrl-C. Outside the main thread, where no signal
    arrives, nothing changes.
    """

    def __init__(self, signals: Sequence[signal.Signals] = (signal.SIGINT,)) -> None:
        self.asked, self._signals = False, signals

    def __enter__(self) -> StopOnInterrupt:
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in self._signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
