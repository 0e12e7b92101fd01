"""How many guesses a rule keeps on average: the enumerated real code against formulas that share nothing with it."""

from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
from specworkbench.engine.proposers import DraftModelProposer, TreeDraftProposer
from specworkbench.engine.proposers.trees import from_paths
from specworkbench.equivalence import closed_forms
from specworkbench.equivalence.law import accepted_law, fresh_row
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import TableModel, table_setup
from specworkbench.equivalence.tree_toys import ShapedTree
from tests.equivalence.exact import EXACT

SAMPLINGS = {
    "plain": {},
    "draft of its own": {"draft_sampling": SamplingSettings(temperature=2.0, top_k=3)},
    "cut target": {"sampling": SamplingSettings(temperature=0.7, top_p=0.8), "draft_sampling": SamplingSettings()},
    "penalty": {"sampling": SamplingSettings(repetition_penalty=1.7)},
}


def parts(setup):
    return setup.target, setup.proposer.draft, setup.prompt, setup.settings


def survivals(setup):
    """S_1..S_gamma of the real code."""
    law = accepted_law(setup)
    assert sum(law) == pytest.approx(1.0, abs=EXACT)
    return [sum(law[j:]) for j in range(1, len(law))]


def expected_length(setup):
    return sum(survivals(setup))


FORMS = {
    "token": closed_forms.survival,
    "tree": closed_forms.survival,
    "block": closed_forms.block_survival,
    "equality": partial(closed_forms.survival, rule=closed_forms.equality_rule()),
}


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("rule", FORMS)
def test_each_accepted_length_has_the_probability_of_the_formula(rule, sampling, gamma):
    """token: sum of prod min(p, q); block: E[b_j] over drafts; equality: sum of prod p q. E[accepted] is their sum."""
    setup = table_setup(1, vocab=4 if gamma < 3 else 3, length=4, gamma=gamma, rule=rule, **SAMPLINGS[sampling])
    assert survivals(setup) == pytest.approx(FORMS[rule](*parts(setup)), abs=EXACT)


def of_one_row(p, q, rule, gamma):
    """A target and a draft whose rows are p and q whatever came before."""
    models = []
    for row in (p, q):
        model = TableModel(len(row))
        model.model.row = lambda prefix, row=row: torch.tensor(row, dtype=torch.float64).log()
        models.append(model)
    plain = SamplingSettings()
    target, draft = models
    return Setup(
        target, (0,), DecodeSettings(gamma, gamma + 1, plain), DraftModelProposer(draft), make_verifier(rule, plain)
    )


@pytest.mark.parametrize("rule, ninths", [("token", 10), ("block", 11), ("equality", 52 / 9)])
def test_the_example_of_the_paper(rule, ninths):
    """p = (1/3, 2/3), q = (2/3, 1/3), gamma 2: by token 10/9, by block 11/9 (Sun et al. 2024), by equality 52/81."""
    setup = of_one_row((1 / 3, 2 / 3), (2 / 3, 1 / 3), rule, 2)
    assert expected_length(setup) == pytest.approx(ninths / 9, abs=EXACT)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    vocab=st.integers(2, 3),
    gamma=st.integers(1, 3),
    sharpness=st.floats(0.1, 3.0),
    noise=st.floats(0.0, 3.0),
)
def test_block_keeps_at_least_what_token_keeps(seed, vocab, gamma, sharpness, noise):
    """Each length is reached at least as often, whatever the pair; equality reaches each at most as often."""
    size = {"vocab": vocab, "gamma": gamma, "length": gamma + 1, "sharpness": sharpness, "noise": noise}
    rules = ("block", "token", "equality")
    block, token, equality = (survivals(table_setup(seed, rule=rule, **size)) for rule in rules)
    assert all(one >= other - EXACT for one, other in zip(block, token, strict=True))
    assert all(one >= other - EXACT for one, other in zip(token, equality, strict=True))
    assert block[0] == pytest.approx(token[0], abs=EXACT) or gamma > 1


def test_block_keeps_more_on_every_ordinary_pair():
    for seed in range(8):
        size = {"vocab": 3, "gamma": 2, "length": 3}
        block, token = (expected_length(table_setup(seed, rule=rule, **size)) for rule in ("block", "token"))
        assert block > token + 1e-3


# ---------------------------------------------------------------- several guesses at one position


def siblings(k):
    return from_paths([[rank] for rank in range(k)])


BRANCHES = {
    "independent": (theory.independent_acceptance, lambda draft, k: ShapedTree(draft, (siblings(k),))),
    "without replacement": (
        theory.distinct_acceptance, lambda draft, k: TreeDraftProposer(draft, k, k, branching="sampled")
    ),
    "certain": (theory.certain_acceptance, lambda draft, k: ShapedTree(draft, (siblings(k),), certain=True)),
}  # fmt: skip


def one_position(seed, kind, k, rule="tree"):
    setup = table_setup(seed, vocab=4, length=2, gamma=1)
    proposer = BRANCHES[kind][1](setup.proposer.draft, k)
    return setup.but(proposer=proposer, verifier=make_verifier(rule, SamplingSettings(), proposer))


def rows(seed):
    setup = table_setup(seed, vocab=4, length=2, gamma=1)
    return [fresh_row(model, setup.prompt, SamplingSettings()).tolist() for model in parts(setup)[:2]]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", BRANCHES)
def test_a_tree_keeps_one_of_several_siblings_as_often_as_recursive_rejection_says(kind, k):
    for seed in (0, 1):
        p, q = rows(seed)
        assert accepted_law(one_position(seed, kind, k))[1] == pytest.approx(BRANCHES[kind][0](p, q, k), abs=EXACT)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_rule_for_independent_siblings_keeps_more_than_optimal_transport(k):
    """For k = 1 the bound is the overlap itself."""
    for seed in (0, 1):
        p, q = rows(seed)
        bound = theory.transport_bound(p, q, k)
        kept = accepted_law(one_position(seed, "independent", k))[1]
        assert kept <= bound + EXACT and (k > 1 or kept == pytest.approx(bound, abs=EXACT))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", ["independent", "without replacement"])
def test_equality_keeps_one_of_several_siblings_where_the_target_drew_one_of_them(kind, k):
    """sum_x p(x) P(x is among the children)."""
    p, q = rows(0)
    among = [0.0] * 4
    for children in product(range(4), repeat=k):
        chance, left = 1.0, list(q)
        for child in children:
            chance *= left[child] / sum(left)
            if kind == "without replacement":
                left[child] = 0.0
        for x in set(children):
            among[x] += chance
    expected = sum(share * inside for share, inside in zip(p, among, strict=True))
    assert accepted_law(one_position(0, kind, k, "equality"))[1] == pytest.approx(expected, abs=EXACT)
