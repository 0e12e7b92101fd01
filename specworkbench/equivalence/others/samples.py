"""Two lists of token sequences, from anywhere: are they draws from the same distribution?

One list may come from an engine that cannot be looked into, an API or vLLM, and the other from `OurDecoding` with
the same model, prompts and sampling. Where vLLM runs, with the prompts as token ids so that no chat template and no
second begin-of-text come in, and with everything said that its defaults would say otherwise:

    import json
    from vllm import LLM, SamplingParams

    llm = LLM(model, generation_config="vllm", speculative_config={...})
    params = SamplingParams(n=500, temperature=1.0, top_k=-1, top_p=1.0, max_tokens=8)
    requests = llm.generate([{"prompt_token_ids": ids} for ids in prompts], params)
    with open("theirs.jsonl", "w") as file:
        for number, request in enumerate(requests):
            for output in request.outputs:
                file.write(json.dumps({"prompt": number, "token_ids": list(output.token_ids)}) + "\\n")

and here:

    ours = OurDecoding(load_model(model), DecodeSettings(max_new_tokens=8))
    theirs = read_samples("theirs.jsonl")
    outputs = [output for number, ids in enumerate(prompts) for output in ours.draw(ids, 500)]
    groups = [str(number) for number in range(len(prompts)) for _ in range(500)]
    print(two_samples(outputs, theirs.outputs, groups_a=groups, groups_b=theirs.groups).sentence)

An output holds its EOS in both lists or in neither. Draws must be independent: a fixed seed for every request gives the
same output again and again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from scipy import stats

from specworkbench.equivalence.others.sample_files import Tokens, checked
from specworkbench.equivalence.statistics.bounds import detectable_tv, holm
from specworkbench.equivalence.statistics.levels import check_level
from specworkbench.equivalence.statistics.result import Test
from specworkbench.equivalence.statistics.two_sample import mmd_test
from specworkbench.errors import InputError

FAMILY = ("mmd hamming", "mmd prefix", "prefixes")
"""The tests that are made of every two samples: what each position is alone, joint laws, the most frequent prefixes."""

LEAST_EXPECTED = 5.0

ROUNDING = 1e-9
"""A sum of n_a n_b / (n_a + n_b) MMD^2 below this is zero: one exchanged token makes it about 1 / (n length)."""


@dataclass(frozen=True)
class TwoSamples:
    """What the tests of two samples found.

    tests: one for each of `FAMILY`; adjusted: Holm's p-values of those that apply; cells: into how many the pooled
    sample was divided, over all groups; tv: distance of the two samples' frequencies in them, noise included;
    detectable_tv: the smallest one that the test of prefixes finds in nine runs of ten, 1 where it does not apply.

    >>> found = two_samples([(0, 1), (1, 0)] * 20, [(1, 0), (0, 1)] * 20)
    >>> found.differ, round(found.detectable_tv, 3)
    (False, 0.544)
    """

    n_a: int
    n_b: int
    groups: int
    tests: tuple[Test, ...]
    adjusted: dict[str, float]
    cells: int
    tv: float
    detectable_tv: float
    level: float

    @property
    def differ(self) -> bool:
        return min(self.adjusted.values()) <= self.level

    @property
    def sentence(self) -> str:
        """The finding, with what it could have seen."""
        name = min(self.adjusted, key=self.adjusted.__getitem__)
        where = f"{self.n_a} and {self.n_b} outputs of {self.groups} prompt{'s' if self.groups > 1 else ''}"
        if self.differ:
            return f"the two samples differ ({name}: p = {self.adjusted[name]:.2g}, level {self.level:g}) in {where}"
        if self.detectable_tv < 1.0:
            seen = f"a TV of {self.detectable_tv:.3f} over {self.cells} cells would have been seen"
        else:
            seen = "too few to have seen anything but the grossest difference"
        return f"no difference found in {where} (smallest p = {self.adjusted[name]:.2g}, level {self.level:g}): {seen}"

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self) | {"differ": self.differ, "sentence": self.sentence}


def two_samples(
    a: Sequence[Sequence[int]],
    b: Sequence[Sequence[int]],
    *,
    groups_a: Sequence[Hashable] | None = None,
    groups_b: Sequence[Hashable] | None = None,
    level: float = 1e-3,
    permutations: int = 4000,
    seed: int = 0,
) -> TwoSamples:
    """Test that two lists of token sequences come from the same distribution, prompt by prompt.

    groups: the prompt of each sequence, an index or any name; outputs are compared and labels are exchanged within it.
    permutations: of the two MMD tests; their p-values are at least 1 / (permutations + 1).

    Raises `InputError` for samples that are no lists of lists of token ids, an empty one, groups that do not match, or
    too few permutations to reach the level.

    >>> two_samples([(0, 1), (1, 0)] * 20, [(0, 0), (1, 1)] * 20).sentence
    'the two samples differ (prefixes: p = 9.2e-17, level 0.001) in 40 and 40 outputs of 1 prompt'
    """
    check_level(level)
    if (permutations + 1) * level < len(FAMILY):
        raise InputError(
            f"{permutations} permutations cannot reach the level {level:g} in a family of {len(FAMILY)} tests; "
            f"take at least {permutations_for(level, 1)}"
        )
    outputs_a, outputs_b = checked(a, "the first sample"), checked(b, "the second sample")
    groups_a, groups_b = _groups(outputs_a, groups_a, outputs_b, groups_b)
    names = set(groups_a)
    found = [
        _settled(mmd_test(outputs_a, outputs_b, kernel, groups_a, groups_b, permutations, seed + place))
        for place, kernel in enumerate(("hamming", "prefix"))
    ]
    test, cells, tv, weight = prefix_test(outputs_a, groups_a, outputs_b, groups_b)
    family = dict(zip(FAMILY, (*found, test), strict=True))
    adjusted = holm({name: each.p_value for name, each in family.items() if each.applies}, level)
    detectable = detectable_tv(weight, cells - len(names) + 1, level / len(FAMILY)) if test.applies else 1.0
    return TwoSamples(
        len(outputs_a), len(outputs_b), len(names), tuple(family.values()), adjusted, cells, tv, detectable, level
    )


def permutations_for(level: float, least: int = 4000) -> int:
    """As many permutations as the level needs in this family, and not fewer than `least`.

    >>> permutations_for(0.001), permutations_for(0.0001)
    (4000, 30000)
    """
    return max(least, int(np.ceil(len(FAMILY) / level)))


def _settled(test: Test) -> Test:
    """The same test, with p = 1 where the discrepancy is rounding alone, which permutations would rank by chance."""
    return replace(test, p_value=1.0) if test.applies and test.statistic < ROUNDING else test


def prefix_test(
    a: Sequence[Tokens], groups_a: Sequence[Hashable], b: Sequence[Tokens], groups_b: Sequence[Hashable]
) -> tuple[Test, int, float, float]:
    """Chi-square of homogeneity on the most frequent prefixes, which are chosen within each group from both together.

    Returns the test, the number of cells of all groups, the distance of the samples (its mean over the groups, by
    their weight), and the weight sum n_a n_b / (n_a + n_b).
    """
    statistic = tv = weight = 0.0
    cells = freedom = 0
    for group in dict.fromkeys(groups_a):
        ours = [output for output, name in zip(a, groups_a, strict=True) if name == group]
        theirs = [output for output, name in zip(b, groups_b, strict=True) if name == group]
        share = min(len(ours), len(theirs)) / (len(ours) + len(theirs))
        cell = pooled_cells([*ours, *theirs], LEAST_EXPECTED / share)
        table = np.array([np.bincount(part, minlength=cell.max() + 1) for part in np.split(cell, [len(ours)])])
        sizes = table.sum(axis=1, keepdims=True)
        expected = sizes * table.sum(axis=0) / table.sum()
        weight_here = float(sizes[0, 0] * sizes[1, 0] / table.sum())
        statistic += float(np.sum((table - expected) ** 2 / expected))
        tv += weight_here * float(np.abs(table[0] / sizes[0] - table[1] / sizes[1]).sum() / 2)
        weight, cells, freedom = weight + weight_here, cells + table.shape[1], freedom + table.shape[1] - 1
    n = len(a) + len(b)
    if not freedom:
        return Test.without("prefixes", "no prompt has outputs enough for two cells", n), cells, tv / weight, weight
    detail = f"{cells} cells of prefixes in {cells - freedom} groups"
    return Test("prefixes", statistic, float(stats.chi2.sf(statistic, freedom)), n, detail), cells, tv / weight, weight


def pooled_cells(outputs: Sequence[Tokens], least: float) -> np.ndarray:
    """(n,) the cell of each output: those that share a prefix which at least `least` outputs have.

    A prefix is divided while two cells fit into it; what is left of it is a cell, or joins what is left before it. The
    cells depend on the outputs, not on the sample each comes from.
    """
    cell = np.full(len(outputs), -1)

    def divide(members: list[int], depth: int) -> list[int]:
        """Give cells to outputs that agree in `depth` tokens; returns those left over."""
        left: list[int] = []
        following = {place: outputs[place][depth : depth + 1] for place in members}
        ordered = sorted(members, key=following.__getitem__)
        for token, same in ((token, list(same)) for token, same in groupby(ordered, key=following.__getitem__)):
            if len(same) < least:
                left += same
            elif token and len(same) >= 2 * least:
                left += divide(same, depth + 1)
            else:
                cell[same] = cell.max() + 1
        if len(left) < least:
            return left
        cell[left] = cell.max() + 1
        return []

    left = divide(list(range(len(outputs))), 0)
    if left:
        sizes = np.bincount(cell[cell >= 0])
        cell[left] = int(sizes.argmin()) if len(sizes) else 0
    return cell


def _groups(
    a: list[Tokens], groups_a: Sequence[Hashable] | None, b: list[Tokens], groups_b: Sequence[Hashable] | None
) -> tuple[list[Hashable], list[Hashable]]:
    if (groups_a is None) != (groups_b is None):
        raise InputError(
            "one sample has groups and the other has none; give the prompt of each output in both, or in none"
        )
    groups_a = [0] * len(a) if groups_a is None else list(groups_a)
    groups_b = [0] * len(b) if groups_b is None else list(groups_b)
    for what, outputs, groups in (("first", a, groups_a), ("second", b, groups_b)):
        if len(outputs) != len(groups):
            raise InputError(f"the {what} sample has {len(outputs)} outputs, {len(groups)} groups; give one for each")
    if alone := sorted(set(groups_a) ^ set(groups_b), key=str):
        which = "first" if alone[0] in groups_a else "second"
        raise InputError(f"the group {alone[0]!r} is in the {which} sample alone; leave it out, or draw it in both")
    return groups_a, groups_b
