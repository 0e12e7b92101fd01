"""The judgement: a family of tests at one level, which stops when it has decided and hides nothing it could not see."""

from functools import partial

import numpy as np
import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.proposers import NgramProposer, NoProposer
from specworkbench.equivalence.faults import FAULTS, FaultyVerifier, control_for
from specworkbench.equivalence.judge import FAMILY, judge
from specworkbench.equivalence.power import evidence_of
from specworkbench.equivalence.toys import table_setup
from specworkbench.equivalence.tree_toys import tree_setup

GREEDY = SamplingSettings(temperature=0.0)
SETUPS = {
    "token": partial(table_setup, rule="token"),
    "block": partial(table_setup, rule="block"),
    "equality": partial(table_setup, rule="equality"),
    "certain": partial(table_setup, proposer=NgramProposer(1, 2)),
    "greedy": partial(table_setup, sampling=GREEDY, draft_sampling=SamplingSettings(), rule="greedy"),
    "tree": tree_setup,
    "plain": partial(table_setup, proposer=NoProposer()),
}


def long(name, seed=3):
    return SETUPS[name](seed, vocab=6, length=24, gamma=3, noise=1.5)


def judged(setup, tokens=600, seed=0, **options):
    return judge(evidence_of(setup, seed), tokens=tokens, slots=setup.settings.gamma + 1, **options)


@pytest.mark.parametrize("name", SETUPS)
def test_correct_decoding_is_not_rejected_and_its_fault_is(name):
    setup = long(name)
    found = judged(setup)
    assert not found.rejected and found.decided_at is None
    assert found.tokens == 600 and found.rejected_by == []
    fault = control_for(setup.settings.sampling.greedy, name != "plain")
    caught = judged(setup.but(verifier=FaultyVerifier(setup.verifier, fault)), tokens=6000)
    assert "e-process" in caught.rejected_by
    assert caught.decided_at <= caught.tokens < 6000


def test_it_stops_when_it_has_decided_and_judges_no_token_more_than_asked():
    setup = long("token")
    parts = evidence_of(setup.but(verifier=FaultyVerifier(setup.verifier, "accept")))
    found = judge(parts, tokens=10_000, slots=4)
    assert found.decided_at < found.tokens < 10_000
    assert next(parts).sequence[0] == -(-found.tokens // 24), "nothing is decoded after the decision"
    assert judged(setup, tokens=601).tokens == 601


def test_who_watches_can_stop_it():
    seen = []

    def watch(tokens, log_e):
        seen.append(tokens)
        return len(seen) < 3

    found = judged(long("token"), watch=watch)
    assert seen == [24, 48, 72] and found.tokens == 72 < found.wanted == 600


def test_the_level_is_that_of_the_family():
    setup = long("token")
    caught = judged(setup.but(verifier=FaultyVerifier(setup.verifier, "resample")), tokens=10_000, level=0.01)
    assert caught.log_e >= np.log(len(FAMILY) / 0.01)
    assert caught.adjusted["e-process"] <= 0.01
    assert set(caught.outcomes) == set(FAMILY)


def test_a_test_that_does_not_apply_is_no_member_of_the_family():
    found = judged(long("plain"))
    assert set(found.adjusted) == {"e-process", "cells"}
    assert found.outcomes["overweight"].detail and not found.outcomes["overweight"].applies
    assert set(judged(long("block")).adjusted) == {"e-process", "overweight", "cells"}


def test_what_is_left_open_shrinks_with_the_tokens():
    few, many = (judged(long("token"), tokens=count) for count in (200, 2000))
    assert many.detectable_tv < few.detectable_tv
    assert many.tv_bound["cells"] < few.tv_bound["cells"]
    assert all(many.tv[name] <= many.tv_bound[name] for name in many.tv)


def test_the_slot_of_the_fault_holds_the_evidence():
    """Resampling errs where a guess was judged, never at the bonus."""
    setup = long("token")
    caught = judged(setup.but(verifier=FaultyVerifier(setup.verifier, "resample")), tokens=6000)
    by_kind = caught.slots.groupby("guided")["log_e"].max()
    assert by_kind[True] > by_kind[False] + 3


def test_every_fault_there_is_serves_as_a_control():
    assert {control_for(greedy, proposes) for greedy in (True, False) for proposes in (True, False)} == set(FAULTS)
