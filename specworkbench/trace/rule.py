"""A trace's rule in words, and the one place that says what it means that a rule is lossy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOSSY = "lossy: the output does not follow the target"


def is_lossy(rule: Mapping[str, Any]) -> bool:
    """Whether a rule, as a manifest or `Verifier.describe()` has it, is known not to keep the target's distribution."""
    return rule.get("lossless") is False


def rule_in_words(rule: Mapping[str, Any]) -> str:
    """Name and settings as `--rule` takes them, and whether it is lossy.

    >>> rule_in_words({"name": "lenient", "lossless": False, "settings": {"leniency": 0.5}})
    'lenient,leniency=0.5 (lossy: the output does not follow the target)'
    """
    settings = (f"{name}={value}" for name, value in (rule.get("settings") or {}).items())
    return ",".join([str(rule["name"]), *settings]) + (f" ({LOSSY})" if is_lossy(rule) else "")


def lossy_sentence(rule: Mapping[str, Any]) -> str:
    """That the rule is lossy, as a sentence; empty where it is not.

    >>> lossy_sentence({"name": "typical", "lossless": False})
    'The rule typical is lossy: the output does not follow the target.'
    """
    return f"The rule {rule['name']} is {LOSSY}." if is_lossy(rule) else ""
