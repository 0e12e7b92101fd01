"""A tree's tokens: a chain is the survival form, siblings add up, paths multiply."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError


@given(st.lists(st.floats(0, 1), max_size=8))
def test_a_chain_is_the_survival_form(acceptance):
    parents = list(range(-1, len(acceptance) - 1))
    survival = theory.survival_from_acceptance(acceptance)
    assert theory.expected_tokens_tree(acceptance, parents) == pytest.approx(theory.expected_tokens_survival(survival))


def test_values_multiply_along_the_path_and_siblings_add_up():
    accept, parents = [0.5, 0.3, 0.6, 0.2, 0.9], [-1, -1, 0, 0, 1]
    assert theory.node_values(accept, parents) == pytest.approx([0.5, 0.3, 0.3, 0.1, 0.27])
    assert theory.expected_tokens_tree(accept, parents) == pytest.approx(1 + 1.47)
    assert theory.expected_tokens_tree([accept, np.zeros(5)], parents) == pytest.approx([2.47, 1])


def test_a_simulated_tree_keeps_as_many_tokens():
    accept, parents = np.array([0.5, 0.3, 0.6, 0.2, 0.9]), [-1, -1, 0, 0, 1]
    rng = np.random.default_rng(0)
    children = {node: [i for i, parent in enumerate(parents) if parent == node] for node in range(-1, 5)}
    total = 0
    for _ in range(20_000):
        node, u = -1, rng.random(3)
        for step in range(3):
            ends = np.cumsum([accept[child] for child in children[node]])
            taken = np.searchsorted(ends, u[step])
            total += 1
            if taken == len(ends):
                break
            node = children[node][taken]
    assert total / 20_000 == pytest.approx(theory.expected_tokens_tree(accept, parents), abs=0.03)


def test_a_second_candidate_at_the_root_brings_what_it_is_kept_with():
    p, q = [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]
    both = theory.independent_acceptance(p, q, 2)
    first = theory.overlap(p, q)
    assert theory.expected_tokens_tree([first, both - first], [-1, -1]) == pytest.approx(1 + both)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.node_values([0.5], [0]), "the parent of node 0 is 0; it must stand before it, or be -1"),
        (lambda: theory.node_values([0.5, 0.5], [-1]), "give one probability a node"),
        (lambda: theory.node_values([0.7, 0.7], [-1, -1]), "the children of node -1 are kept with 1.4 in all"),
        (lambda: theory.node_values([0.5], [0.5]), "it must be a list of node numbers"),
        (lambda: theory.expected_tokens_tree([1.5], [-1]), "accept is 1.5; it is a probability"),
    ],
)
def test_what_is_no_tree_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
