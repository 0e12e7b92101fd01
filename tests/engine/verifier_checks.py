"""The verifier contract as functions: each takes a `Case` and fails where the rule breaks that part of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import pytest
import torch

from specworkbench.engine.contracts import Proposal, Verdict
from specworkbench.engine.rng import Chooser, UniformChooser
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers import VERIFIERS, make_verifier
from specworkbench.equivalence.law import decode_law_memoised, product_law, total_variation
from specworkbench.equivalence.setup import record
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.verifier_cases import GREEDY, Case

EXACT = 1e-12
VISIBLY = 1e-3
SEEDS = range(8)
DTYPES = (torch.float64, torch.float32)
FIELDS = ("accepted", "next_token", "next_probs", "accept_probs", "flags")


class Watched:
    """A chooser that keeps what it was asked: `asked`, probabilities, and `drawn`, weights with their `at`."""

    def __init__(self, choose: Chooser):
        self.choose, self.asked, self.drawn = choose, [], []

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        self.asked.append(probs)
        return self.choose.accept(probs)

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        self.drawn.append((probs, at))
        return self.choose.draw(probs, at)


class Given:
    """A chooser whose flags are given, whatever their probabilities; it draws the largest weight."""

    def __init__(self, flags: torch.Tensor):
        self.flags = flags

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        return self.flags

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        return probs.argmax(-1)


def rounds(case: Case, dtype: torch.dtype = torch.float64) -> Iterator[tuple[Proposal, torch.Tensor, int]]:
    """Proposals of every kind that it judges, with the target's rows and the seed they came from."""
    for kind in case.kinds:
        for seed in SEEDS:
            yield *case.round(kind, seed, dtype), seed


def uniforms(n: int, seed: int, dtype: torch.dtype = torch.float64) -> UniformChooser:
    """A chooser with n uniforms to accept with and n + 1 to draw with."""
    u = torch.rand(2 * n + 1, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return UniformChooser(u[:n], u[n:])


def assert_same(one: Verdict, other: Verdict, names: tuple[str, ...] = (*FIELDS, "path")) -> None:
    for name in names:
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None), name
        assert first is None or torch.equal(first, second), name


# ---------------------------------------------------------------- tensors in, tensors out


def check_shapes(case: Case) -> None:
    """Shapes and dtypes of a verdict, in float64 and in float32; probabilities are probabilities."""
    for dtype in DTYPES:
        for proposal, rows, seed in rounds(case, dtype):
            n, vocab = proposal.size, rows.shape[-1]
            verdict = case.build().verify(proposal, rows, uniforms(n, seed, dtype))
            expected = {
                "accepted": ((), torch.int64), "next_token": ((), torch.int64), "next_probs": ((vocab,), dtype),
                "accept_probs": ((n,), dtype), "flags": ((n,), torch.bool),
            }  # fmt: skip
            if proposal.is_tree:
                expected["path"] = (n,), torch.int64
            else:
                assert verdict.path is None
            for name, (shape, kind) in expected.items():
                found = getattr(verdict, name)
                assert (tuple(found.shape), found.dtype) == (shape, kind), name
            assert ((verdict.accept_probs >= 0) & (verdict.accept_probs <= 1)).all()
            assert (verdict.next_probs >= 0).all() and verdict.next_probs.sum() > 0
            assert 0 <= verdict.accepted <= n and 0 <= verdict.next_token < vocab


def check_values_unseen(case: Case) -> None:
    """It decides without looking: tensors that have a shape and no values give a verdict of the same shape."""
    for proposal, rows, _ in rounds(case):
        without = {
            name: None if (given := getattr(proposal, name)) is None else given.to("meta")
            for name in ("tokens", "probs", "parents")
        }
        u = rows.new_empty(2 * proposal.size + 1, device="meta")
        choose = UniformChooser(u[: proposal.size], u[proposal.size :])
        verdict = case.build().verify(Proposal(**without), rows.to("meta"), choose)
        assert verdict.accepted.shape == () and verdict.next_probs.shape == rows.shape[1:]


def check_repeats(case: Case) -> None:
    """The same uniforms give the same verdict, whatever was judged in between, and from a fresh rule too."""
    used = case.build()
    first = [used.verify(proposal, rows, uniforms(proposal.size, seed)) for proposal, rows, seed in rounds(case)]
    for before, (proposal, rows, seed) in zip(first, rounds(case), strict=True):
        for rule in (used, case.build()):
            assert_same(before, rule.verify(proposal, rows, uniforms(proposal.size, seed)))


# ---------------------------------------------------------------- what decides


def check_uniforms(case: Case) -> None:
    """One uniform for every guess and one draw, through the chooser, once; a guess passes iff u < accept_prob."""
    for proposal, rows, seed in rounds(case):
        n, rule = proposal.size, case.build()
        watched = Watched(uniforms(n, seed))
        verdict = rule.verify(proposal, rows, watched)
        asked = torch.cat(watched.asked) if watched.asked else rows.new_empty(0)
        assert torch.equal(asked, verdict.accept_probs) and len(watched.asked) <= 1
        assert torch.equal(verdict.flags, watched.choose.accept_uniforms < verdict.accept_probs)
        ((weights, at),) = watched.drawn
        assert torch.equal(weights, verdict.next_probs.unsqueeze(0)) and at.shape == (1,)
        draws = watched.choose.draw_uniforms
        below = torch.nextafter(verdict.accept_probs, torch.full_like(verdict.accept_probs, -1.0))
        for u, passes in ((verdict.accept_probs, False), (below.clamp(min=0.0), True)):
            flags = rule.verify(proposal, rows, UniformChooser(u, draws)).flags
            assert torch.equal(flags, (verdict.accept_probs > 0) & passes)


def check_length(case: Case) -> None:
    """Which guesses are kept follows from the flags, for all that can be, and from that the uniform of the draw."""
    for kind in case.kinds:
        proposal, rows = case.round(kind, 1)
        n = proposal.size
        for pattern in product((False, True), repeat=n):
            watched = Watched(Given(torch.tensor(pattern, dtype=torch.bool)))
            verdict = case.build().verify(proposal, rows, watched)
            kept, at = kept_nodes(case, proposal, pattern)
            assert verdict.accepted == len(kept), pattern
            assert [int(place) for _, place in watched.drawn] == [at], pattern
            if proposal.is_tree:
                assert verdict.path.tolist() == kept + [-1] * (n - len(kept))


def kept_nodes(case: Case, proposal: Proposal, flags: tuple[bool, ...]) -> tuple[list[int], int]:
    """The nodes that the rule keeps, and the place of the uniform that the next token is drawn with."""
    if not proposal.is_tree:
        passed = [place + 1 for place, flag in enumerate(flags) if flag]
        length = max(passed, default=0) if case.length == "last passed" else [*flags, False].index(False)
        return list(range(length)), length
    parents, kept = proposal.parents.tolist(), []
    while True:
        last = kept[-1] if kept else -1
        children = [node for node, parent in enumerate(parents) if parent == last]
        taken = [node for node in children if flags[node]]
        if not taken:
            return kept, last + 1 if children else len(flags)
        kept.append(taken[0])


def check_empty(case: Case) -> None:
    """Where nothing was proposed, the token comes from p itself; from its first choice under a rule that chooses."""
    for seed in SEEDS:
        proposal, rows = case.round("empty", seed)
        for kind in (proposal, replace(proposal, probs=rows[:0])):
            verdict = case.build().verify(kind, rows, uniforms(0, seed))
            expected = (rows == rows.max()).to(rows.dtype) if case.chooses else rows
            assert torch.equal(verdict.next_probs, expected[0]) and verdict.accepted == 0


def check_impossible(case: Case) -> None:
    """Under a lossless rule no token without probability is kept or drawn, however the uniforms fall."""
    if not case.build().lossless:
        return
    ends = (0.0, 1.0 - 2**-53)
    for proposal, rows, _ in rounds(case):
        for u in product(ends, repeat=proposal.size + 1):
            u = torch.tensor(u, dtype=torch.float64)
            choose = UniformChooser(u[:-1], u[-1:].expand(proposal.size + 1))
            verdict = case.build().verify(proposal, rows, choose)
            kept = range(int(verdict.accepted)) if verdict.path is None else verdict.path[: verdict.accepted].tolist()
            row = 0
            for node in kept:
                assert rows[row, proposal.tokens[node]] > 0, "a guess without probability was kept"
                row = node + 1
            assert rows[row, verdict.next_token] > 0, "a token without probability was drawn"


def check_chain_as_tree(case: Case) -> None:
    """A chain written as a tree without branches gets the verdict of the chain, bit for bit."""
    if not case.verifier.judges_trees:
        return
    for kind in ("chain", "truncated q", "one-hot"):
        for seed in SEEDS:
            proposal, rows = case.round(kind, seed)
            written = replace(proposal, parents=torch.arange(proposal.size) - 1)
            verdicts = [case.build().verify(given, rows, uniforms(3, seed)) for given in (proposal, written)]
            assert_same(*verdicts, names=FIELDS)


# ---------------------------------------------------------------- the law


def check_law(case: Case) -> None:
    """The law of a round's tokens, through the real loop, is the target's own iff the rule says that it is lossless."""
    distances = []
    for kind in case.kinds:
        for seed in range(2):
            setup = case.setup(kind, seed, vocab=2 if kind.startswith("tree") else 3)
            law = decode_law_memoised(setup)
            assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
            distances.append(total_variation(law, product_law(setup.target, setup.prompt, setup.settings)))
    if case.build().lossless:
        assert max(distances) < EXACT
    else:
        assert max(distances) > VISIBLY, "it is said to be lossy, and its law is the target's"


# ---------------------------------------------------------------- traces, settings, description


def check_traces(case: Case) -> None:
    """Its traces keep every contract, whatever it judged and whatever was captured."""
    for kind in case.kinds:
        for capture in ("none", "top-k", "full"):
            trace = record(case.setup(kind, 0, vocab=5, length=12, gamma=3), 6, seed=3, capture=capture)
            broken = [(rule.name, found.detail) for rule, found in contracts.run(trace) if found.status == "fail"]
            assert broken == [], (kind, capture)


def check_settings(case: Case) -> None:
    """Settings out of their range, and those it does not have, are refused with a sentence that names them."""
    for given in case.refused:
        ((name, value),) = given.items()
        with pytest.raises(InputError, match=f"{name} is {value}; it must be"):
            case.verifier(**given)
    with (
        patch.dict(VERIFIERS, {case.name: case.verifier}),
        pytest.raises(InputError, match=f"the rule {case.name} has no setting 'unknown'"),
    ):
        make_verifier(f"{case.name},unknown=1", GREEDY)


def check_description(case: Case) -> None:
    """It says in JSON what it is, with all its settings, as they are when it is made from their text."""
    kind, said = case.verifier, case.build().describe()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["name"] == case.name and said["lossless"] is case.build().lossless and kind.summary and kind.paper
    assert said["settings"] == kind.settings() | case.settings
    with patch.dict(VERIFIERS, {case.name: kind}):
        written = ",".join([case.name, *(f"{name}={value}" for name, value in case.settings.items())])
        made = make_verifier(written, GREEDY if kind.greedy_only else SamplingSettings())
        assert type(made) is kind and made.describe() == said


CHECKS = (
    check_shapes, check_values_unseen, check_repeats, check_uniforms, check_length, check_empty, check_impossible,
    check_chain_as_tree, check_law, check_traces, check_settings, check_description,
)  # fmt: skip
