"""`Running`: what panels that decode have in common: Run and Stop, a line that says what goes on, a thread, saving."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from pathlib import Path
from time import monotonic
from typing import Any

import ipywidgets as widgets

from specworkbench.errors import InputError
from specworkbench.trace import Trace, save_trace
from specworkbench.widgets.explorer import sentence_html, sentence_of
from specworkbench.widgets.page_repairs import live_text

_REFRESH_SECONDS = 0.1
_INK = "color: var(--jp-ui-font-color1, inherit)"


class Running(widgets.VBox):
    """A panel whose work runs in a thread, so that Stop is heard; `wait()` waits for it.

    A panel of this kind says in `_begin` what to do, and asks `stopping` after each round; it puts `run_button`,
    `stop_button`, `status` (what goes on, at most ten times a second), `message` (what went wrong) and `voice` (what is
    told to those who hear the page, and not seen) where they suit. An error becomes a sentence, and the panel stays
    usable.
    """

    def __init__(self, **options: Any):
        self._stop, self._thread, self._said, self._kept = threading.Event(), None, 0.0, None
        self.run_button = widgets.Button(description="Run", icon="play", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.status, self.message, self.voice = widgets.HTML(), widgets.HTML(), live_text(hidden=True)
        super().__init__(**options)
        self.run_button.on_click(lambda _button: self.run())
        self.stop_button.on_click(lambda _button: self.stop())

    def run(self) -> None:
        """Start in a thread; does nothing while one runs."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop.clear()
        self.say("")
        try:
            work = self._begin()
        except InputError as error:
            self.say(sentence_of(error))
            return
        self._busy(True)
        self._thread = threading.Thread(target=self._work, args=(work,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the round that is running; what was decoded by then is kept."""
        self._stop.set()
        self.report("stopping", always=True)

    @property
    def stopping(self) -> bool:
        """Whether Stop was pressed."""
        return self._stop.is_set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work has ended, at most so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def say(self, text: str) -> None:
        """A sentence that stands out; empty for none."""
        self.message.value = sentence_html(text)

    def report(self, text: str, always: bool = False) -> None:
        """The line that says what goes on; left out where the last one is not old enough, unless `always`.

        Only the latter are told as well: nobody can listen to every step.
        """
        if always or monotonic() - self._said > _REFRESH_SECONDS:
            self._said = monotonic()
            self.status.value = f'<span style="{_INK}">{escape(text)}</span>'
        if always:
            self.tell(text)

    def tell(self, text: str) -> None:
        """Have those who hear the page told."""
        self.voice.value = escape(text)

    @property
    def loaded(self) -> Any:
        """The models used last (`experiments.models.Loaded`), which needs torch: it is imported here and no earlier."""
        if self._kept is None:
            from specworkbench.experiments.models import Loaded

            self._kept = Loaded()
        return self._kept

    def to_html(self) -> str:
        """What is shown, as HTML that needs neither scripts nor a kernel, for exports."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self.to_html()

    def _begin(self) -> Callable[[], None]:
        """What the thread is to do, for the settings as they stand. Raises `InputError` for settings that are none."""
        raise NotImplementedError

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.report("", always=True)
            self.say(told(error))
        finally:
            self._busy(False)

    def _busy(self, busy: bool) -> None:
        """The button that can be pressed comes first: it takes the keyboard over from the other."""
        on, off = (self.stop_button, self.run_button) if busy else (self.run_button, self.stop_button)
        on.disabled, off.disabled = False, True


def told(error: Exception) -> str:
    """An error as a sentence, with its kind where it was not foreseen."""
    known = isinstance(error, InputError | ModuleNotFoundError)
    return sentence_of(error) if known else f"{type(error).__name__}: {sentence_of(error)}"


def save_new(trace: Trace | None, name: str) -> Path:
    """Save a trace under a name that no file has; its whole path.

    Raises `InputError` where there is no trace, the name is taken or empty, or the file cannot be written.
    """
    if trace is None:
        raise InputError("there is no trace yet; press Run first")
    if not name.strip():
        raise InputError("the file has no name; type one, such as lab.trace")
    path = Path(name).expanduser()
    if path.exists():
        raise InputError(f"there is a file {str(path)!r} already; choose another name")
    save_trace(trace, path)
    return path.resolve()
