"""`Study`: the axes of a grid and the settings that all of its cells share. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from itertools import product
from typing import Any

from specworkbench.errors import InputError
from specworkbench.experiments.rows import ALL
from specworkbench.paths import EMBEDDED

DEFAULT, NONE, CONSTANT = "default", "none", "constant"

AXES: dict[str, type] = {
    "target": str, "dtype": str, "quantisation": str, "engine": str, "proposer": str, "gamma": int,
    "controller": str, "rule": str,
    "temperature": float, "top_p": float, "top_k": int, "bucket": str, "prompt_length": int, "max_new_tokens": int,
    "batch": int, "seed": int,
}  # fmt: skip
"""What a cell has one value of. The last varies fastest, so that cells of the same models come together."""

MODEL_AXES = ("target", "dtype", "quantisation", "engine")
"""What decides which models are loaded."""

WORDS = {
    "dtype": (DEFAULT, "float32", "bfloat16", "float16", "float64"),
    "quantisation": (NONE, "int8"),
    "engine": ("eager", "compiled"),
}
LEAST = {"gamma": 1, "top_k": 0, "prompt_length": 0, "max_new_tokens": 1, "batch": 1, "seed": 0, "per_bucket": 0}
IN_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class StudyCell:
    """One value of every axis, in the order of `AXES`.

    >>> Study(proposer="ngram").cells()[0].models
    ('embedded', 'default', 'none', 'eager')
    """

    target: str
    dtype: str
    quantisation: str
    engine: str
    proposer: str
    gamma: int
    controller: str
    rule: str
    temperature: float
    top_p: float
    top_k: int
    bucket: str
    prompt_length: int
    max_new_tokens: int
    batch: int
    seed: int

    @property
    def models(self) -> tuple[str, ...]:
        """What has to be loaded for it: cells of the same are decoded one after the other."""
        return tuple(getattr(self, name) for name in MODEL_AXES)


@dataclass(frozen=True)
class Study:
    """A grid: every combination of one value of each axis is a cell, its prompts decoded plainly and speculatively.

    An axis takes one value or several, each once. proposer, controller and rule: as `ProposerSpec.parse`,
    `make_controller` and `make_verifier` read them; rule and dtype "default": what suits. bucket: of the prompts, or
    "all". prompt_length: tokens that every prompt is cut or filled up to, 0 leaves them as they are (see `prompt_ids`).
    quantisation: of the target (see `load_model`); its drafts keep their weights. batch has one value today. prompts: a
    shipped set or a JSON Lines file, by default what suits each target; per_bucket: the first so many of each bucket, 0
    takes all. device: "" is the best there is. fused, products: see `load_model`. traces: whether those of each cell
    are kept. Raises `InputError` for an axis without a value, and for what no cell can be.

    >>> study = Study(proposer=["ngram", "suffix"], gamma=[2, 4], per_bucket=1)
    >>> [study.name_of(cell) for cell in study.cells()]
    ['proposer ngram, gamma 2', 'proposer ngram, gamma 4', 'proposer suffix, gamma 2', 'proposer suffix, gamma 4']
    """

    proposer: tuple[str, ...]
    target: tuple[str, ...] = (EMBEDDED,)
    dtype: tuple[str, ...] = (DEFAULT,)
    quantisation: tuple[str, ...] = (NONE,)
    engine: tuple[str, ...] = ("eager",)
    gamma: tuple[int, ...] = (4,)
    controller: tuple[str, ...] = (CONSTANT,)
    rule: tuple[str, ...] = (DEFAULT,)
    temperature: tuple[float, ...] = (1.0,)
    top_p: tuple[float, ...] = (1.0,)
    top_k: tuple[int, ...] = (0,)
    bucket: tuple[str, ...] = (ALL,)
    prompt_length: tuple[int, ...] = (0,)
    max_new_tokens: tuple[int, ...] = (64,)
    batch: tuple[int, ...] = (1,)
    seed: tuple[int, ...] = (0,)
    prompts: str = ""
    per_bucket: int = 0
    ignore_eos: bool = False
    chat: bool = False
    device: str = ""
    fused: bool = True
    products: bool = True
    traces: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            kept = _axis(field.name, given) if field.name in AXES else _setting(field.name, given)
            object.__setattr__(self, field.name, kept)
        if any(batch != 1 for batch in self.batch):
            raise InputError(f"batch is {list(self.batch)}; one sequence is decoded at a time, so it can only be 1")
        if self.chat and any(self.prompt_length):
            raise InputError(
                f"prompt_length is {list(self.prompt_length)} with chat = true; cutting would break the template: "
                "leave one of them out"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Study:
        """The study with these keys. Raises `InputError` for one that it does not know, or without its proposers."""
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), known, 1)
                meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
                raise InputError(f"there is no key {key!r}{meant}")
        if "proposer" not in values:
            raise InputError('the key proposer is missing; name at least one, such as proposer = ["ngram"]')
        return cls(**values)

    def axes(self) -> dict[str, tuple]:
        """The values of every axis, by its name."""
        return {name: getattr(self, name) for name in AXES}

    def settings(self) -> dict[str, Any]:
        """What all cells share."""
        return {name: value for name, value in asdict(self).items() if name not in AXES}

    @property
    def varying(self) -> list[str]:
        """The axes of more than one value."""
        return [name for name, values in self.axes().items() if len(values) > 1]

    def cells(self) -> list[StudyCell]:
        """Every combination, whether it can be decoded or not."""
        return [StudyCell(*values) for values in product(*self.axes().values())]

    def name_of(self, cell: StudyCell) -> str:
        """A cell in words: its value on every axis that varies."""
        return named({name: getattr(cell, name) for name in self.varying}) or "the only cell"


def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of values by axis the target, and those that are not what a study takes unless told."""
    defaults = {field.name: field.default for field in fields(Study)}
    return {name: value for name, value in values.items() if name == "target" or (value,) != defaults[name]}


def named(values: Mapping[str, Any]) -> str:
    """'gamma 4, temperature 1'"""
    return ", ".join(f"{name} {shown(value)}" for name, value in values.items())


def counted(number: int, what: str) -> str:
    """'1 cell', '4 cells'"""
    return f"{number} {what}{'' if number == 1 else 's'}"


def shown(value: Any) -> str:
    """The value of an axis as it is written."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _axis(name: str, given: Any) -> tuple:
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]
    if not values:
        raise InputError(f"{name} is an empty list; give at least one value, or leave the key out")
    return tuple(dict.fromkeys(_value(name, value, AXES[name]) for value in values))


def _setting(name: str, given: Any) -> Any:
    kind = next(type(field.default) for field in fields(Study) if field.name == name)
    return _value(name, given, kind)


def _value(name: str, value: Any, kind: type) -> Any:
    """The value as this kind. Raises `InputError` for another one, or one that is out of range."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        several = f", or a list of such, as in {name} = [...]" if name in AXES else ""
        raise InputError(f"{name} is {value!r}; it takes {IN_WORDS[kind]}{several}")
    if name in WORDS and value not in WORDS[name]:
        raise InputError(f"{name} is {value!r}; choose one of {', '.join(WORDS[name])}")
    if name in LEAST and value < LEAST[name]:
        raise InputError(f"{name} is {value}; it must be at least {LEAST[name]}")
    if name in AXES and value == "":
        raise InputError(f"{name} is an empty text; write a name, or leave the key out")
    return value
