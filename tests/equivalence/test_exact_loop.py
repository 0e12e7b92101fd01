"""The law once more, unmemoised: whole sequences through the real loop on a small Llama with transformers' caches."""

from dataclasses import replace

import pytest

from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
from specworkbench.engine.proposers import DraftModelProposer, NgramProposer
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.mutants import MUTANTS
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import SporadicDraft, toy_model
from tests.equivalence.exact import EXACT, LOSSLESS, assert_exact

CACHE_MUTANTS = [mutant for mutant in MUTANTS if mutant.name in ("rejected_token_stays", "last_accepted_lost")]

CASES = {
    "vocabulary 3, gamma 2": {},
    "vocabulary 4, gamma 1": {"vocab": 4, "gamma": 1},
    "vocabulary 5, length 2": {"vocab": 5, "gamma": 1, "length": 2},
    "four tokens, gamma 3": {
        "gamma": 3,
        "length": 4,
        "sampling": SamplingSettings(top_k=2),
        "draft_sampling": SamplingSettings(temperature=0.0),
    },
    "four tokens, gamma 3, top-k": {"vocab": 4, "gamma": 3, "length": 4, "sampling": SamplingSettings(top_k=2)},
    "greedy": {"vocab": 5, "gamma": 3, "length": 4, "sampling": SamplingSettings(temperature=0.0)},
    "penalty and EOS": {"sampling": SamplingSettings(temperature=0.8, repetition_penalty=1.5), "eos": 2},
    "padding rows": {"rows": 5, "gamma": 1},
    "hot draft": {"gamma": 1, "draft_sampling": SamplingSettings(temperature=2.0)},
    "ngram": {"vocab": 4, "proposer": NgramProposer(1, 2)},
    "sporadic draft": {"proposer": SporadicDraft},
    "minimum length": {"eos": 2, "least": 2},
    "the target as its own draft": {"gamma": 1, "draft_seed": 0},
}
SLOW = {"four tokens, gamma 3, top-k"}


def llama_setup(
    *, vocab=3, gamma=2, length=3, sampling=None, draft_sampling=None, proposer=DraftModelProposer, eos=None, rows=None,
    draft_seed=1, least=0, rule=None,
) -> Setup:  # fmt: skip
    small = {"layers": 1, "width": 8, "sharpness": 2.0}
    target = toy_model(vocab, seed=0, eos=eos, rows=rows, **small)
    draft = toy_model(vocab, seed=draft_seed, eos=eos, **small)
    settings = DecodeSettings(gamma, length, sampling or SamplingSettings(), draft_sampling, min_new_tokens=least)
    proposer = proposer(draft) if isinstance(proposer, type) else proposer
    return Setup(target, (0, 1, 0), settings, proposer, make_verifier(rule, settings.sampling))


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in CASES])
def test_the_law_of_the_whole_loop_is_the_targets_own(case):
    setup = llama_setup(**CASES[case])
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert total_variation(law, product_law(setup.target, setup.prompt, setup.settings)) < EXACT


PROCESSED = SamplingSettings(temperature=0.8, repetition_penalty=1.5)
BY_RULE = {
    "plain": {"vocab": 2},
    "penalty, EOS and minimum length": {"sampling": PROCESSED, "eos": 2, "least": 1},
    "cut rows, sporadic draft": {"sampling": SamplingSettings(top_p=0.8), "proposer": SporadicDraft, "eos": 1},
    "greedy, warm draft": {
        "sampling": SamplingSettings(temperature=0.0), "draft_sampling": SamplingSettings(), "length": 4, "eos": 1,
        "least": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", BY_RULE)
@pytest.mark.parametrize("rule", LOSSLESS)
def test_so_it_is_under_every_lossless_rule(rule, case):
    options = BY_RULE[case]
    if VERIFIERS[rule].greedy_only:  # the same, at temperature 0
        options = options | {"sampling": replace(options.get("sampling", SamplingSettings()), temperature=0.0)}
    setup = llama_setup(rule=rule, **options)
    assert setup.verifier.name == rule
    assert_exact(setup, decode_law(setup))


@pytest.mark.parametrize("mutant", CACHE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_of_the_real_cache_is_seen(mutant):
    setup = llama_setup(gamma=1)
    law = decode_law(mutant.apply(setup))
    assert total_variation(law, product_law(setup.target, setup.prompt, setup.settings)) > 1e-3
