"""What the lossy rules do exactly: their laws in closed form, how far from the target's, and where they meet it."""


from dataclasses import replace

import pytest
import torch

from specworkbench.engine import SamplingSettings
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence import closed_forms
from specworkbench.equivalence.choosers import BranchingStreams, enumerate_paths
from specworkbench.equivalence.law import (
    accepted_law,
    decode_law_memoised,
    first_tokens,
    fresh_row,
    largest_difference,
    product_law,
    total_variation,
)
from specworkbench.equivalence.toys import table_setup
from tests.equivalence.exact import EXACT, GREEDY, LOSSY, SEEN, SETTINGS

RULES = {
    "lenient,leniency=0.8": closed_forms.lenient_rule(0.8),
    "lenient,leniency=0.3": closed_forms.lenient_rule(0.3),
    "ensemble,weight=0.8": closed_forms.ensemble_rule(0.8),
    "ensemble,weight=0.3": closed_forms.ensemble_rule(0.3),
    "typical": closed_forms.typical_rule(0.09, 0.3),
    "typical,epsilon=0.3,delta=0.5": closed_forms.typical_rule(0.3, 0.5),
    "typical,epsilon=0.9,delta=0.5": closed_forms.typical_rule(0.9, 0.5),
}
MET = {"lenient,leniency=1": "lenient", "ensemble,weight=1": "ensemble"}
CHOSEN = ("temperature 1", "temperature 0.7", "top-k", "penalty", "minimum length", "hot draft")
SEEDS = (0, 1)


def lossy_setup(seed, rule, setting="temperature 1", **size):
    options = {"vocab": 4} | SETTINGS[setting] | size
    least = options.pop("least", 0)
    setup = table_setup(seed, rule=rule, **options)
    return setup.but(settings=replace(setup.settings, min_new_tokens=least))


def parts(setup):
    return setup.target, setup.proposer.draft, setup.prompt, setup.settings


def test_every_lossy_rule_has_its_closed_form_here():
    assert {rule.partition(",")[0] for rule in RULES} == set(LOSSY)
    assert not any(VERIFIERS[name].lossless for name in LOSSY)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("setting", CHOSEN)
def test_the_law_of_the_real_loop_is_the_closed_form(rule, setting):
    for seed in SEEDS:
        setup = lossy_setup(seed, rule, setting)
        law = decode_law_memoised(setup)
        assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
        assert largest_difference(law, closed_forms.closed_law(*parts(setup), RULES[rule])) < EXACT


@pytest.mark.parametrize(
    "rule, form", [("token", closed_forms.token_rule()), ("equality", closed_forms.equality_rule())]
)
@pytest.mark.parametrize("setting", CHOSEN)
def test_by_the_same_recursion_the_lossless_rules_have_the_targets_law(rule, form, setting):
    setup = lossy_setup(0, rule, setting)
    expected = product_law(setup.target, setup.prompt, setup.settings)
    assert largest_difference(closed_forms.closed_law(*parts(setup), form), expected) < EXACT
    assert largest_difference(decode_law_memoised(setup), expected) < EXACT


@pytest.mark.parametrize("leniency", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("weight", [0.3, 0.8, 1.0])
def test_the_first_token_is_what_the_formulas_say(leniency, weight):
    """min(q, p/l) + (1 - sum min(q, p/l)) max(p - q, 0) / sum max(p - q, 0), and v = w p + (1 - w) q."""
    for seed in SEEDS:
        setup = lossy_setup(seed, f"lenient,leniency={leniency}")
        p, q = (fresh_row(model, setup.prompt, SamplingSettings()) for model in parts(setup)[:2])
        kept, over = torch.minimum(q, p / leniency), (p - q).clamp(min=0)
        expected = kept + (1 - kept.sum()) * over / over.sum()
        assert_first(decode_law_memoised(setup), expected)
        setup = lossy_setup(seed, f"ensemble,weight={weight}")
        assert_first(decode_law_memoised(setup), weight * p + (1 - weight) * q)


def assert_first(law, expected):
    found = first_tokens(law)
    assert [found[token,] for token in range(len(expected))] == pytest.approx(expected.tolist(), abs=EXACT)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("typical")])
def test_typical_draws_nothing_but_its_guesses(rule):
    """There are as many ways for a round to go as there are drafts, and each has one accepted length and one token."""
    setup = lossy_setup(0, rule)
    drafted = {}

    def one(root):
        sequence = setup.start(BranchingStreams(root))
        sequence.prefill()
        step = sequence.round()
        assert set(step.verdict.accept_probs.tolist()) <= {0.0, 1.0}
        return tuple(step.decision.proposed), tuple(step.emitted)

    for (guesses, emitted), weight in enumerate_paths(one):
        assert guesses not in drafted and weight > 0
        drafted[guesses] = emitted
    assert len(drafted) == 4**2 and len({len(emitted) for emitted in drafted.values()}) > 1


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", SEEDS)
def test_they_deserve_to_be_called_lossy(rule, seed):
    setup = lossy_setup(seed, rule)
    assert not setup.verifier.lossless
    assert total_variation(decode_law_memoised(setup), product_law(setup.target, setup.prompt, setup.settings)) > SEEN


@pytest.mark.parametrize("rule", MET)
@pytest.mark.parametrize("setting", SETTINGS)
def test_with_nothing_given_up_they_keep_the_law(rule, setting):
    """At leniency 1 and weight 1; so the setting is the whole difference."""
    setup = lossy_setup(3, rule, setting)
    assert setup.verifier.name == MET[rule] and setup.verifier.lossless
    assert total_variation(decode_law_memoised(setup), product_law(setup.target, setup.prompt, setup.settings)) < EXACT


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith(("lenient", "typical"))])
def test_at_temperature_zero_they_are_greedy(rule):
    """p is one-hot there: a guess has p of 0 or 1. (`ensemble` still mixes q in.)"""
    for draft in (GREEDY, SamplingSettings()):
        setup = table_setup(4, vocab=4, rule=rule, sampling=GREEDY, draft_sampling=draft)
        expected = product_law(setup.target, setup.prompt, setup.settings)
        assert total_variation(decode_law_memoised(setup), expected) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_the_accepted_length_is_the_sum_of_survivals(rule, gamma):
    """lenient: sum_x min(p/l, q) a position, ensemble: sum_x min(v, q), typical: q of what is probable enough."""
    setup = lossy_setup(1, rule, length=4, gamma=gamma, vocab=3)
    law = accepted_law(setup)
    reached = closed_forms.survival(*parts(setup), RULES[rule])
    assert [sum(law[j:]) for j in range(1, gamma + 1)] == pytest.approx(reached, abs=EXACT)


def test_what_is_given_up_is_taken_in_acceptance():
    rules = ("lenient,leniency=1", "lenient,leniency=0.8", "lenient,leniency=0.3")
    for seed in SEEDS:
        expected = [
            sum(j * share for j, share in enumerate(accepted_law(lossy_setup(seed, rule))))
            for rule in rules
        ]
        assert expected[0] < expected[1] < expected[2]
