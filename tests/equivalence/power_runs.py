"""Single runs of the sampled tests, by the name of a mutant and a seed, so that processes can share them out."""

from specworkbench.engine import SamplingSettings
from specworkbench.equivalence.judge import judge
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS
from specworkbench.equivalence.power import OF_OUTPUTS, OF_ROWS, decided_at, evidence_of, p_values

LEVEL = 1e-3
MOST_TOKENS = 60_000
OUTPUTS = {"eos_inside_ignored": 400, "uniform_reused": 1500, "draft_noise_reused": 3000}
"""Outputs of mutants that only a test of whole outputs sees."""
BENCHES = (0, 1, 2, 3)
"""Pairs of toy models that the seeds take in turn."""
STRONGER = {
    "floored_draft": {"vocab": 24, "sharpness": 1.0, "noise": 0.3},
    "lenient_claimed": {"noise": 2.0},
    "raw_q_after_top_k": {"draft_sampling": SamplingSettings(top_k=2), "noise": 0.5},
    "unsure_guess_dropped": {"noise": 0.5},
    "bonus_from_draft": {"noise": 3.0, "gamma": 1, "vocab": 3},
    "block_not_clamped": {"noise": 2.0, "gamma": 4},
    "penalties_frozen": {"sampling": SamplingSettings(repetition_penalty=6.0), "vocab": 4, "noise": 0.3},
    "minimum_frozen": {"noise": 0.3},
    "one_uniform_for_all": {"noise": 2.0, "gamma": 4},
    "tree_residual_forgotten": {"vocab": 3},
    "tree_wrong_row": {"gamma": 1, "noise": 3.0},
    "tree_siblings_penalised": {"sampling": SamplingSettings(repetition_penalty=8.0), "sharpness": 2.0},
}
"""Options of benches on which a small fault is larger, so that fewer tokens decide."""
SHOWS_ON = {"tree_siblings_penalised": (1,)}
"""Pairs on which a fault shows that on others hardly does."""
BY_NAME = {mutant.name: mutant for mutant in (*MUTANTS, *NULL_CONTROLS)}
NAMED = {mutant.name: mutant.sampled for mutant in MUTANTS if mutant.sampled}


def bench(name: str, seed: int, **options):
    """The correct setup for one run."""
    pairs = SHOWS_ON.get(name, BENCHES)
    return BY_NAME[name].bench(pairs[seed % len(pairs)], **options)


def needed(name: str, seed: int) -> int | None:
    """How many tokens (or outputs) the test named for a mutant took to reject it; None where it did not."""
    mutant = BY_NAME[name]
    if NAMED[name] == "chi-square":
        correct, outputs = bench(name, seed), OUTPUTS[name]
        found = p_values(mutant.apply(correct), correct, seed, ["chi-square"], outputs=outputs)
        return outputs if found["chi-square"] <= LEVEL else None
    correct = bench(name, seed, **{"length": 12, "gamma": 3} | STRONGER.get(name, {}))
    fresh = correct if NAMED[name] == "fresh e-process" else None
    return decided_at(mutant.apply(correct), seed, fresh=fresh, level=LEVEL, most=MOST_TOKENS)


def alarm(name: str, seed: int) -> bool:
    """Whether the family of tests rejects a null control."""
    control = BY_NAME[name]
    setup = control.apply(bench(name, seed, length=12, gamma=3))
    return judge(evidence_of(setup, seed), tokens=500, level=LEVEL, slots=setup.settings.gamma + 1).rejected


def seen_by(name: str, seed: int) -> list[str]:
    """The tests for a fixed number of tokens or outputs that reject a mutant."""
    mutant, found = BY_NAME[name], {}
    for tests, size in ((OF_ROWS, {"length": 12, "gamma": 3}), (OF_OUTPUTS, {})):
        correct = bench(name, seed, **size)
        found |= p_values(mutant.apply(correct), correct, seed, tests, tokens=2000, outputs=600)
    return [test for test, p_value in found.items() if p_value <= LEVEL]
