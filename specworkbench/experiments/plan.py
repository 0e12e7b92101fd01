"""What a report decodes: every prompt plainly and with every proposer, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specworkbench.errors import InputError
from specworkbench.workloads import Prompt

EMBEDDED = "embedded"
EMBEDDED_DRAFTS = ("embedded/draft-m", "embedded/draft-s")
PLAIN = "none"


@dataclass(frozen=True)
class Configuration:
    """How a prompt is decoded. proposer: none, ngram or draft_model; draft: its model; gamma: None for none."""

    proposer: str
    draft: str | None
    gamma: int | None
    temperature: float

    @property
    def label(self) -> str:
        """The proposer's name in a report, such as draft_model:embedded/draft-s."""
        return self.proposer if self.draft is None else f"{self.proposer}:{self.draft}"

    @property
    def name(self) -> str:
        """All of it in words: one line in a table, or (made safe) the name of a folder."""
        gamma = "" if self.gamma is None else f" gamma {self.gamma}"
        return f"{self.label}{gamma} temperature {self.temperature:g}"


@dataclass(frozen=True)
class Cell:
    """One prompt, the `number`-th of the plan, in one configuration."""

    number: int
    prompt: Prompt
    configuration: Configuration


@dataclass(frozen=True)
class Plan:
    """The grid of a report.

    Prompt number i is decoded with the seed `seed + i` in every configuration, so that each cell can be decoded again
    alone. Raises `InputError` for a grid without prompts, gammas or temperatures.
    """

    target: str
    drafts: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    gammas: tuple[int, ...] = (4,)
    temperatures: tuple[float, ...] = (0.0, 1.0)
    max_new_tokens: int = 96
    seed: int = 0
    chat: bool = False
    dtype: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        for name in ("prompts", "gammas", "temperatures"):
            if not getattr(self, name):
                raise InputError(f"a report needs at least one of its {name}; none is given")

    def at(self, temperature: float) -> list[Configuration]:
        """The configurations of one temperature, plain decoding first."""
        drafts = [("draft_model", draft) for draft in self.drafts]
        speculative = [
            Configuration(proposer, draft, gamma, temperature)
            for proposer, draft in [*drafts, ("ngram", None)]
            for gamma in dict.fromkeys(self.gammas)
        ]
        return [Configuration(PLAIN, None, None, temperature), *speculative]

    def configurations(self) -> list[Configuration]:
        """Every configuration, by temperature."""
        return [
            configuration for temperature in dict.fromkeys(self.temperatures) for configuration in self.at(temperature)
        ]

    def cells(self) -> Iterator[Cell]:
        """Every prompt in every configuration, prompt by prompt.

        Who comes first rotates from prompt to prompt, and the direction alternates, so that a drift of the machine
        hits all alike.
        """
        temperatures = list(dict.fromkeys(self.temperatures))
        for number, prompt in enumerate(self.prompts):
            for temperature in _rotated(temperatures, number):
                for configuration in _rotated(self.at(temperature), number):
                    yield Cell(number, prompt, configuration)


def drafts_for(target: str, drafts: list[str] | None) -> tuple[str, ...]:
    """The drafts given, each once; the embedded ones for the embedded target where none is given."""
    return tuple(dict.fromkeys(drafts or (EMBEDDED_DRAFTS if target == EMBEDDED else ())))


def _rotated(items: list, number: int) -> list:
    """The items from place `number` on, round and round; backwards in every other turn."""
    start = number % len(items)
    rotated = items[start:] + items[:start]
    return rotated[::-1] if number // len(items) % 2 else rotated
