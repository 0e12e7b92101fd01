"""The exact law rejects every wrong implementation, and no right one that merely looks odd."""

from functools import cache

import pytest

from specworkbench.equivalence.law import decode_law_memoised, first_tokens, product_law, total_variation
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS, Mutant

EXACT = 1e-12
SEEN = 1e-3
SEEDS = (0, 1)

# Mean TV of the joint law found by another enumeration, over other random pairs of the same size.
ELSEWHERE = {
    "resample_from_target": 0.16,
    "bonus_from_draft": 0.14,
    "bonus_from_wrong_row": 0.30,
    "count_as_sum": 0.15,
    "rejected_token_stays": 0.22,
    "last_accepted_lost": 0.12,
    "raw_q_after_top_k": 0.055,
    "penalties_frozen": 0.09,
    "one_uniform_for_all": 0.042,
    "uniform_reused": 0.13,
}


@cache
def distances(mutant: Mutant, seed: int) -> tuple[float, float]:
    """TV of the joint law, and of the first token's."""
    setup = mutant.bench(seed)
    expected = product_law(setup.target, setup.prompt, setup.settings)
    law = decode_law_memoised(mutant.apply(setup))
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    return total_variation(law, expected), total_variation(first_tokens(law), first_tokens(expected))


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)


@by_name(MUTANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_exact_law_rejects(mutant, seed):
    joint, first = distances(mutant, seed)
    assert joint > SEEN
    if mutant.first_token_exact:
        assert first < EXACT
    else:
        assert first > SEEN


@by_name(NULL_CONTROLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_exact_law_does_not_reject(mutant, seed):
    assert max(distances(mutant, seed)) < EXACT


@by_name([mutant for mutant in MUTANTS if mutant.name in ELSEWHERE])
def test_its_size_is_what_was_found_elsewhere(mutant):
    mean = sum(distances(mutant, seed)[0] for seed in SEEDS) / len(SEEDS)
    assert 0.4 < mean / ELSEWHERE[mutant.name] < 2.5


def test_the_table():
    """Prints what the others have found (pytest -rP)."""
    print(f"{'mutant':22} {'joint TV':>17} {'first token':>12}")
    for mutant in (*MUTANTS, *NULL_CONTROLS):
        found = [distances(mutant, seed) for seed in SEEDS]
        joint, first = " ".join(f"{pair[0]:8.2g}" for pair in found), max(pair[1] for pair in found)
        print(f"{mutant.name:22} {joint} {first:12.2g}")
    assert len({mutant.name for mutant in (*MUTANTS, *NULL_CONTROLS)}) == len(MUTANTS) + len(NULL_CONTROLS)
