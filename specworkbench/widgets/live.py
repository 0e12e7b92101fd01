"""`LiveDecode`: decode a prompt from a small panel, stop it, look at the trace, save it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from time import monotonic
from typing import Any

import ipywidgets as widgets
import traitlets

import specworkbench
from specworkbench.errors import InputError
from specworkbench.paths import embedded_folder
from specworkbench.trace import Trace, save_trace
from specworkbench.trace.schema import STOP_REASONS
from specworkbench.widgets.explorer import Explorer, sentence_html, sentence_of
from specworkbench.widgets.tables import caption

ENTRIES = {
    "draft model, medium (embedded/draft-m)": ("draft_model", "embedded/draft-m"),
    "draft model, small (embedded/draft-s)": ("draft_model", "embedded/draft-s"),
    "EAGLE head (embedded/eagle)": ("eagle", "embedded/eagle"),
    "Medusa heads (embedded/medusa)": ("medusa", "embedded/medusa"),
    "multi-token prediction modules (embedded/mtp)": ("mtp", "embedded/mtp"),
    "tree of 16 guesses of the medium draft model": ("draft_tree", "embedded/draft-m"),
    "the target's own first layers": ("layer_skip", None),
    "n-gram lookup (prompt and output)": ("ngram", None),
    "suffix frequencies (prompt and output)": ("suffix", None),
    "none: plain decoding": ("none", None),
}
"""What the panel offers: (proposer, the name of its weights)."""

PROMPT = 'def read_lines(path):\n    """Return the lines of a text file."""\n'
_REFRESH_SECONDS = 0.1
_WIDE = {"width": "min(40em, 98%)"}
_STYLE = {"description_width": "9em"}


@dataclass(frozen=True)
class LiveSettings:
    """What the panel says when Run is pressed. draft: its weights' name, or None; the rest as in `engine.decode`."""

    prompt: str
    proposer: str
    draft: str | None
    gamma: int
    temperature: float
    seed: int
    max_new_tokens: int


def offered() -> dict[str, tuple[str, str | None]]:
    """The entries whose weights are there, in words and as (proposer, weights)."""
    return {text: entry for text, entry in ENTRIES.items() if entry[1] is None or embedded_folder(entry[1])}


class LiveDecode(widgets.VBox):
    """Controls, Run and Stop, and the explorer of the trace that came out; `trace` is that trace, None before.

    target: a model's name, or a loaded one. decode: stands in for the engine, `decode(settings, on_round)` to a
    result with `text`, `stop_reason` and `trace`; `on_round(round)` returns False once Stop was pressed. Decoding runs
    in a thread, so that Stop is heard; `wait()` waits for it.
    """

    trace = traitlets.Instance(Trace, allow_none=True)

    def __init__(
        self, target: Any = "embedded", prompt: str = PROMPT, *, decode: Callable | None = None, **options: Any
    ):
        self.target, self._decode = target, decode or self._decode_with_engine
        self._models: dict[str, Any] = {}
        self._proposers: dict[tuple[Any, str, str | None], Any] = {}
        self._stop, self._thread, self._said = threading.Event(), None, 0.0
        self._make_controls(prompt)
        self.message, self.status = widgets.HTML(), widgets.HTML()
        self.explorer = Explorer()
        self.explorer.layout.display = "none"
        row = widgets.HBox([self.run_button, self.stop_button, self.progress, self.status])
        self.save_row = widgets.HBox([self.file_name, self.save_button], layout={"display": "none"})
        super().__init__([self.controls, row, self.message, self.explorer, self.save_row], **options)
        self.run_button.on_click(lambda _button: self.run())
        self.stop_button.on_click(lambda _button: self.stop())
        self.save_button.on_click(lambda _button: self.save())

    def _make_controls(self, prompt: str) -> None:
        self.prompt = widgets.Textarea(prompt, description="prompt", rows=4, layout=_WIDE, style=_STYLE)
        self.proposer = widgets.Dropdown(options=offered(), description="proposer", layout=_WIDE, style=_STYLE)
        self.gamma = widgets.IntSlider(4, 1, 12, description="gamma", layout=_WIDE, style=_STYLE)
        self.temperature = widgets.FloatSlider(
            1.0, min=0.0, max=2.0, step=0.05, description="temperature", layout=_WIDE, style=_STYLE
        )
        self.max_new_tokens = widgets.IntSlider(64, 8, 256, 8, description="max new tokens", layout=_WIDE, style=_STYLE)
        self.seed = widgets.BoundedIntText(0, 0, 2**31 - 1, description="seed", layout={"width": "18em"}, style=_STYLE)
        self.controls = widgets.VBox(
            [self.prompt, self.proposer, self.gamma, self.temperature, self.max_new_tokens, self.seed]
        )
        self.run_button = widgets.Button(description="Run", icon="play", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.progress = widgets.IntProgress(0, 0, 1, layout={"width": "14em"})
        self.file_name = widgets.Text("live.trace", description="file", layout=_WIDE)
        self.save_button = widgets.Button(description="Save trace", icon="save")

    @property
    def settings(self) -> LiveSettings:
        """The settings as the controls stand."""
        name, draft = self.proposer.value
        return LiveSettings(
            self.prompt.value, name, draft, self.gamma.value, self.temperature.value, self.seed.value,
            self.max_new_tokens.value,
        )  # fmt: skip

    def run(self) -> None:
        """Start decoding in a thread; does nothing while one runs."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop.clear()
        self._busy(True)
        self.say("")
        self.progress.max, self.progress.value = self.settings.max_new_tokens, 0
        self._report("loading the models, then decoding", always=True)
        self._thread = threading.Thread(target=self._work, args=(self.settings,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the round that is running; what was decoded by then is kept."""
        self._stop.set()
        self._report("stopping", always=True)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until decoding has ended, at most so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def save(self) -> None:
        """Save the trace under the name in the field; an existing file is not overwritten."""
        path = Path(self.file_name.value).expanduser()
        try:
            if self.trace is None:
                raise InputError("there is no trace yet; press Run first")
            if path.exists():
                raise InputError(f"there is a file {str(path)!r} already; choose another name")
            save_trace(self.trace, path)
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        else:
            self._report(f"saved as {path.resolve()}", always=True)

    def say(self, text: str) -> None:
        """A sentence that stands out; empty for none."""
        self.message.value = sentence_html(text)

    def _work(self, settings: LiveSettings) -> None:
        try:
            result = self._decode(settings, self._on_round)
        except Exception as error:
            self._report("", always=True)
            known = isinstance(error, InputError | ModuleNotFoundError)
            self.say(sentence_of(error) if known else f"{type(error).__name__}: {sentence_of(error)}")
        else:
            self._finished(result)
        finally:
            self._busy(False)

    def _finished(self, result: Any) -> None:
        self.trace = result.trace
        rounds, tokens = len(result.trace.rounds), int(result.trace.rounds["emitted"].sum())
        if result.stop_reason != "stopped":
            self.progress.value = self.progress.max
        done = f"{tokens} tokens in {rounds} rounds, {STOP_REASONS[result.stop_reason]}"
        self._report(caption(result.trace, done), always=True)
        self.explorer.show(result.trace)
        self.explorer.layout.display = self.save_row.layout.display = None

    def _on_round(self, step: Any) -> bool:
        self.progress.value += len(step.emitted)
        self._report(f"round {step.index}: {self.progress.value} of {self.progress.max} tokens")
        return not self._stop.is_set()

    def _report(self, text: str, always: bool = False) -> None:
        """The line beside the bar, at most ten times a second."""
        if always or monotonic() - self._said > _REFRESH_SECONDS:
            self._said = monotonic()
            self.status.value = f'<span aria-live="polite">{escape(text)}</span>'

    def _busy(self, busy: bool) -> None:
        self.run_button.disabled, self.stop_button.disabled = busy, not busy

    def _decode_with_engine(self, settings: LiveSettings, on_round: Callable) -> Any:
        """Decode with the engine, which needs torch: it is imported here and no earlier."""
        engine = specworkbench.engine
        target = self._model(self.target)
        return engine.decode(
            settings.prompt,
            target=target,
            proposer=self._proposer(target, settings.proposer, settings.draft),
            gamma=settings.gamma,
            sampling=engine.SamplingSettings(temperature=settings.temperature),
            seed=settings.seed,
            max_new_tokens=settings.max_new_tokens,
            capture="top-k",
            on_round=on_round,
        )

    def _proposer(self, target: Any, name: str, draft: str | None) -> Any:
        """A proposer for this target, made once: every sequence begins by resetting it."""
        key = target, name, draft
        if key not in self._proposers:
            self._proposers[key] = specworkbench.engine.make_proposer(name, target=target, draft=draft)
        return self._proposers[key]

    def _model(self, name: Any) -> Any:
        """A model by name, loaded once; a loaded one as it is."""
        if not isinstance(name, str):
            return name
        if name not in self._models:
            self._models[name] = specworkbench.engine.load_model(name)
        return self._models[name]
