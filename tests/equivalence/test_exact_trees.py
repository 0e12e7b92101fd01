"""The law of trees through the real decode loop is the target's own; wrong rules and wrong caches are seen."""

from functools import partial

import pytest

from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.equivalence.law import (
    decode_law,
    decode_law_memoised,
    product_law,
    total_variation,
)
from specworkbench.equivalence.mutants.trees import FirstNodesKept
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import toy_model
from specworkbench.equivalence.tree_toys import KINDS, ShapedTree, tree_setup
from tests.equivalence.exact import GREEDY, SAMPLED, SEEN, assert_exact, cases, setup_of

ON_TREES = [case for case in cases() if case[1] in KINDS]


@pytest.mark.parametrize("rule, kind, setting", ON_TREES)
def test_the_law_is_the_targets_own(rule, kind, setting):
    setup = setup_of(rule, kind, setting)
    assert setup.verifier.name == rule and setup.proposer.drafts_trees
    assert_exact(setup, decode_law_memoised(setup))


@pytest.mark.parametrize("kind", SAMPLED)
def test_equality_of_three_tokens(kind):
    """The matrix has two of them here."""
    setup = setup_of("equality", kind, "temperature 1", vocab=3)
    assert_exact(setup, decode_law_memoised(setup))


@pytest.mark.parametrize(
    "kind, vocab, length, gamma",
    [
        ("top-k", 4, 3, 1),
        ("top-k", 4, 4, 3),
        ("certain, ragged", 5, 4, 3),
        ("without replacement", 4, 2, 1),
        ("without replacement", 3, 4, 1),
        ("independent", 4, 2, 1),
        ("independent, at times none", 2, 4, 3),
        ("without replacement", 2, 4, 3),
    ],
)
def test_at_every_size(kind, vocab, length, gamma):
    setup = tree_setup(8, kind=kind, vocab=vocab, length=length, gamma=gamma)
    assert_exact(setup, decode_law_memoised(setup))


@pytest.mark.parametrize(
    "nodes, width, vocab, length, gamma", [(6, 2, 2, 4, 3), (3, 3, 4, 3, 1), (4, 4, 4, 2, 1), (3, 3, 2, 3, 1)]
)
def test_branches_deep_and_wide(nodes, width, vocab, length, gamma):
    """Three levels; three and four siblings without replacement, also more than there are tokens."""
    setup = tree_setup(9, vocab=vocab, length=length, gamma=gamma)
    proposer = TreeDraftProposer(setup.proposer.draft, nodes, width, branching="sampled")
    setup = setup.but(proposer=proposer)
    assert_exact(setup, decode_law_memoised(setup))


def llama_setup(proposer, *, vocab=3, gamma=2, length=3, sampling=None, eos=None, least=0, rule=None) -> Setup:
    small = {"layers": 1, "width": 8, "sharpness": 2.0}
    target, draft = (toy_model(vocab, seed=seed, eos=eos, **small) for seed in (0, 1))
    settings = DecodeSettings(gamma, length, sampling or SamplingSettings(), min_new_tokens=least)
    proposer = proposer(draft)
    return Setup(target, (0, 1, 0), settings, proposer, make_verifier(rule, settings.sampling, proposer))


TOP_K = partial(TreeDraftProposer, nodes=5, width=2, branching="top-k")
LLAMAS = {
    "top-k": (TOP_K, {}),
    "top-k, gamma 3": (TOP_K, {"gamma": 3, "length": 4, "vocab": 2}),
    "top-k, penalty and EOS": (TOP_K, {"sampling": SamplingSettings(0.8, repetition_penalty=1.5), "eos": 2}),
    "top-k, minimum length": (TOP_K, {"eos": 2, "least": 2}),
    "top-k, equality": (TOP_K, {"rule": "equality", "sampling": SamplingSettings(repetition_penalty=1.5), "eos": 2}),
    "ragged, equality": (partial(ShapedTree, certain=True), {"rule": "equality"}),
    "without replacement, equality": (
        partial(TreeDraftProposer, nodes=4, width=2, branching="sampled"), {"vocab": 2, "length": 2, "rule": "equality"}
    ),
    "top-k, greedy": (TOP_K, {"gamma": 3, "length": 5, "sampling": GREEDY}),
    "ragged": (partial(ShapedTree, certain=True), {}),
    "without replacement": (partial(TreeDraftProposer, nodes=4, width=2, branching="sampled"), {"vocab": 2}),
    "independent": (ShapedTree, {"vocab": 2}),
}


@pytest.mark.parametrize("case", LLAMAS)
def test_the_law_of_the_whole_loop_on_a_real_model(case):
    """Unmemoised, with transformers' caches and the draft's own."""
    proposer, options = LLAMAS[case]
    setup = llama_setup(proposer, **options)
    assert_exact(setup, decode_law(setup))


def test_a_path_picked_wrongly_from_the_real_cache_is_seen():
    setup = llama_setup(TOP_K).but(sequence=FirstNodesKept)
    assert total_variation(decode_law(setup), product_law(setup.target, setup.prompt, setup.settings)) > SEEN
