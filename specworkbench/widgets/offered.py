"""What panels offer to decode with, in words: proposers whose weights are there, rules, controllers, targets. No torch.

The engine knows more of each; these are its names, as listing them must not load it.
"""

from __future__ import annotations

from pathlib import Path

from specworkbench.paths import EMBEDDED, embedded_folder, head_kind, is_embedded, local_models, read_config
from specworkbench.trace.rule import LOSSY

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
"""With the embedded target: (proposer, the name of its weights)."""

INSTRUMENTS = {
    "instrument: accepted with a set probability": "dial",
    "instrument: guesses as the target": "oracle",
    "instrument: uniform guesses": "random",
}
ON_REQUEST = ("other_vocabulary", "parallel")
"""Proposers whose weights have to be named with any target."""

RULES = {
    "token": True, "greedy": True, "tree": True, "block": True, "equality": True, "lenient": False, "ensemble": False,
    "typical": False,
}  # fmt: skip
"""The rules of verification, and whether each is lossless."""

CONTROLLERS = {
    "constant": "always gamma",
    "heuristic": "two more after full acceptance, else one fewer",
    "confidence": "the draft stops in doubt",
    "optimal": "the best by theory, so far",
    "auto_off": "off while guessing does not pay",
    "by_batch": "by the number of sequences",
}
"""Who may choose gamma round by round, and how."""


def offered() -> dict[str, tuple[str, str | None]]:
    """The entries whose weights are there, in words and as (proposer, weights)."""
    return {text: entry for text, entry in ENTRIES.items() if entry[1] is None or embedded_folder(entry[1])}


def proposers_for(target: str) -> dict[str, str]:
    """What may guess for the target of that name, in words and as `--proposer` takes it: without weights, or with some
    that are there. Instruments come last, plain decoding is none.

    >>> proposers_for("some/model")["n-gram lookup (prompt and output)"]
    'ngram'
    """
    found = {text: _spec(*entry) for text, entry in offered().items() if entry[1] is None or target == EMBEDDED}
    found.pop("none: plain decoding")
    return (found if is_embedded(target) else _local(target) | found) | INSTRUMENTS


def targets() -> list[str]:
    """Models that are there: the embedded target, then local ones."""
    return [EMBEDDED, *(str(path) for path in _models())]


def rule_options() -> list[tuple[str, str]]:
    """(words, name) of every rule, the name empty for what suits the proposer.

    >>> rule_options()[6]
    ('lenient (lossy: the output does not follow the target)', 'lenient')
    """
    words = [(f"{name} ({'lossless' if lossless else LOSSY})", name) for name, lossless in RULES.items()]
    return [("what suits the proposer (lossless)", ""), *words]


def controller_options() -> list[tuple[str, str]]:
    """(words, name) of every controller."""
    return [(f"{name}: {how}", name) for name, how in CONTROLLERS.items()]


def _models() -> list[Path]:
    """Local models, heads left out."""
    return [path for path in local_models() if not head_kind(read_config(path))]


def _local(target: str) -> dict[str, str]:
    """Local models and heads as proposers; whether their vocabulary suits the target shows when they are loaded."""
    heads = {path: head_kind(read_config(path)) for path in local_models() if head_kind(read_config(path))}
    found = {f"draft model ({path.name})": f"draft_model:{path}" for path in _models() if str(path) != target}
    return found | {f"{kind} head ({path.name})": f"{kind}:{path}" for path, kind in heads.items()}


def _spec(name: str, weights: str | None) -> str:
    """As `--proposer` takes it: a head of the embedded family is its proposer's default, and needs no naming."""
    return name if weights in (None, f"{EMBEDDED}/{name}") else f"{name}:{weights}"
