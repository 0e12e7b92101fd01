"""Which test sees which implementation: the sampled tests on implementations of the toys, from one seed.

`decided_at` runs an e-process until it rejects, `p_values` gives the p-values of the tests for a fixed number of tokens
or outputs. Both are reproducible from (setup, seed): whoever wants to know how often a test rejects runs it over seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import count

import torch

from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.round import Round
from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.law import fresh_row, product_law, too_early
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.numerics import plain
from specworkbench.equivalence.racing import racing
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.setup import outputs as outputs_of
from specworkbench.equivalence.statistics import (
    acceptance_test,
    cells_test,
    law_test,
    mmd_test,
    overweight_test,
)

OF_ROWS = {"overweight": overweight_test, "acceptance": acceptance_test, "cells": cells_test}
"""Tests of a fixed number of tokens against the rows that the rule was given."""
OF_OUTPUTS = ("chi-square", "two-sample")
"""Tests of whole outputs: against the exact law, and against as many outputs of plain decoding."""


class FreshRows:
    """Target rows of each round by forwards over the whole prefix with an empty cache, under the settings that were
    asked for: rows that no fault of the loop can have touched. Sequences must come one after the other.
    """

    def __init__(self, setup: Setup):
        self._setup = setup
        self._tokens: tuple[int, ...] = ()
        self._rows: dict[tuple[int, ...], torch.Tensor] = {}

    def __call__(self, step: Round) -> torch.Tensor:
        """(n + 1, vocab) of one round."""
        decision = step.decision
        context = self._tokens if step.index else self._setup.prompt
        parents = range(-1, len(decision.proposed) - 1) if decision.parents is None else decision.parents
        prefixes = [context]
        for parent, token in zip(parents, decision.proposed, strict=True):
            prefixes.append((*prefixes[parent + 1], token))
        self._tokens = (*context, *step.emitted)
        return torch.stack([self.row(prefix) for prefix in prefixes])

    def row(self, prefix: tuple[int, ...]) -> torch.Tensor:
        """(vocab,) after a prefix; computed once."""
        if prefix not in self._rows:
            target, settings = self._setup.target, self._setup.settings
            banned = too_early(target, len(prefix) - len(self._setup.prompt), settings)
            self._rows[prefix] = fresh_row(target, prefix, settings.sampling, banned)
        return self._rows[prefix]


def evidence_of(setup: Setup, seed: int = 0) -> Iterator[Evidence]:
    """The evidence of one real sequence after another, without end."""
    monitor, streams = Monitor(setup.verifier.name), setup.streams(seed)
    for index in count():
        for step in decode_rounds(setup.start(streams, index)):
            monitor(step)
        yield monitor.take()


def decided_at(
    setup: Setup, seed: int, *, fresh: Setup | None = None, level: float = 1e-3, most: int = 20_000
) -> int | None:
    """After how many tokens the e-process rejects; None where it did not within `most`.

    fresh: the correct setup, to judge by rows from fresh forwards; otherwise by the rows that the rule was given.
    """
    rows = None if fresh is None else FreshRows(fresh)
    for process in racing(setup, level=level, seed=seed, rows=rows):
        if process.rejected or process.tokens >= most:
            return process.decided_at


def p_values(
    setup: Setup, correct: Setup, seed: int, tests: Collection[str], *, tokens: int = 1000, outputs: int = 600
) -> dict[str, float]:
    """The p-value of each test named (of `OF_ROWS` and `OF_OUTPUTS`) that applies.

    setup: the implementation; correct: the setup it was made from, which says what its output should be.
    """
    found: dict[str, float | None] = {}
    if of_rows := [name for name in tests if name in OF_ROWS]:
        evidence = first_tokens_of(evidence_of(setup, seed), tokens)
        found |= {name: OF_ROWS[name](evidence).p_value for name in of_rows}
    if set(tests) & set(OF_OUTPUTS):
        ours = outputs_of(setup, outputs, seed)
    if "chi-square" in tests:
        law = product_law(correct.target, correct.prompt, correct.settings)
        found["chi-square"] = law_test(Counter(ours), law).p_value
    if "two-sample" in tests:
        theirs = outputs_of(plain(correct), outputs, seed + 10_000)
        found["two-sample"] = mmd_test(ours, theirs, "prefix", seed=seed).p_value
    return {name: value for name, value in found.items() if value is not None}


def first_tokens_of(parts: Iterator[Evidence], tokens: int) -> Evidence:
    """So many tokens of a stream."""
    kept: list[Evidence] = []
    while sum(map(len, kept)) < tokens:
        kept.append(next(parts))
    return Evidence.concatenate(kept)[:tokens]
