"""Verification rules: tensors in, tensors out. Each says whether it keeps the target's distribution."""

from __future__ import annotations

from specworkbench.engine.contracts import Verifier
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers.greedy import GreedyVerifier
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.errors import InputError

VERIFIERS: dict[str, type[Verifier]] = {rule.name: rule for rule in (TokenVerifier, GreedyVerifier)}


def make_verifier(rule: str | None, sampling: SamplingSettings) -> Verifier:
    """The rule by name; by default `greedy` at temperature 0 and `token` otherwise.

    Raises `InputError` for an unknown rule, and for `greedy` at a temperature at which it would not be lossless.
    """
    if rule is None:
        rule = "greedy" if sampling.greedy else "token"
    if rule not in VERIFIERS:
        raise InputError(f"there is no rule {rule!r}; choose one of {', '.join(VERIFIERS)}")
    verifier = VERIFIERS[rule]()
    if verifier.greedy_only and not sampling.greedy:
        raise InputError(
            f"the rule {rule} keeps the target's distribution only at temperature 0, and the temperature is "
            f"{sampling.temperature:g}; choose the rule token"
        )
    return verifier


__all__ = ["VERIFIERS", "GreedyVerifier", "TokenVerifier", "make_verifier"]
