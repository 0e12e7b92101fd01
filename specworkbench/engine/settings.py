"""What proposers and rules have in common: a name, a description, and settings that can be written as text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from specworkbench.errors import InputError

BEFORE_SETTING = re.compile(r",(?=\s*\w+\s*=)")
"""The commas between settings; those within a value, such as 1,2,3, are none."""


class Described:
    """Something that is chosen by its name. role: what it is, for sentences; summary: what it does; paper: its source.

    Settings are the parameters of `__init__` that have a default, kept as attributes of the same name.
    """

    role: ClassVar[str]
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""

    @classmethod
    def settings(cls) -> dict[str, Any]:
        """The settings it knows, with their defaults."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {entry.name: entry.default for entry in parameters if entry.default is not inspect.Parameter.empty}


def split_settings(text: str) -> tuple[str, list[str]]:
    """NAME[,SETTING=VALUE...] as the name and its settings, NAME=VALUE each."""
    name, *settings = BEFORE_SETTING.split(text)
    return name.strip(), settings


def parse_settings(kind: type[Described], texts: Sequence[str]) -> dict[str, Any]:
    """Settings written as NAME=VALUE, each with the type of its default: 'true', '3', '0.1', '1,2,3'.

    Raises `InputError` for an unknown name or a value of another type.
    """
    given = {}
    for text in texts:
        name, _, value = text.partition("=")
        name = name.strip()
        check_settings(kind, {name: value})
        default = kind.settings()[name]
        try:
            given[name] = _parsed(value.strip(), default)
        except (ValueError, KeyError) as error:
            like = ",".join(map(str, default)) if isinstance(default, tuple) else str(default).lower()
            raise InputError(
                f"{name} of the {kind.role} {kind.name} is {value!r}; write it as its default is, {name}={like}"
            ) from error
    return given


def check_settings(kind: type[Described], settings: Mapping[str, Any]) -> None:
    """Raises `InputError` for a setting that it does not know."""
    for name in settings:
        if name not in kind.settings():
            known = ", ".join(f"{known}={value}" for known, value in kind.settings().items())
            raise InputError(f"the {kind.role} {kind.name} has no setting {name!r}; it has {known or 'none'}")


def _parsed(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
    if isinstance(default, tuple):
        kind = type(default[0]) if default else int
        return tuple(kind(part) for part in text.split(",") if part.strip())
    return type(default)(text)
