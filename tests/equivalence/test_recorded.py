"""What enumeration is not needed for: faults that the contracts find in recorded traces, and that sampling sees."""

import numpy as np
import pytest
from scipy import stats

from specworkbench.equivalence.law import product_law
from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS
from specworkbench.equivalence.setup import record, sample
from specworkbench.equivalence.toys import table_setup
from specworkbench.trace import contracts

BY_NAME = {mutant.name: mutant for mutant in (*MUTANTS, *NULL_CONTROLS)}
LEVEL = 1e-3


def failed(setup, capture: str) -> set[str]:
    """Names of the contracts that a trace of 12 sequences breaks."""
    findings = contracts.run(record(setup, 12, seed=5, capture=capture))
    return {contract.name for contract, finding in findings if finding.status == "fail"}


def longer(mutant):
    """The mutant's bench with sequences of 12 tokens."""
    return mutant.bench(0, length=12, gamma=3)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_contracts_named_for_it_fail_on_its_trace_and_no_others(mutant):
    setup = longer(mutant)
    assert failed(setup, "full") == set()
    assert failed(mutant.apply(setup), "none") == set(mutant.contracts)
    assert failed(mutant.apply(setup), "full") == {*mutant.contracts, *mutant.full_contracts}


def test_a_q_rounded_to_bfloat16_is_seen_where_accept_prob_is_recomputed():
    mutant = BY_NAME["rounded_draft"]
    assert "accept_prob" in failed(mutant.apply(longer(mutant)), "none")
    assert not {"chi-square", "two-sample", "e-process"} & set(mutant.caught_by)


AS_RECORDED = [control for control in NULL_CONTROLS if control.name not in ("literal_equality", "no_bonus")]
"""Null controls but those whose verdicts are others than their flags say, which a trace shows."""


@pytest.mark.parametrize("control", AS_RECORDED, ids=lambda control: control.name)
def test_no_contract_fails_on_a_null_control(control):
    assert failed(control.apply(longer(control)), "full") == set()


def chi_square(setup, count: int, seed: int) -> float:
    """p-value of sampled outputs against the exact law; cells pooled beforehand to at least 5 expected outputs."""
    law = product_law(setup.target, setup.prompt, setup.settings)
    found = sample(setup, count, seed)
    assert found.keys() <= law.keys(), "an output that the target never gives"
    outputs = sorted(law, key=law.get)
    expected, observed = (np.array([float(table[output]) for output in outputs]) for table in (law, found))
    pooled = int(np.argmax(np.cumsum(expected) * count >= 5))
    starts = [0, *(i for i in range(pooled + 1, len(outputs)) if expected[i] * count >= 5)]
    return stats.chisquare(np.add.reduceat(observed, starts), np.add.reduceat(expected, starts) * count).pvalue


def test_sampling_sees_one_uniform_for_all_positions():
    setup = table_setup(1, vocab=3, noise=2.0)
    mutant = BY_NAME["one_uniform_for_all"]
    assert chi_square(setup, 600, seed=1) > LEVEL
    assert chi_square(mutant.apply(setup), 600, seed=1) < LEVEL
