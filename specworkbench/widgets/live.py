"""`LiveDecode`: decode a prompt from a small panel, stop it, look at the trace, save it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets
import traitlets

import specworkbench
from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.trace.schema import STOP_REASONS
from specworkbench.widgets.explorer import Explorer, prompt_html, sentence_of
from specworkbench.widgets.offered import offered
from specworkbench.widgets.page_repairs import PageRepairs
from specworkbench.widgets.running import Running, save_new
from specworkbench.widgets.tables import caption

PROMPT = 'def read_lines(path):\n    """Return the lines of a text file."""\n'
EMPTY = "Nothing decoded yet: press Run, and the tokens appear here."
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


class LiveDecode(Running):
    """Controls, Run and Stop, and the explorer of the trace that came out; `trace` is that trace, None before.

    target: a model's name, or a loaded one. decode: stands in for the engine, `decode(settings, on_round)` to a
    result with `text`, `stop_reason` and `trace`; `on_round(round)` returns False once Stop was pressed. Decoding runs
    in a thread, so that Stop is heard; `wait()` waits for it.

    >>> live = LiveDecode()
    >>> live.gamma.value = 2
    >>> live.settings.gamma
    2
    """

    trace = traitlets.Instance(Trace, allow_none=True)

    def __init__(
        self, target: Any = "embedded", prompt: str = PROMPT, *, decode: Callable | None = None, **options: Any
    ):
        super().__init__(**options)
        self.target, self._decode = target, decode or self._decode_with_engine
        self._make_controls(prompt)
        self.explorer = Explorer()
        self.explorer.layout.display = "none"
        row = widgets.HBox([self.run_button, self.stop_button, self.progress, self.status, self.voice])
        self.save_row = widgets.HBox([self.file_name, self.save_button], layout={"display": "none"})
        panels = [self.controls, row, self.message, self.explorer, self.save_row]
        self.children = [*panels, PageRepairs("Live decoding")]
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

    def save(self) -> None:
        """Save the trace under the name in the field; an existing file is not overwritten."""
        try:
            path = save_new(self.trace, self.file_name.value)
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        else:
            self.report(f"saved as {path}", always=True)

    def to_html(self) -> str:
        """Settings, and the tokens that came out, as HTML that needs neither scripts nor a kernel, for exports."""
        shown = f"<p>{self.status.value}</p>{self.explorer.to_html()}"
        if self.trace is None:
            shown = f"{prompt_html(self.prompt.value)}<p><em>{EMPTY}</em></p>"
        return f"{self.message.value}<p>{escape(in_words(self.settings))}</p>{shown}"

    def _begin(self) -> Callable[[], None]:
        settings = self.settings
        self.progress.max, self.progress.value = settings.max_new_tokens, 0
        self.report("loading the models, then decoding", always=True)
        return partial(self._decode_and_show, settings)

    def _decode_and_show(self, settings: LiveSettings) -> None:
        result = self._decode(settings, self._on_round)
        self.trace = result.trace
        rounds, tokens = len(result.trace.rounds), int(result.trace.rounds["emitted"].sum())
        if result.stop_reason != "stopped":
            self.progress.value = self.progress.max
        done = f"{tokens} tokens in {rounds} rounds, {STOP_REASONS[result.stop_reason]}"
        self.report(caption(result.trace, done), always=True)
        self.explorer.show(result.trace)
        self.explorer.layout.display = self.save_row.layout.display = None

    def _on_round(self, step: Any) -> bool:
        self.progress.value += len(step.emitted)
        self.report(f"round {step.index}: {self.progress.value} of {self.progress.max} tokens")
        return not self.stopping

    def _decode_with_engine(self, settings: LiveSettings, on_round: Callable) -> Any:
        """Decode with the engine, which needs torch: it is imported here and no earlier."""
        from specworkbench.experiments.plan import ProposerSpec

        engine = specworkbench.engine
        models = self.loaded.models(self.target)
        return engine.decode(
            settings.prompt,
            target=models.target,
            proposer=models.kept(ProposerSpec(settings.proposer, settings.draft)),
            gamma=settings.gamma,
            sampling=engine.SamplingSettings(temperature=settings.temperature),
            seed=settings.seed,
            max_new_tokens=settings.max_new_tokens,
            capture="top-k",
            on_round=on_round,
        )


def in_words(settings: LiveSettings) -> str:
    """The settings but the prompt."""
    proposer = ":".join(filter(None, [settings.proposer, settings.draft]))
    return (
        f"Proposer {proposer}, gamma {settings.gamma}, temperature {settings.temperature:g}, seed {settings.seed}, at "
        f"most {settings.max_new_tokens} new tokens."
    )
