"""The joint law of the real code is the target's product law: every rule, kind of proposal and setting, memoised.

Each case enumerates hundreds of real rounds of a `TableModel`; `test_exact_loop.py` runs whole loops unmemoised.
"""

from dataclasses import replace

import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.loop import Sequence
from specworkbench.engine.proposers import DraftModelProposer, NgramProposer
from specworkbench.engine.sampling import MinimumLength, Sampler
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.choosers import BranchingStreams, enumerate_paths
from specworkbench.equivalence.law import (
    decode_law,
    decode_law_memoised,
    largest_difference,
    product_law,
    total_variation,
)
from specworkbench.equivalence.toys import table_setup
from tests.equivalence.exact import CHAINS, LOSSLESS, SEEN, SETTINGS, WARM, assert_exact, cases, setup_of

ON_CHAINS = [case for case in cases() if case[1] in CHAINS]


@pytest.mark.parametrize("rule, kind, setting", ON_CHAINS)
def test_the_law_is_the_targets_own(rule, kind, setting):
    setup = setup_of(rule, kind, setting)
    assert setup.verifier.name == rule and setup.verifier.lossless
    assert_exact(setup, decode_law_memoised(setup))


def test_the_matrix_lacks_only_what_is_refused():
    assert len(set(cases())) == len(cases())
    for rule in LOSSLESS:
        settings = {setting for name, _, setting in cases() if name == rule}
        cold = {setting for setting, options in SETTINGS.items() if options.get("sampling", WARM).greedy}
        assert settings == (cold if VERIFIERS[rule].greedy_only else set(SETTINGS))
    assert len(ON_CHAINS) == len(CHAINS) * (4 * len(SETTINGS) + len(cold))


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_is_idle(setting):
    """Each changes what the target or the draft does: a matrix of settings without effect would prove nothing."""
    if setting == "temperature 1":
        return
    setup, plain = (setup_of("token", "draft_model", name) for name in (setting, "temperature 1"))
    if setting.startswith("padding"):
        assert (setup.target.model.config.vocab_size, setup.proposer.draft.model.config.vocab_size) != (4, 4)
    elif setting.startswith("minimum length"):
        other = product_law(setup.target, setup.prompt, replace(setup.settings, min_new_tokens=0))
        assert largest_difference(product_law(setup.target, setup.prompt, setup.settings), other) > SEEN
    elif "draft" in setting:
        other = setup.but(settings=replace(setup.settings, draft_sampling=None))
        assert largest_difference(first_guesses(setup), first_guesses(other)) > SEEN
    else:
        laws = [product_law(one.target, one.prompt, one.settings) for one in (setup, plain)]
        assert largest_difference(*laws) > SEEN


@pytest.mark.parametrize("kind", CHAINS)
def test_every_kind_of_proposal_is_what_it_is_called(kind):
    """How many guesses the first two rounds have, and how many tokens may be guessed."""
    expected = {
        "draft_model": ({2}, 4), "truncated draft": ({2}, 2), "ngram": ({2}, 1), "sporadic": ({0, 1, 2}, 4),
        "short draft context": ({1, 2}, 4), "none": ({0}, 0),
    }  # fmt: skip
    sizes, tokens = set(), set()
    for prompt in ((0, 1, 0), (1, 0, 1, 0), (2, 1, 0, 1, 0)):
        setup = setup_of("token", kind, "temperature 1").but(prompt=prompt)
        guesses = first_guesses(setup)
        sizes |= {len(guess) for guess in guesses}
        tokens |= {(prompt, guess[0]) for guess in guesses if guess}
    assert sizes >= expected[kind][0]
    assert max((sum(start == prompt for start, _ in tokens) for prompt, _ in tokens), default=0) == expected[kind][1]


def first_guesses(setup):
    """The law of the guesses of the first round."""

    def first(root):
        sequence = setup.start(BranchingStreams(root))
        sequence.prefill()
        return tuple(sequence.round().decision.proposed)

    law = {}
    for guesses, weight in enumerate_paths(first):
        law[guesses] = law.get(guesses, 0.0) + weight
    return law


class OneTooFew(Sequence):
    """The minimum length ends a token early."""

    def _target_rows(self, last, proposal):
        self.minimum.left -= 1
        return super()._target_rows(last, proposal)


class OneTooMany(Sequence):
    def _target_rows(self, last, proposal):
        self.minimum.left += 1
        return super()._target_rows(last, proposal)


class OfTheContext(MinimumLength):
    def __call__(self, scores, ahead):
        return super().__call__(scores, 0)


class FrozenMinimum(Sequence):
    """Every row of a block is masked as the first one is."""

    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.minimum = OfTheContext(self.target.eos_ids, self.target.vocab_size)
        self.sampler = Sampler(self.settings.sampling, minimum=self.minimum)


@pytest.mark.parametrize("fault", [OneTooFew, OneTooMany, FrozenMinimum])
@pytest.mark.parametrize("rule, kind", [("token", "draft_model"), ("block", "draft_model"), ("tree", "top-k")])
def test_a_minimum_length_that_is_off_is_seen(rule, kind, fault):
    setup = setup_of(rule, kind, "minimum length")
    expected = product_law(setup.target, setup.prompt, setup.settings)
    assert total_variation(decode_law_memoised(setup.but(sequence=fault)), expected) > SEEN


@pytest.mark.parametrize("proposer", [DraftModelProposer, NgramProposer(1, 2)], ids=["draft_model", "ngram"])
@pytest.mark.parametrize("vocab, length, gamma", [(6, 3, 1), (5, 3, 2), (5, 3, 3), (4, 4, 2), (4, 4, 3)])
def test_at_every_size(vocab, length, gamma, proposer):
    setup = table_setup(8, vocab=vocab, length=length, gamma=gamma, proposer=proposer)
    assert_exact(setup, decode_law_memoised(setup))


@pytest.mark.parametrize("rule", ["block", "equality"])
@pytest.mark.parametrize("vocab, length, gamma", [(3, 5, 3), (2, 6, 4), (4, 3, 2)])
def test_other_rules_at_other_sizes(rule, vocab, length, gamma):
    """Block verification looks far ahead: also at gamma 4."""
    setup = table_setup(8, vocab=vocab, length=length, gamma=gamma, rule=rule)
    assert_exact(setup, decode_law_memoised(setup))


def test_memoising_leaves_the_law_as_it_is():
    setup = table_setup(9, vocab=3, eos=(2,), sampling=SamplingSettings(repetition_penalty=1.3))
    assert largest_difference(decode_law(setup), decode_law_memoised(setup)) < 1e-15
