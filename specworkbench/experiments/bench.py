"""Decodes a plan. Every finished cell is on disk before the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from specworkbench.engine import Decoder, DecodeSettings, Proposer, SamplingSettings, load_model
from specworkbench.errors import InputError
from specworkbench.experiments.collector import little_garbage
from specworkbench.experiments.files import file_name
from specworkbench.experiments.models import Models
from specworkbench.experiments.plan import Cell, Configuration, Plan
from specworkbench.experiments.rows import Traces
from specworkbench.trace import save_trace

__all__ = ["Bench"]

WARM_UP_TOKENS = 16

Stop = Callable[[], bool]
"""Asked after each round; yes ends the decoding there."""


class Bench:
    """The models of a plan, and what has been decoded of it.

    out: the folder below which `traces/CONFIGURATION/PROMPT.trace` are written. left_out: of a lenient plan, the
    proposers that do not suit the target, and why. Raises `InputError` where a model cannot be loaded, settings do not
    fit together, a proposer does not suit the target, or a prompt does not fit.

    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> plan = Plan("embedded", (ProposerSpec("ngram"),), (Prompt("mine", "text", "a b a b"),), max_new_tokens=8)
    >>> with TemporaryDirectory() as folder:
    ...     bench = Bench(plan, Path(folder))
    ...     print(bench.run(), bench.finished, bench.planned)
    True 4 4
    """

    def __init__(self, plan: Plan, out: Path):
        self.plan, self.out = plan, out
        self.traces: Traces = {configuration: [] for configuration in plan.configurations()}
        self.files: list[Path] = []
        self._settings = {configuration: self._settings_of(configuration) for configuration in self.traces}
        for spec in plan.proposers:
            spec.fitted(plan.target)  # refuses what can be judged before anything is loaded
        self.target = load_model(
            plan.target, dtype=plan.dtype, device=plan.device, fused=plan.fused, products=plan.products,
            engine=plan.engine,
        )  # fmt: skip
        self._models = Models(self.target)
        self.left_out: dict[str, str] = {}
        self._proposers = self._made()
        self._check_prompts()

    @property
    def finished(self) -> int:
        """Cells that are decoded and saved."""
        return len(self.files)

    @property
    def planned(self) -> int:
        return len(self.plan.prompts) * len(self.traces)

    def warm_up(self, stop: Stop = lambda: False) -> None:
        """The first prompt, shortly, in every configuration; it counts nowhere."""
        for configuration, settings in self._settings.items():
            short = replace(settings, max_new_tokens=min(settings.max_new_tokens, WARM_UP_TOKENS))
            self._decoder(configuration, 0, short).run(self.plan.prompts[0].text, on_round=lambda step: not stop())

    def run(self, on_cell: Callable[[Cell], None] = lambda cell: None, stop: Stop = lambda: False) -> bool:
        """Decode what is planned; whether all of it was finished.

        on_cell: called after each finished cell. stop: asked after each round; once it says yes, or Ctrl-C arrives,
        the cell at hand is left out and all before it stay.
        """
        try:
            with little_garbage():
                for cell in self.plan.cells():
                    if not self._decode(cell, stop):
                        return False
                    on_cell(cell)
        except KeyboardInterrupt:
            return False
        return True

    def _decode(self, cell: Cell, stop: Stop) -> bool:
        """Decode and save one cell; whether it was finished."""
        decoder = self._decoder(cell.configuration, cell.number, self._settings[cell.configuration])
        prompt = cell.prompt
        with told_of(cell):
            result = decoder.run(prompt.text, id=prompt.id, bucket=prompt.bucket, on_round=lambda step: not stop())
        if result.stop_reason == "stopped":
            return False
        trace = decoder.trace()
        self.files.append(save_trace(trace, self._file(cell)))
        self.traces[cell.configuration].append(trace)
        return True

    def _decoder(self, configuration: Configuration, number: int, settings: DecodeSettings) -> Decoder:
        proposer, seed = self._proposers[configuration], self.plan.seed + number
        return Decoder(self.target, proposer, settings=settings, seed=seed, chat=self.plan.chat)

    def _file(self, cell: Cell) -> Path:
        folder = file_name(list(self.traces).index(cell.configuration), cell.configuration.name)
        return self.out / "traces" / folder / f"{file_name(cell.number, cell.prompt.id)}.trace"

    def _settings_of(self, configuration: Configuration) -> DecodeSettings:
        sampling = SamplingSettings(temperature=configuration.temperature)
        gamma = 1 if configuration.gamma is None else configuration.gamma
        return DecodeSettings(gamma=gamma, max_new_tokens=self.plan.max_new_tokens, sampling=sampling)

    def _made(self) -> dict[Configuration, Proposer]:
        """The proposers. Where nobody chose them, those that do not suit the target are left out of all there is."""
        made = {}
        for configuration in list(self.traces):
            try:
                made[configuration] = self._models.proposer(configuration.proposer)
            except InputError as error:
                if not self.plan.lenient:
                    raise
                self.left_out[configuration.label] = str(error)
                del self.traces[configuration]
        self.plan = self.plan.without(self.left_out)
        self._settings = {configuration: self._settings[configuration] for configuration in made}
        return made

    def _check_prompts(self) -> None:
        """Refuse what could not be decoded before hours have gone into the rest.

        Whether a prompt fits does not depend on the configuration, nor whether a gamma fits on the prompt.
        """
        first, *others = self._settings
        cells = [Cell(number, prompt, first) for number, prompt in enumerate(self.plan.prompts)]
        cells += [Cell(0, self.plan.prompts[0], configuration) for configuration in others]
        for cell in cells:
            with told_of(cell):
                self._decoder(cell.configuration, 0, self._settings[cell.configuration]).start(cell.prompt.text)


@contextmanager
def told_of(cell: Cell) -> Iterator[None]:
    """A refusal says which prompt it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"prompt {cell.prompt.id!r}, {cell.configuration.name}: {error}") from error
