"""Two samples of outputs: the level is kept, differences are found, bad input is told."""

import json

import numpy as np
import pytest

from specworkbench.equivalence.others import two_samples
from specworkbench.equivalence.others.samples import FAMILY, pooled_cells
from specworkbench.errors import InputError

BASE = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]


def outputs(n, seed, shift=0.0, joint=0.0):
    """n outputs of three tokens, a Markov chain; shift: towards token 0; joint: how often first and last agree."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(n):
        tokens = [int(rng.choice(3, p=BASE[0]))]
        for _ in range(2):
            tokens.append(0 if rng.random() < shift else int(rng.choice(3, p=BASE[tokens[-1]])))
        drawn.append(tuple(tokens))
    if joint:
        firsts, lasts = sorted(t[0] for t in drawn), sorted(t[2] for t in drawn)
        keep = rng.random(n) >= joint
        drawn = [t if k else (f, t[1], x) for t, k, f, x in zip(drawn, keep, firsts, lasts, strict=True)]
    return drawn


def test_two_samples_of_one_source_do_not_differ_at_the_level():
    found = [two_samples(outputs(60, 2 * i), outputs(90, 2 * i + 1), level=0.05, permutations=99) for i in range(200)]
    assert sum(result.differ for result in found) <= 20  # at most 10 expected; more than 20 has probability 1e-3


@pytest.mark.parametrize("options", [{"shift": 0.3}, {"joint": 0.8}], ids=str)
def test_a_difference_is_found(options):
    result = two_samples(outputs(300, 0), outputs(300, 1, **options))
    assert result.differ and "the two samples differ" in result.sentence
    assert result.tv > 0.1


def test_what_is_called_detectable_is_found_nine_times_in_ten():
    null = two_samples(outputs(400, 0), outputs(400, 1), level=0.05, permutations=99)
    assert f"a TV of {null.detectable_tv:.3f} over {null.cells} cells would have been seen" in null.sentence
    mix = null.detectable_tv / (1 - 0.5**3)  # (0, 0, 0), which has a cell of its own, in place of any other
    found = []
    for seed in range(40):
        chosen = np.random.default_rng(seed).random(400) < mix
        other = [(0, 0, 0) if new else t for t, new in zip(outputs(400, 100 + seed), chosen, strict=True)]
        found.append(two_samples(outputs(400, 200 + seed), other, level=0.05, permutations=99).differ)
    assert sum(found) >= 34


def test_a_difference_between_prompts_is_none_between_samples():
    mixed = [(0,), (1,)] * 100
    assert not two_samples(mixed, mixed[:100], groups_a=[0, 1] * 100, groups_b=[0, 1] * 50).differ
    halves, groups = [(0,)] * 100 + [(1,)] * 100, ["a"] * 100 + ["b"] * 100
    swapped = two_samples(mixed, mixed, groups_a=[0, 1] * 100, groups_b=[1, 0] * 100)
    assert swapped.differ and not two_samples(mixed, mixed).differ
    assert not two_samples(halves, halves, groups_a=groups, groups_b=groups).differ


def test_all_three_tests_are_made_and_reported():
    result = two_samples(outputs(200, 0), outputs(100, 1))
    assert tuple(result.adjusted) == FAMILY and (result.n_a, result.n_b, result.groups) == (200, 100, 1)
    assert json.loads(json.dumps(result.as_dict()))["differ"] is False


def test_samples_that_are_always_the_same_are_no_difference_and_too_little_to_see_one():
    result = two_samples([(1, 2)] * 30, [(1, 2)] * 70)
    assert max(result.adjusted.values()) == min(result.adjusted.values()) == 1.0
    assert not result.differ and result.detectable_tv == 1.0 and "grossest" in result.sentence
    assert two_samples([(1, 2)] * 50, [(1, 3)] * 50).differ


def test_cells_of_prefixes_hold_at_least_what_is_asked_and_ignore_the_order():
    pooled = outputs(300, 0)
    cell = pooled_cells(pooled, 12.0)
    assert cell.min() == 0 and np.bincount(cell).min() >= 12
    assert all(len({cell[i] for i, t in enumerate(pooled) if t == output}) == 1 for output in set(pooled))
    order = np.random.default_rng(0).permutation(300)
    again = pooled_cells([pooled[i] for i in order], 12.0)
    assert np.bincount(again).tolist() == np.bincount(cell).tolist()


@pytest.mark.parametrize(
    "a, b, options, sentence",
    [
        ([], [(1,)], {}, "the first sample is empty"),
        ([(1,)], [], {}, "the second sample is empty"),
        ([(1,)], None, {}, "the second sample is no list of lists"),
        ([1, 2, 3], [(1,)], {}, "the first sample is no list of lists"),
        ([(1,)], [(1.5,)], {}, "the second sample is no list of lists of token ids"),
        (["ab"], [(1,)], {}, "the first sample is no list of lists of token ids"),
        ([(1,)], [(1,)], {"groups_a": [0]}, "the other has none"),
        ([(1,)], [(1,)], {"groups_a": [0, 1], "groups_b": [0]}, "1 outputs, 2 groups"),
        ([(1,)], [(1,)], {"groups_a": ["x"], "groups_b": ["y"]}, "the group 'x' is in the first sample alone"),
        ([(1,)], [(1,)], {"permutations": 100}, "take at least 3000"),
        ([(1,)], [(1,)], {"level": 0.0}, "above 0 and below 1"),
    ],
)
def test_bad_input_is_told_in_a_sentence(a, b, options, sentence):
    with pytest.raises(InputError, match=sentence):
        two_samples(a, b, **options)
