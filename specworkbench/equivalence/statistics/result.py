"""`Test`: what a test of the sampler found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Test:
    """One test of the hypothesis that every token follows the target's row.

    statistic, p_value: None where the test does not apply; tokens: how many (or how many sequences) it used; detail:
    a sentence, the reason where it does not apply; applies: whether it could be made at all.

    >>> Test.without("overweight", "no token had a row q").applies
    False
    """

    name: str
    statistic: float | None
    p_value: float | None
    tokens: int
    detail: str
    applies: bool = True

    __test__ = False  # not a test case of pytest's

    @classmethod
    def without(cls, name: str, reason: str, tokens: int = 0) -> Test:
        """A test that does not apply, and why."""
        return cls(name, None, None, tokens, reason, applies=False)
