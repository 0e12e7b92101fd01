"""Verification rules: tensors in, tensors out. Each says whether it keeps the target's distribution."""

from __future__ import annotations

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.settings import parse_settings, split_settings
from specworkbench.engine.verifiers.block import BlockVerifier
from specworkbench.engine.verifiers.equality import EqualityVerifier
from specworkbench.engine.verifiers.greedy import GreedyVerifier
from specworkbench.engine.verifiers.lossy import EnsembleVerifier, LenientVerifier, TypicalVerifier
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.engine.verifiers.tree import TreeVerifier
from specworkbench.errors import InputError

VERIFIERS: dict[str, type[Verifier]] = {
    rule.name: rule
    for rule in (
        TokenVerifier,
        GreedyVerifier,
        TreeVerifier,
        BlockVerifier,
        EqualityVerifier,
        LenientVerifier,
        EnsembleVerifier,
        TypicalVerifier,
    )
}


def make_verifier(rule: str | None, sampling: SamplingSettings, proposer: Proposer | None = None) -> Verifier:
    """The rule by name, with settings if it has any, as NAME[,SETTING=VALUE...], such as `lenient,leniency=0.9`.

    By default `tree` for a proposer of trees, else `greedy` at temperature 0, `token` above. Raises `InputError` for an
    unknown rule or setting, for `greedy` at a temperature at which it would not be lossless, and for a rule of chains
    with a proposer of trees.

    >>> from specworkbench.engine import SamplingSettings
    >>> make_verifier(None, SamplingSettings(temperature=0)).name
    'greedy'
    >>> make_verifier("lenient,leniency=0.9", SamplingSettings()).lossless
    False
    """
    trees = proposer is not None and proposer.drafts_trees
    if rule is None:
        rule = "tree" if trees else "greedy" if sampling.greedy else "token"
    name, settings = split_settings(rule)
    if name not in VERIFIERS:
        raise InputError(f"there is no rule {name!r}; choose one of {', '.join(VERIFIERS)}")
    verifier = VERIFIERS[name](**parse_settings(VERIFIERS[name], settings))
    if verifier.greedy_only and not sampling.greedy:
        raise InputError(
            f"the rule {name} keeps the target's distribution only at temperature 0, and the temperature is "
            f"{sampling.temperature:g}; choose the rule token"
        )
    if trees:
        check_judges_trees(verifier, proposer)
    return verifier


def check_judges_trees(verifier: Verifier, proposer: Proposer) -> None:
    """Raises `InputError` where the rule judges chains only and the proposer drafts trees."""
    if not verifier.judges_trees:
        raise InputError(
            f"the rule {verifier.name} judges chains, and the proposer {proposer.name} drafts trees; "
            "choose the rule tree"
        )


__all__ = [
    "VERIFIERS",
    "BlockVerifier",
    "EnsembleVerifier",
    "EqualityVerifier",
    "GreedyVerifier",
    "LenientVerifier",
    "TokenVerifier",
    "TreeVerifier",
    "TypicalVerifier",
    "check_judges_trees",
    "make_verifier",
]
