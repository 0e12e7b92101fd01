"""Which test sees which implementation: all sampled tests on one implementation of the toys, from one seed.

`p_values` gives a p-value by test; a test that does not apply is not among them. A run is reproducible from (setup,
seed): whoever wants to know how often a test rejects runs it over seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

import torch

from specworkbench.engine.loop import Round, Sequence, decode_rounds
from specworkbench.engine.proposers import NoProposer
from specworkbench.engine.verifiers import TokenVerifier
from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.law import product_law
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.numerics import fresh_rows
from specworkbench.equivalence.setup import Setup, run
from specworkbench.equivalence.statistics import (
    EProcess,
    acceptance_test,
    cells_test,
    law_test,
    mmd_test,
    overweight_test,
)

STREAMED = ("e-process", "fresh e-process", "overweight", "acceptance", "cells")
SAMPLED = ("chi-square", "two-sample")


class FreshRows:
    """Target rows of each round by forwards over the whole prefix with an empty cache, under the settings that were
    asked for: rows that no fault of the loop can have touched. Sequences must come one after the other.
    """

    def __init__(self, setup: Setup):
        self._setup = setup
        self._tokens: tuple[int, ...] = ()

    def __call__(self, step: Round) -> torch.Tensor:
        """(n + 1, vocab) of one round."""
        setup, decision = self._setup, step.decision
        context = self._tokens if step.index else setup.prompt
        self._tokens = (*context, *step.emitted)
        sampling = setup.settings.sampling
        return torch.from_numpy(
            fresh_rows(context, decision.proposed, setup.target, sampling, parents=decision.parents)
        )


def p_values(
    setup: Setup, correct: Setup, seed: int, tests: Collection[str], *, tokens: int = 1000, outputs: int = 600
) -> dict[str, float]:
    """The p-value of each of the sampled tests named, on `tokens` streamed tokens or on `outputs` whole outputs.

    setup: the implementation; correct: the setup it was made from, which says what it should be. Of an e-process it is
    1 / (the largest E-value), and it stops where that is below 1e-9.
    """
    found = _streamed(setup, correct, seed, tests, tokens) if set(tests) & set(STREAMED) else {}
    if "chi-square" in tests:
        law = product_law(correct.target, correct.prompt, correct.settings)
        found["chi-square"] = law_test(Counter(_outputs(setup, seed, outputs)), law).p_value
    if "two-sample" in tests:
        plain = correct.but(proposer=NoProposer(), verifier=TokenVerifier(), sequence=Sequence)
        ours, theirs = _outputs(setup, seed, outputs), _outputs(plain, seed + 10_000, outputs)
        found["two-sample"] = mmd_test(ours, theirs, kernel="prefix", seed=seed).p_value
    return {name: value for name, value in found.items() if value is not None}


def _outputs(setup: Setup, seed: int, count: int) -> list[tuple[int, ...]]:
    streams = setup.streams(seed)
    return [run(setup, streams, index) for index in range(count)]


def _streamed(setup: Setup, correct: Setup, seed: int, tests: Collection[str], tokens: int) -> dict[str, float | None]:
    """The tests of a stream of tokens, all on the same ones."""
    monitors = {"e-process": Monitor(setup.verifier.name)}
    if "fresh e-process" in tests:
        monitors["fresh e-process"] = Monitor(setup.verifier.name, rows=FreshRows(correct))
    streams, count, index = setup.streams(seed), 0, 0
    while count < tokens:
        for step in decode_rounds(setup.start(streams, index)):
            count += len(step.emitted)
            for monitor in monitors.values():
                monitor(step)
        index += 1
    taken = {name: monitor.take()[:tokens] for name, monitor in monitors.items()}
    own = taken["e-process"]
    found = {name: _e_value(evidence, setup) for name, evidence in taken.items() if name in tests}
    fixed = {"overweight": overweight_test, "acceptance": acceptance_test, "cells": cells_test}
    return found | {name: test(own).p_value for name, test in fixed.items() if name in tests}


def _e_value(evidence: Evidence, setup: Setup) -> float:
    process = EProcess(1e-9, setup.settings.gamma + 1)
    process.update(evidence)
    return min(1.0, math.exp(-process.largest_log_e))
