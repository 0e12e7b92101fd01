"""Are two samples of token sequences from the same law? For when no row is known, as with another engine's output.

Maximum mean discrepancy (Gretton et al. 2012, JMLR 13) on token sequences, as Gao, Liang and Guestrin 2024 (arXiv
2410.20247) compare models behind an API.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from specworkbench.equivalence.statistics.result import Test
from specworkbench.errors import InputError

Tokens = Sequence[int]
Kernel = Literal["hamming", "prefix"]

LARGEST_GROUP = 6000
"""Sequences of one group: the matrix of their kernels takes the square of it, 8 bytes each."""

TIE = 1e-9
"""Two values of the statistic that differ by less than this share of it are equal, and count against rejection."""


def mmd_test(
    a: Sequence[Tokens],
    b: Sequence[Tokens],
    kernel: Kernel = "hamming",
    groups_a: Sequence[Hashable] | None = None,
    groups_b: Sequence[Hashable] | None = None,
    permutations: int = 2000,
    seed: int = 0,
) -> Test:
    """Permutation test of the discrepancy between two lists of sequences, within groups (a group is a prompt).

    statistic: sum over groups of n_a n_b / (n_a + n_b) MMD^2; under the null its labels can be exchanged within a
    group, so that p = (1 + permutations that reach it) / (1 + permutations) is exact. hamming: the kernel is the share
    of positions with equal tokens, and sees the law of each position alone. prefix: the share of j = 1..length for
    which the first j tokens are equal, and sees joint laws. (Chance agreements grow rare with j by themselves: weights
    falling with j on top of that cost power.) Sequences of unequal length are filled with a mark that equals itself
    alone. Groups that only one list has are left out. Raises `InputError` for unfit arguments.

    >>> ours, theirs = [(0, 1), (1, 0)] * 20, [(0, 0), (1, 1)] * 20  # each position alone is the same
    >>> [mmd_test(ours, theirs, kernel, permutations=499).p_value < 0.01 for kernel in ("hamming", "prefix")]
    [False, True]
    """
    groups = _matched(a, b, groups_a, groups_b)
    name, used = f"mmd {kernel}", sum(len(x) + len(y) for x, y in groups)
    if not used:
        return Test.without(name, "no group has sequences of both samples")
    if permutations < 1:
        raise InputError(f"permutations is {permutations}; it must be 1 or more")
    rng = np.random.default_rng(seed)
    length = max(len(tokens) for pair in groups for side in pair for tokens in side)
    values = np.zeros(1 + permutations)
    for x, y in groups:
        signs = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
        labels = np.vstack([signs, rng.permuted(np.tile(signs, (permutations, 1)), axis=1)])
        gram = gram_matrix(filled([*x, *y], length), kernel)
        values += len(x) * len(y) / (len(x) + len(y)) * np.sum((labels @ gram) * labels, axis=1)
    reached = int(np.sum(values[1:] >= values[0] - TIE * max(1e-300, abs(values[0]))))
    left_out = len(a) + len(b) - used
    detail = f"{len(groups)} groups, {permutations} permutations within them" + (
        f"; {left_out} sequences left out, of groups that only one sample has" if left_out else ""
    )
    return Test(name, float(values[0]), (1 + reached) / (1 + permutations), used, detail)


def gram_matrix(tokens: np.ndarray, kernel: Kernel = "hamming") -> np.ndarray:
    """(n, n) kernel of all pairs of n sequences, from 0 to 1, 1 on the diagonal; tokens: (n, length)."""
    n, length = tokens.shape
    if kernel not in ("hamming", "prefix"):
        raise InputError(f"there is no kernel {kernel!r}; say 'hamming' or 'prefix'")
    gram, same = np.zeros((n, n)), np.ones((n, n), bool)
    for column in tokens.T:
        equal = column[:, None] == column[None, :]
        same &= equal
        if kernel == "prefix" and np.count_nonzero(same) == n:
            gram[np.diag_indices(n)] = length
            break
        gram += same if kernel == "prefix" else equal
    return gram / max(length, 1)


def filled(sequences: Sequence[Tokens], length: int) -> np.ndarray:
    """(n, length) tokens; shorter sequences are filled with a number that is smaller than any token."""
    mark = min((min(tokens, default=0) for tokens in sequences), default=0) - 1
    return np.array([[*tokens, *[mark] * (length - len(tokens))] for tokens in sequences], np.int64)


def _matched(a, b, groups_a, groups_b) -> list[tuple[list[Tokens], list[Tokens]]]:
    """The two lists of every group that has both, in the order in which the groups first appear."""
    if (groups_a is None) != (groups_b is None):
        raise InputError("groups are given for one sample only; give them for both, or for none")
    sides = []
    for name, sequences, groups in (("a", a, groups_a), ("b", b, groups_b)):
        groups = [0] * len(sequences) if groups is None else list(groups)
        if len(groups) != len(sequences):
            raise InputError(f"sample {name} has {len(sequences)} sequences but {len(groups)} groups; give each one")
        members: dict[Hashable, list[Tokens]] = {}
        for group, tokens in zip(groups, sequences, strict=True):
            members.setdefault(group, []).append(tokens)
        sides.append(members)
    pairs = [(sides[0][group], sides[1][group]) for group in sides[0] if group in sides[1]]
    largest = max((len(x) + len(y) for x, y in pairs), default=0)
    if largest > LARGEST_GROUP:
        raise InputError(f"a group has {largest} sequences; the limit is {LARGEST_GROUP}: give fewer, or more groups")
    return pairs
