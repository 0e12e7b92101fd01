"""The faults of the positive controls: each is a fault where it is used, and what it is not is why there are three."""

from functools import partial

import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.proposers import NgramProposer, NoProposer
from specworkbench.equivalence.faults import FAULTS, FaultyVerifier, control_for
from specworkbench.equivalence.law import accepted_law, decode_law_memoised, product_law, total_variation
from specworkbench.equivalence.toys import table_setup
from specworkbench.equivalence.tree_toys import tree_setup

GREEDY = SamplingSettings(temperature=0.0)
SETUPS = {
    **{rule: partial(table_setup, rule=rule) for rule in ("token", "block", "equality")},
    "certain": partial(table_setup, proposer=NgramProposer(1, 2)),
    "greedy": partial(table_setup, sampling=GREEDY, draft_sampling=SamplingSettings()),
    "tree": tree_setup,
    "plain": partial(table_setup, proposer=NoProposer()),
}


def distance(setup, fault=None):
    """Total variation of the law of its output from the target's own, with a fault or without."""
    faulty = setup if fault is None else setup.but(verifier=FaultyVerifier(setup.verifier, fault))
    return total_variation(decode_law_memoised(faulty), product_law(setup.target, setup.prompt, setup.settings))


@pytest.mark.parametrize("name", SETUPS)
def test_the_control_of_a_run_has_a_fault_and_without_it_there_is_none(name):
    setup = SETUPS[name](1)
    fault = control_for(setup.settings.sampling.greedy, name != "plain")
    assert distance(setup) < 1e-12
    assert distance(setup, fault) > 0.02


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_moves_the_law_of_drawn_chains(fault):
    assert distance(SETUPS["token"](1), fault) > 0.02


def test_a_fault_that_needs_a_residual_is_none_at_temperature_0():
    """There the residual of a rejected guess is p itself."""
    assert distance(SETUPS["greedy"](1), "resample") < 1e-12


@pytest.mark.parametrize("fault", ["accept", "resample"])
def test_a_fault_that_needs_a_guess_is_none_without_proposals(fault):
    assert distance(SETUPS["plain"](1), fault) < 1e-12


@pytest.mark.parametrize("name", ["token", "block", "certain"])
def test_to_accept_everything_accepts_every_guess(name):
    setup = SETUPS[name](1)
    law = accepted_law(setup.but(verifier=FaultyVerifier(setup.verifier, "accept")))
    assert law[-1] == pytest.approx(1.0, abs=1e-12) and accepted_law(setup)[-1] < 0.9


@pytest.mark.parametrize("fault", ["resample", "best"])
def test_faults_of_the_next_token_leave_the_accepted_length_alone(fault):
    setup = SETUPS["token"](1)
    law = accepted_law(setup.but(verifier=FaultyVerifier(setup.verifier, fault)))
    assert law == pytest.approx(accepted_law(setup), abs=1e-12)


@pytest.mark.parametrize("name", SETUPS)
@pytest.mark.parametrize("fault", FAULTS)
def test_nobody_announces_a_fault(name, fault):
    verifier = SETUPS[name](0).verifier
    faulty = FaultyVerifier(verifier, fault)
    for what in ("name", "lossless", "judges_trees"):
        assert getattr(faulty, what) == getattr(verifier, what)
