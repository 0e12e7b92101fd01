"""`Mutant`: one implementation that exchanges a part of a correct `Setup`; the tests there are, and why some are blind.

A faulty part calls itself by the name of the right one that it takes the place of: nobody announces a mistake.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.loop import Sequence
from specworkbench.equivalence.choosers import Wiring
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup

TESTS = (
    "law", "contracts", "forced uniforms", "e-process", "fresh e-process", "overweight", "acceptance", "cells",
    "chi-square", "two-sample",
)  # fmt: skip
"""What a mutant is held against.

law: the exact joint law, by enumeration; contracts: the checks on a trace; forced uniforms: nothing outside the
target's support when all uniforms are 0, or just below 1; e-process, overweight, acceptance, cells: sampled tokens
against the rows that the rule was given; fresh e-process: the same against rows of a fresh forward over the whole
prefix, with the right sampling; chi-square: sampled outputs against the exact law; two-sample: sampled outputs against
those of plain decoding. Sampled tests must reject a mutant at level 0.001 from 50,000 tokens, or 20,000 outputs, of its
bench, more often than not.
"""

OF_GIVEN_ROWS = ("e-process", "overweight", "acceptance", "cells")
OF_SAMPLES = (*OF_GIVEN_ROWS, "fresh e-process", "chi-square", "two-sample")

NO_EDGE = {"forced uniforms": "on its bench the target can give all that comes of it"}
CONSISTENT = {"contracts": "the recorded numbers agree with each other and with the recorded rows"}
WRONG_ROWS = dict.fromkeys(OF_GIVEN_ROWS, "it goes by the rows that the rule was given, and those are wrong")
AT_BONUS = dict.fromkeys(("overweight", "acceptance"), "at the bonus position there is no q, and no guess to judge")
ACCEPTED_RIGHTLY = {"acceptance": "guesses are accepted as often as they should be"}
ORDER_OF_TOKENS = (
    ACCEPTED_RIGHTLY
    | {"overweight": "no corrected token lies in the overweight set, and what is accepted is right"}
    | dict.fromkeys(("e-process", "fresh e-process"), "the bias goes by the order of tokens, which no alternative does")
    | {"cells": "the bias goes by the order of tokens, not by their rank"}
)
TOO_SMALL = dict.fromkeys(OF_SAMPLES, "it is too small for so many tokens or outputs")
"""Why tests are blind, where more than one mutant has the reason: test to reason."""

Part = Literal["rule", "proposal", "loop", "uniforms", "tree"]
Bench = Callable[..., Setup]


@dataclass(frozen=True, eq=False)
class Mutant:
    """One implementation. part: what it exchanges; meaning: what it does, in a sentence; shows: where its error first
    shows; first_token_exact: whether a test of single steps, which sees the first token only, must miss it.

    contracts: the trace contracts that must fail on a trace of it; full_contracts: those that must fail besides, where
    whole rows were captured. blind: each test that cannot see it, and why. null: whether it is right, and only looks
    odd. apply: exchanges the part; bench: seed (and options of `table_setup`) to a correct setup on which it shows.
    named: the sampled test of `sampled`, where it is not the first that sees it on its bench.

    >>> from specworkbench.equivalence import MUTANTS
    >>> mutant = next(mutant for mutant in MUTANTS if mutant.name == "resample_from_target")
    >>> mutant.meaning
    'a rejected guess is replaced by a token drawn from p, not from the residual'
    >>> mutant.caught_by[0], mutant.sampled, mutant.blind["acceptance"]
    ('law', 'e-process', 'guesses are accepted as often as they should be')
    """

    name: str
    meaning: str
    part: Part
    shows: str
    apply: Callable[[Setup], Setup]
    first_token_exact: bool = False
    contracts: tuple[str, ...] = ()
    full_contracts: tuple[str, ...] = ()
    blind: Mapping[str, str] = field(default_factory=dict)
    null: bool = False
    bench: Bench = table_setup
    named: str | None = None

    @property
    def caught_by(self) -> tuple[str, ...]:
        """The tests that must reject it: all that are not blind to it, and none if it is a null control."""
        return () if self.null else tuple(test for test in TESTS if test not in self.blind)

    @property
    def sampled(self) -> str | None:
        """The sampled test that is named for it: it must reject it whatever the seed. None where sampling is blind."""
        able = (test for test in ("e-process", "fresh e-process", "chi-square") if test in self.caught_by)
        return self.named or next(able, None)


def only(reasons: Mapping[str, str], *tests: str) -> dict[str, str]:
    """The reasons of these tests alone."""
    return {test: reasons[test] for test in tests}


def of_rule(name: str, verifier: Callable[[], Verifier], shows: str, **more) -> Mutant:
    """A mutant that exchanges the rule. Its meaning is the docstring, as in all of these."""
    return Mutant(name, said(verifier), "rule", shows, lambda setup: setup.but(verifier=verifier()), **more)


def of_proposal(name: str, proposer: type[Proposer], shows: str, **more) -> Mutant:
    """A mutant that exchanges the proposer, keeping its draft."""
    apply = lambda setup: setup.but(proposer=proposer(setup.proposer.draft))  # noqa: E731
    return Mutant(name, said(proposer), "proposal", shows, apply, **more)


def of_loop(name: str, sequence: type[Sequence], shows: str, **more) -> Mutant:
    """A mutant that exchanges the decode loop."""
    return Mutant(name, said(sequence), "loop", shows, lambda setup: setup.but(sequence=sequence), **more)


def of_uniforms(name: str, wiring: Wiring, shows: str, **more) -> Mutant:
    """A mutant that exchanges which uniform a decision reads."""
    return Mutant(name, said(wiring), "uniforms", shows, lambda setup: setup.but(wiring=wiring), **more)


def said(part: object) -> str:
    """The first paragraph of its docstring, as a part of a sentence."""
    sentence = " ".join(inspect.getdoc(part).split("\n\n")[0].split()).removesuffix(".")
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]
