"""Over seeds: the sampled test named for a mutant rejects it every time, and correct code is hardly ever rejected.

The fast tests take a few seeds of a few mutants. The slow ones (`make test-statistics`) take 200 seeds of every mutant
that sampling can see and 1,000 runs of the null controls, in as many processes as there are cores, and print what they
found.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

import numpy as np
import pytest
import torch

from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS
from specworkbench.equivalence.power import OF_OUTPUTS, OF_ROWS
from tests.equivalence.power_runs import LEVEL, NAMED, alarm, needed, seen_by

SEEDS = 200
NULL_RUNS = 1000
MOST_FALSE_ALARMS = 5
QUICK = ("resample_from_target", "bonus_from_wrong_row", "penalties_frozen", "tree_corrected_from_target")


@pytest.fixture(scope="module")
def pool():
    one_thread = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), **one_thread) as processes:
        yield processes


@pytest.mark.parametrize("name", QUICK)
def test_the_named_test_rejects_the_mutant(name):
    assert None not in [needed(name, seed) for seed in (0, 1)]


@pytest.mark.parametrize("control", NULL_CONTROLS, ids=lambda control: control.name)
def test_the_family_does_not_reject_a_null_control(control):
    assert not alarm(control.name, 0)


def test_a_mutant_that_sampling_cannot_see_names_what_can():
    unseen = [mutant for mutant in MUTANTS if not mutant.sampled]
    assert unseen and all({"contracts", "forced uniforms"} & set(mutant.caught_by) for mutant in unseen)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", NAMED)
def test_the_named_test_rejects_the_mutant_on_every_seed(name, pool):
    found = list(pool.map(needed, repeat(name, SEEDS), range(SEEDS)))
    caught = sorted(tokens for tokens in found if tokens is not None)
    quantiles = np.quantile(caught, [0.5, 0.9, 1.0]).round().astype(int) if caught else []
    print(f"{name}: {NAMED[name]} {len(caught)}/{SEEDS}, tokens to decide (median, 90 %, most): {list(quantiles)}")
    assert [seed for seed, tokens in enumerate(found) if tokens is None] == []


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_at_most_a_few_of_a_thousand_null_runs_are_false_alarms(pool):
    names = [NULL_CONTROLS[run % len(NULL_CONTROLS)].name for run in range(NULL_RUNS)]
    alarms = list(pool.map(alarm, names, range(NULL_RUNS), chunksize=8))
    print(f"null controls: {sum(alarms)} false alarms in {NULL_RUNS} runs at level {LEVEL:g}")
    assert sum(alarms) <= MOST_FALSE_ALARMS


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_how_often_the_other_tests_see_a_mutant(pool):
    """Prints, and demands only that a test said to be blind to a mutant is: it must not see what it cannot."""
    seeds, blind = 8, []
    for mutant in MUTANTS:
        found = list(pool.map(seen_by, repeat(mutant.name, seeds), range(seeds)))
        shares = {test: sum(test in each for each in found) / seeds for test in (*OF_ROWS, *OF_OUTPUTS)}
        print(f"{mutant.name}: " + ", ".join(f"{test} {share:.2f}" for test, share in shares.items()))
        blind += [(mutant.name, test) for test, share in shares.items() if test in mutant.blind and share > 0.5]
    assert blind == []
