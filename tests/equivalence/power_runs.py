"""Single runs of the sampled tests, by the name of a mutant and a seed, so that processes can share them out."""

from specworkbench.equivalence.judge import judge
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS
from specworkbench.equivalence.power import OF_OUTPUTS, OF_ROWS, decided_at, evidence_of, p_values

LEVEL = 1e-3
BENCHES = 4
"""Pairs of toy models that the seeds take in turn."""
MOST_TOKENS = 60_000
OUTPUTS = 1500
BY_NAME = {mutant.name: mutant for mutant in (*MUTANTS, *NULL_CONTROLS)}
NAMED = {mutant.name: mutant.sampled for mutant in MUTANTS if mutant.sampled}


def needed(name: str, seed: int) -> int | None:
    """How many tokens (or outputs) the test named for a mutant took to reject it; None where it did not."""
    mutant = BY_NAME[name]
    if NAMED[name] == "chi-square":
        correct = mutant.bench(seed % BENCHES)
        found = p_values(mutant.apply(correct), correct, seed, ["chi-square"], outputs=OUTPUTS)
        return OUTPUTS if found["chi-square"] <= LEVEL else None
    correct = mutant.bench(seed % BENCHES, length=12, gamma=3)
    fresh = correct if NAMED[name] == "fresh e-process" else None
    return decided_at(mutant.apply(correct), seed, fresh=fresh, level=LEVEL, most=MOST_TOKENS)


def alarm(name: str, seed: int) -> bool:
    """Whether the family of tests rejects a null control."""
    control = BY_NAME[name]
    setup = control.apply(control.bench(seed % BENCHES, length=12, gamma=3))
    return judge(evidence_of(setup, seed), tokens=500, level=LEVEL, slots=setup.settings.gamma + 1).rejected


def seen_by(name: str, seed: int) -> list[str]:
    """The tests for a fixed number of tokens or outputs that reject a mutant."""
    mutant, found = BY_NAME[name], {}
    for tests, size in ((OF_ROWS, {"length": 12, "gamma": 3}), (OF_OUTPUTS, {})):
        correct = mutant.bench(seed % BENCHES, **size)
        found |= p_values(mutant.apply(correct), correct, seed, tests, tokens=2000, outputs=600)
    return [test for test, p_value in found.items() if p_value <= LEVEL]
