"""The exact law rejects every wrong implementation, and no right one that merely looks odd."""

import runpy
from pathlib import Path

import pytest

from specworkbench.equivalence.forced import outside_support
from specworkbench.equivalence.law import decode_law_memoised
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS, TESTS, exact_tv, tv_table
from tests.equivalence.exact import EXACT, assert_exact

SEEN = 1e-3
LEAST = {"rounded_draft": 1e-4}
"""TV of the joint law that is far from rounding, for mutants that sampling cannot see."""
SEEDS = (0, 1)
DOCS = Path(__file__).parents[2] / "docs"

# Mean TV of the joint law found by another enumeration, over other random pairs of the same size.
ELSEWHERE = {
    "accept_always": 0.30,
    "first_unverified": 0.31,
    "inverted_ratio": 0.30,
    "accept_with_target": 0.40,
    "floored_draft": 0.053,
    "rounded_draft": 6e-4,
    "lenient_claimed": 0.13,
    "typical_claimed": 0.36,
    "argmax_verified": 0.74,
    "count_as_sum": 0.15,
    "resample_from_target": 0.16,
    "redrawn_from_draft": 0.21,
    "softmax_residual": 0.19,
    "absolute_residual": 0.16,
    "reversed_residual": 0.30,
    "unnormalised_residual": 0.21,
    "residual_from_next_row": 0.21,
    "bonus_from_draft": 0.14,
    "bonus_from_wrong_row": 0.30,
    "greedy_draft_soft_q": 0.49,
    "raw_q_after_top_k": 0.055,
    "unsure_guess_dropped": 0.19,
    "rows_shifted": 0.52,
    "top_k_on_bonus_only": 0.20,
    "min_p_on_bonus_only": 0.20,
    "temperature_on_bonus_only": 0.17,
    "nucleus_before_temperature": 0.15,
    "penalties_frozen": 0.09,
    "rejected_token_stays": 0.22,
    "last_accepted_lost": 0.12,
    "one_uniform_for_all": 0.042,
    "uniform_reused": 0.13,
}


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)


@by_name([mutant for mutant in MUTANTS if "law" in mutant.caught_by])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_exact_law_rejects(mutant, seed):
    joint, first = exact_tv(mutant, seed)
    least = LEAST.get(mutant.name, SEEN)
    assert joint > least
    assert first < EXACT if mutant.first_token_exact else first > least


@by_name([*NULL_CONTROLS, *(mutant for mutant in MUTANTS if "law" in mutant.blind)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_exact_law_does_not_reject(mutant, seed):
    assert max(exact_tv(mutant, seed)) < EXACT


@by_name({mutant.bench: mutant for mutant in MUTANTS}.values())
def test_what_it_is_a_fault_of_is_exact(mutant):
    setup = mutant.bench(0)
    assert_exact(setup, decode_law_memoised(setup))


@by_name([mutant for mutant in MUTANTS if mutant.name in ELSEWHERE])
def test_its_size_is_what_was_found_elsewhere(mutant):
    mean = sum(exact_tv(mutant, seed)[0] for seed in SEEDS) / len(SEEDS)
    assert 0.4 < mean / ELSEWHERE[mutant.name] < 2.5


@by_name((*MUTANTS, *NULL_CONTROLS))
def test_forced_uniforms_bring_out_what_the_target_never_gives(mutant):
    setup = mutant.bench(0)
    assert not outside_support(setup)
    assert bool(outside_support(mutant.apply(setup))) == ("forced uniforms" in mutant.caught_by)


@by_name(MUTANTS)
def test_it_claims_to_be_what_it_is_a_fault_of(mutant):
    setup = mutant.bench(0)
    faulty = mutant.apply(setup)
    assert faulty.verifier.describe() == setup.verifier.describe()
    assert faulty.proposer.name == setup.proposer.name
    assert faulty.settings == setup.settings


@by_name(MUTANTS)
def test_every_test_must_reject_it_or_says_why_it_cannot(mutant):
    assert mutant.caught_by
    assert {*mutant.caught_by, *mutant.blind} == set(TESTS)
    assert ("contracts" in mutant.caught_by) == bool(mutant.contracts or mutant.full_contracts)
    assert all(mutant.blind.values()) and mutant.meaning and mutant.shows


def test_names_are_unique_and_every_test_catches_something():
    assert len({mutant.name for mutant in (*MUTANTS, *NULL_CONTROLS)}) == len(MUTANTS) + len(NULL_CONTROLS)
    assert {test for mutant in MUTANTS for test in mutant.caught_by} == set(TESTS)
    assert not any(mutant.caught_by for mutant in NULL_CONTROLS)


def test_the_page_says_what_the_code_does():
    page = runpy.run_path(str(DOCS / "make_mutants.py"))["page"]
    assert (DOCS / "mutants.md").read_text(encoding="utf-8") == page(tv_table())
