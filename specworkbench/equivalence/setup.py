"""`Setup`: everything that takes part in decoding one prompt, so that any part can be exchanged for a faulty one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.controllers import ConstantController, Controller
from specworkbench.engine.loop import DecodeSettings, Sequence, decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.rng import Streams, UniformChooser, work_dtype
from specworkbench.engine.run import Decoder
from specworkbench.equivalence.choosers import BranchingStreams, WiredStreams, Wiring, own_uniform
from specworkbench.trace import Trace


@dataclass(frozen=True)
class Setup:
    """A target, a prompt (token ids), settings, and the parts under test.

    controller: makes the one of a sequence; sequence: the class whose rounds are run; wiring: which uniform each
    decision of the rule reads; chooser: how real uniforms decide for it.

    >>> from specworkbench.engine import VERIFIERS
    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup()
    >>> setup.verifier.name, setup.but(verifier=VERIFIERS["block"]()).verifier.name
    ('token', 'block')
    """

    target: LanguageModel
    prompt: tuple[int, ...]
    settings: DecodeSettings
    proposer: Proposer
    verifier: Verifier
    controller: Callable[[], Controller] = ConstantController
    sequence: type[Sequence] = Sequence
    wiring: Wiring = own_uniform
    chooser: type[UniformChooser] = UniformChooser

    def but(self, **parts: Any) -> Setup:
        """The same setup with some parts exchanged."""
        return replace(self, **parts)

    def start(self, streams: Streams | BranchingStreams, index: int = 0) -> Sequence:
        """The prompt as a sequence that has not begun."""
        return self.sequence(
            self.target, list(self.prompt), self.proposer, self.verifier, self.settings, streams, index,
            controller=self.controller(),
        )  # fmt: skip

    def streams(self, seed: int) -> WiredStreams:
        """Real random streams, read as the wiring says."""
        return WiredStreams(seed, self.target.device, work_dtype(self.target.device), self.wiring, self.chooser)


def run(setup: Setup, streams: Streams | BranchingStreams, index: int = 0) -> tuple[int, ...]:
    """The output of one sequence through the whole decode loop.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(length=6)
    >>> run(setup, setup.streams(seed=0))
    (0, 1, 0, 1, 4, 2)
    """
    sequence = setup.start(streams, index)
    for _ in decode_rounds(sequence):
        pass
    return tuple(sequence.output)


def outputs(setup: Setup, count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """The outputs of `count` real runs, in their order."""
    streams = setup.streams(seed)
    return [run(setup, streams, index) for index in range(count)]


def sample(setup: Setup, count: int, seed: int = 0) -> Counter[tuple[int, ...]]:
    """How often each output came in `count` real runs.

    >>> from specworkbench.equivalence import table_setup
    >>> sample(table_setup(vocab=2, length=2), 200).most_common(2)
    [((1, 1), 118), ((0, 1), 62)]
    """
    return Counter(outputs(setup, count, seed))


def record(setup: Setup, sequences: int, seed: int = 0, capture: str = "none") -> Trace:
    """The trace of `sequences` real runs. Faults claim to be the rule they are faults of, as in real life.

    >>> from specworkbench.equivalence import table_setup
    >>> trace = record(table_setup(length=6), sequences=2)
    >>> len(trace.sequences), trace.manifest["rule"]["name"]
    (2, 'token')
    """
    decoder = _SetupDecoder(setup, seed, capture)
    prompt = setup.target.decode(setup.prompt)
    for _ in range(sequences):
        decoder.run(prompt)
    return decoder.trace()


class _SetupDecoder(Decoder):
    """The real `Decoder` with the parts of a setup."""

    def __init__(self, setup: Setup, seed: int, capture: str):
        super().__init__(setup.target, setup.proposer, settings=setup.settings, seed=seed, capture=capture)
        self.setup, self.verifier, self.streams = setup, setup.verifier, setup.streams(seed)

    def start(self, prompt: str) -> Sequence:
        plain = super().start(prompt)
        return self.setup.but(prompt=tuple(plain.context.tokens)).start(self.streams, plain.index)
