"""Two samples of sequences: no more false alarms than the level, and what each kernel sees."""

import numpy as np
import pytest
from scipy import stats

from specworkbench.equivalence.statistics import mmd_test
from specworkbench.equivalence.statistics.two_sample import filled, gram_matrix
from specworkbench.errors import InputError


def independent(n, rng, length=4):
    """Every token uniform of 3, whatever came before."""
    return rng.integers(3, size=(n, length)).tolist()


def chained(n, rng, length=4):
    """Every token with probability .7 the same one of the sequence, otherwise uniform: the same marginals."""
    first = rng.integers(3, size=(n, 1))
    return np.where(rng.random((n, length)) < 0.7, first, rng.integers(3, size=(n, length))).tolist()


def tilted(n, rng, length=4):
    return rng.choice(3, p=[0.5, 0.3, 0.2], size=(n, length)).tolist()


def rejections(kernel, draw_a, draw_b, runs, n=60, level=0.01):
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        a, b = draw_a(n, rng), draw_b(n, rng)
        found.append(mmd_test(a, b, kernel, permutations=400, seed=seed).p_value)
    return np.sum(np.array(found) <= level), np.array(found)


# ---------------------------------------------------------------- the kernels


def test_hamming_by_hand():
    gram = gram_matrix(np.array([[1, 2, 3, 4], [1, 2, 0, 4], [0, 0, 0, 0]]))
    assert gram == pytest.approx(np.array([[1, 0.75, 0], [0.75, 1, 0.25], [0, 0.25, 1]]))


def test_prefix_by_hand():
    """The share of the first tokens that agree; what comes after the first difference does not count."""
    gram = gram_matrix(np.array([[1, 2, 3], [1, 2, 0], [1, 0, 3], [0, 2, 3], [1, 2, 3]]), "prefix")
    one, two = 1 / 3, 2 / 3
    assert gram[0] == pytest.approx([1, two, one, 0, 1])
    assert gram[2] == pytest.approx([one, one, 1, 0, one])
    assert gram == pytest.approx(gram.T) and np.diag(gram) == pytest.approx(1)
    assert gram_matrix(np.array([[1, 2, 3], [0, 2, 3]]), "prefix") == pytest.approx(np.eye(2))


@pytest.mark.parametrize("kernel", ["hamming", "prefix"])
def test_kernels_are_positive_semidefinite(kernel):
    tokens = np.random.default_rng(0).integers(3, size=(60, 5))
    assert np.linalg.eigvalsh(gram_matrix(tokens, kernel)).min() > -1e-10


def test_the_filling_equals_nothing_but_itself():
    tokens = filled([[0, 1, 2], [0], [], [-1, 5]], 3)
    assert (tokens == -2).sum() == 2 + 3 + 1
    assert gram_matrix(tokens)[1, 2] == pytest.approx(2 / 3)
    assert gram_matrix(tokens)[0, 1] == pytest.approx(1 / 3)


# ---------------------------------------------------------------- calibration and power


@pytest.mark.parametrize("kernel", ["hamming", "prefix"])
def test_one_law_is_rejected_no_more_often_than_the_level(kernel):
    """200 seeds at .01: 2 expected, 7 or more have probability .004."""
    alarms, values = rejections(kernel, chained, chained, 200, n=40)
    assert alarms <= 6
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("kernel", ["hamming", "prefix"])
def test_another_law_is_rejected(kernel):
    assert rejections(kernel, independent, tilted, 20, n=200)[0] == 20


def test_a_difference_in_the_joint_law_alone_is_seen_by_the_prefix_kernel_only():
    assert rejections("prefix", independent, chained, 20, n=200)[0] == 20
    assert rejections("hamming", independent, chained, 20, n=200)[0] <= 2


def test_lengths_alone_tell_laws_apart():
    rng = np.random.default_rng(0)
    a = [[1] * int(length) for length in rng.integers(1, 5, size=100)]
    b = [[1] * int(length) for length in rng.integers(3, 7, size=100)]
    for kernel in ("hamming", "prefix"):
        assert mmd_test(a, b, kernel).p_value < 0.001


def prompts(rng, sizes):
    """Prompt g is answered by tokens 10 g .. 10 g + 2; prompts of different frequency in the two samples."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return [[10 * g + int(token) for token in rng.integers(3, size=4)] for g in groups], groups.tolist()


def test_prompts_that_are_asked_differently_often_are_no_difference():
    """Labels are exchanged within a prompt; without groups the same samples are rejected."""
    within, without = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        (a, groups_a), (b, groups_b) = prompts(rng, [30, 10, 10]), prompts(rng, [10, 10, 30])
        within.append(mmd_test(a, b, "hamming", groups_a, groups_b, permutations=400, seed=seed).p_value)
        without.append(mmd_test(a, b, permutations=400, seed=seed).p_value)
    assert np.sum(np.array(within) <= 0.01) <= 3
    assert np.sum(np.array(without) <= 0.01) == 50


def test_a_difference_in_one_prompt_is_found():
    rng = np.random.default_rng(0)
    (a, groups), (b, _) = prompts(rng, [60, 60, 60]), prompts(rng, [60, 60, 60])
    b[:60] = tilted(60, rng)
    assert mmd_test(a, b, "hamming", groups, groups).p_value < 0.001
    assert mmd_test(a[60:], b[60:], "hamming", groups[60:], groups[60:]).p_value > 0.001


def test_the_p_value_is_exact_and_repeats():
    rng = np.random.default_rng(0)
    a, b = independent(50, rng), tilted(50, rng)
    found = mmd_test(a, b, permutations=99, seed=3)
    assert found == mmd_test(a, b, permutations=99, seed=3)
    assert found.p_value * 100 == pytest.approx(round(found.p_value * 100))
    assert mmd_test([[0]] * 50, [[1]] * 50, permutations=99).p_value == 0.01, "it can never be 0"


def test_the_statistic_is_the_distance_of_mean_embeddings():
    """n_a n_b / (n_a + n_b) times |mean of a - mean of b|^2 in the space of the kernel; Hamming: of one-hot tokens."""
    rng = np.random.default_rng(0)
    a, b = np.array(independent(20, rng)), np.array(tilted(30, rng))
    shares = [np.array([(side == token).mean(axis=0) for token in range(3)]) for side in (a, b)]
    expected = 20 * 30 / 50 * np.sum((shares[0] - shares[1]) ** 2) / 4
    assert mmd_test(a.tolist(), b.tolist(), permutations=1).statistic == pytest.approx(expected)


# ---------------------------------------------------------------- edges


def test_equal_samples_have_p_value_one():
    assert mmd_test([[1, 2]] * 5, [[1, 2]] * 5).p_value == 1.0
    assert mmd_test([[]] * 5, [[]] * 5).p_value == 1.0


def test_groups_that_only_one_sample_has_are_left_out_and_told():
    found = mmd_test([[1]] * 4, [[1]] * 3, "hamming", [0, 0, 0, 1], [0, 0, 2])
    assert (found.tokens, found.detail.split("; ")[1].split()[0]) == (5, "2")
    for nothing in (mmd_test([], []), mmd_test([[1]], [[1]], "hamming", ["a"], ["b"]), mmd_test([], [[1]])):
        assert not nothing.applies and nothing.p_value is None


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"kernel": "cosine"}, "no kernel 'cosine'"),
        ({"groups_a": [0]}, "for one sample only"),
        ({"groups_a": [0], "groups_b": [0, 1]}, "sample b has 1 sequences but 2 groups"),
        ({"permutations": 0}, "permutations is 0"),
    ],
)
def test_unfit_arguments_are_told_in_a_sentence(arguments, says):
    with pytest.raises(InputError, match=says):
        mmd_test([[1]], [[2]], **arguments)


def test_a_group_that_would_fill_the_memory_is_refused():
    with pytest.raises(InputError, match="the limit is 6000"):
        mmd_test([[1]] * 4000, [[1]] * 4000)
