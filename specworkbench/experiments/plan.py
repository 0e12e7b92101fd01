"""What a report decodes: every prompt plainly and with every proposer, and in which order."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError
from specworkbench.paths import EMBEDDED, embedded_folder, is_embedded
from specworkbench.workloads import Prompt

__all__ = ["ProposerSpec", "Configuration", "Cell", "Plan", "proposers_for", "rotated", "written"]

EMBEDDED_DRAFTS = ("embedded/draft-m", "embedded/draft-s")
DRAFT_MODEL, PLAIN = "draft_model", "none"


@dataclass(frozen=True)
class ProposerSpec:
    """A proposer as it is asked for: its name, the name of its weights (if any), its settings as (name, value).

    >>> spec = ProposerSpec.parse("ngram,max_n=3")
    >>> spec.label, dict(spec.settings)
    ('ngram,max_n=3', {'max_n': 3})
    >>> ProposerSpec.parse("draft_model:embedded/draft-s").weights
    'embedded/draft-s'
    """

    name: str
    weights: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ProposerSpec:
        """NAME[:WEIGHTS][,SETTING=VALUE...], such as draft_model:embedded/draft-m or suffix,min_prob=0.

        Raises `InputError` for any other text, and for what `of` refuses.
        """
        from specworkbench.engine.settings import split_settings

        head, settings = split_settings(text)
        name, colon, weights = (part.strip() for part in head.partition(":"))
        name, comma, rest = name.partition(",")
        if comma:
            raise InputError(f"{rest!r} in the proposer {text!r} is no setting; write it as NAME=VALUE")
        if colon and not weights:
            raise InputError(f"the proposer {text!r} names no weights after the colon; leave it out, or name some")
        spec = cls.of(name, weights or None, settings)
        if spec.weights and not spec.kind.weights:
            raise InputError(f"the proposer {name} takes no weights; leave {weights!r} out")
        return spec

    @classmethod
    def of(cls, name: str, weights: str | None = None, settings: Sequence[str] = ()) -> ProposerSpec:
        """The same from its parts, settings as NAME=VALUE; in the label they stand in the proposer's own order.

        Raises `InputError` for an unknown proposer or setting, or a value of another type.
        """
        from specworkbench.engine.proposers import proposer_named
        from specworkbench.engine.settings import parse_settings

        kind = proposer_named(name)
        given = parse_settings(kind, settings)
        return cls(name, weights, tuple((known, given[known]) for known in kind.settings() if known in given))

    @property
    def kind(self) -> Any:
        """The class of the proposer."""
        from specworkbench.engine.proposers import proposer_named

        return proposer_named(self.name)

    @property
    def label(self) -> str:
        """As it is written: its name in a report."""
        head = self.name if self.weights is None else f"{self.name}:{self.weights}"
        return ",".join([head, *(f"{name}={written(value)}" for name, value in self.settings)])

    def fitted(self, target: str) -> ProposerSpec:
        """The same with the weights that it uses for the target of that name.

        Judged here is whatever needs no loading. Raises `InputError` where weights are needed and none are named or
        there are none such, and for settings out of range of a proposer that needs neither weights nor target.
        """
        from specworkbench.engine.proposers import chosen_weights, make_proposer

        if not self.kind.weights and not self.kind.needs_target:
            make_proposer(self.name, **dict(self.settings))
        fitted = replace(self, weights=chosen_weights(self.kind, self.weights, target))
        if fitted.weights and not _may_exist(fitted.weights):
            said = f"there are no weights {fitted.weights!r} for the proposer {self.name}"
            raise InputError(f"{said}; specworkbench models lists what there is")
        return fitted


@dataclass(frozen=True)
class Configuration:
    """How a prompt is decoded: by which proposer; gamma: None for plain decoding.

    >>> Configuration(ProposerSpec("ngram"), gamma=4, temperature=0.0).name
    'ngram gamma 4 temperature 0'
    """

    proposer: ProposerSpec
    gamma: int | None
    temperature: float

    @property
    def plain(self) -> bool:
        """Whether nothing is proposed."""
        return self.proposer.name == PLAIN

    @property
    def label(self) -> str:
        """The proposer's name in a report, such as draft_model:embedded/draft-s."""
        return self.proposer.label

    @property
    def name(self) -> str:
        """All of it in words: one line in a table, or (made safe) the name of a folder."""
        gamma = "" if self.gamma is None else f" gamma {self.gamma}"
        return f"{self.label}{gamma} temperature {self.temperature:g}"


@dataclass(frozen=True)
class Cell:
    """One prompt, the `number`-th of the plan, in one configuration.

    >>> from specworkbench.workloads import Prompt
    >>> Cell(0, Prompt("mine", "text", "a b a b"), Configuration(ProposerSpec("ngram"), 4, 0.0)).prompt.id
    'mine'
    """

    number: int
    prompt: Prompt
    configuration: Configuration


@dataclass(frozen=True)
class Plan:
    """The grid of a report.

    Prompt number i is decoded with the seed `seed + i` in every configuration, so that each cell can be decoded again
    alone. fused, products, engine: see `load_model`. lenient: nobody chose the proposers, so those that do not suit the
    target are left out instead of refused. Raises `InputError` for a grid without prompts, proposers, gammas or
    temperatures.

    >>> from specworkbench.workloads import load_prompts
    >>> prompts = tuple(load_prompts("embedded", per_bucket=1))
    >>> plan = Plan("embedded", (ProposerSpec("ngram"),), prompts, gammas=(2, 4), temperatures=(0.0,))
    >>> [configuration.name for configuration in plan.configurations()]
    ['none temperature 0', 'ngram gamma 2 temperature 0', 'ngram gamma 4 temperature 0']
    >>> len(list(plan.cells()))
    9
    """

    target: str
    proposers: tuple[ProposerSpec, ...]
    prompts: tuple[Prompt, ...]
    gammas: tuple[int, ...] = (4,)
    temperatures: tuple[float, ...] = (0.0, 1.0)
    max_new_tokens: int = 96
    seed: int = 0
    chat: bool = False
    dtype: str | None = None
    device: str | None = None
    fused: bool = True
    products: bool = True
    engine: str = "eager"
    lenient: bool = False

    def __post_init__(self) -> None:
        for name in ("prompts", "proposers", "gammas", "temperatures"):
            if not getattr(self, name):
                raise InputError(f"a report needs at least one of its {name}; none is given")

    def without(self, labels: Container[str]) -> Plan:
        """The plan without the proposers of these labels."""
        return replace(self, proposers=tuple(spec for spec in self.proposers if spec.label not in labels))

    def at(self, temperature: float) -> list[Configuration]:
        """The configurations of one temperature, plain decoding first."""
        speculative = [
            Configuration(proposer, gamma, temperature)
            for proposer in dict.fromkeys(self.proposers)
            for gamma in dict.fromkeys(self.gammas)
        ]
        return [Configuration(ProposerSpec(PLAIN), None, temperature), *speculative]

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
            for temperature in rotated(temperatures, number):
                for configuration in rotated(self.at(temperature), number):
                    yield Cell(number, prompt, configuration)


def proposers_for(target: str, texts: Sequence[str] = (), drafts: Sequence[str] = ()) -> tuple[ProposerSpec, ...]:
    """The proposers that a report compares, each once: draft models of these names, then those written as `parse` says.

    Where neither is given, whatever works without being told more: for the embedded target its drafts, then every
    proposer that needs no weights, or whose default weights for this target are there. Instruments only when named.
    Raises `InputError` for what `parse` or `fitted` refuses, and for plain decoding, which is in every report.

    >>> [spec.label for spec in proposers_for("some/model")]
    ['ngram', 'suffix', 'mtp:some/model', 'random', 'layer_skip']
    >>> [spec.label for spec in proposers_for("embedded", ["ngram,max_n=3"], drafts=["embedded/draft-s"])]
    ['draft_model:embedded/draft-s', 'ngram,max_n=3']
    """
    given = [ProposerSpec.of(DRAFT_MODEL, draft) for draft in drafts] + [ProposerSpec.parse(text) for text in texts]
    specs = dict.fromkeys(spec.fitted(target) for spec in given or _default_specs(target))
    if any(spec.name == PLAIN for spec in specs):
        raise InputError(f"plain decoding ({PLAIN}) is part of every report; name the proposers to compare with it")
    return tuple(specs)


def rotated(items: list, number: int) -> list:
    """The items from place `number` on, round and round; backwards in every other turn.

    >>> rotated(["plain", "ngram", "eagle"], 1)
    ['ngram', 'eagle', 'plain']
    """
    start = number % len(items)
    turned = items[start:] + items[:start]
    return turned[::-1] if number // len(items) % 2 else turned


def written(value: Any) -> str:
    """A setting's value as `parse` reads it: true, 3, 0.1, 1,2,3.

    >>> written(True), written(3.0), written((1, 2, 3))
    ('true', '3', '1,2,3')
    """
    if isinstance(value, tuple):
        return ",".join(map(written, value))
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _default_specs(target: str) -> list[ProposerSpec]:
    from specworkbench.engine.proposers import PROPOSERS, default_weights

    specs = [ProposerSpec(DRAFT_MODEL, draft) for draft in EMBEDDED_DRAFTS if target == EMBEDDED]
    for kind in PROPOSERS.values():
        weights = default_weights(kind, target)
        if not kind.instrument and (not kind.weights or (weights and _may_exist(weights))):
            specs.append(ProposerSpec(kind.name))
    return specs


def _may_exist(weights: str) -> bool:
    """Whether there may be weights of that name: only the embedded ones and paths can be judged without a network."""
    if is_embedded(weights):
        return embedded_folder(weights) is not None
    path = Path(weights).expanduser()
    return path.exists() or not (path.is_absolute() or weights.startswith("."))
