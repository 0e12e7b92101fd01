"""Every rule once, with what it judges: what `test_verifier_contract.py` runs through its checks.

A new rule is one `Case` in `CASES`. The same rule may come again with other settings, under a label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from specworkbench.engine.contracts import Proposal, Verifier
from specworkbench.engine.proposers import NgramProposer
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.trees import earlier_siblings
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import SporadicDraft, table_setup
from specworkbench.equivalence.tree_toys import tree_setup

VOCAB = 5
PARENTS = (-1, -1, 0, 0)
"""The tree of the toys: two children of the context, and two of the first of them."""
GREEDY = SamplingSettings(temperature=0.0)


def random_rows(n: int, seed: int, kept: int = VOCAB) -> torch.Tensor:
    """(n, VOCAB) float64 probabilities, all but the `kept` largest of each row zero."""
    scores = torch.randn(n, VOCAB, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    least = scores.topk(kept, dim=-1).values[:, -1:]
    return scores.masked_fill(scores < least, -torch.inf).softmax(-1)


def chain(seed: int, kept: int = VOCAB, n: int = 3) -> Proposal:
    """Guesses drawn from rows that keep so many tokens."""
    rows = random_rows(n, 1000 + seed, kept)
    return Proposal(torch.multinomial(rows, 1, generator=torch.Generator().manual_seed(seed)).squeeze(-1), rows)


def certain_chain(seed: int) -> Proposal:
    return replace(chain(seed), probs=None)


def empty(seed: int) -> Proposal:
    return Proposal(torch.zeros(0, dtype=torch.int64))


def tree(seed: int, replacement: bool = True, certain: bool = False) -> Proposal:
    """The toy tree: children drawn independently, or without replacement, or certain and of different tokens."""
    parents, generator = torch.tensor(PARENTS), torch.Generator().manual_seed(seed)
    rows, tokens = random_rows(len(PARENTS), 2000 + seed)[parents + 1], []
    for node, earlier in enumerate(earlier_siblings(parents)):
        if not replacement or certain:
            taken = [token for token, before in zip(tokens, earlier[:node], strict=True) if before]
            rows[node, taken] = 0.0
            rows[node] /= rows[node].sum()
        tokens.append(int(torch.multinomial(rows[node], 1, generator=generator)))
    return Proposal(torch.tensor(tokens), None if certain else rows, parents)


PROPOSALS: dict[str, Callable[[int], Proposal]] = {
    "chain": chain,
    "truncated q": partial(chain, kept=2),
    "one-hot": certain_chain,
    "empty": empty,
    "tree, independent": tree,
    "tree, without replacement": partial(tree, replacement=False),
    "tree, certain": partial(tree, certain=True),
}
"""A seed to the proposal of one round, by kind; all float64."""

SETUPS: dict[str, Callable[..., Setup]] = {
    "chain": table_setup,
    "truncated q": partial(table_setup, draft_sampling=SamplingSettings(top_k=2)),
    "one-hot": partial(table_setup, proposer=NgramProposer()),
    "empty": partial(table_setup, proposer=SporadicDraft),
    "tree, independent": tree_setup,
    "tree, without replacement": partial(tree_setup, kind="without replacement"),
    "tree, certain": partial(tree_setup, kind="certain, ragged"),
}
"""A seed and options to a whole decoding whose proposals are of that kind; "empty": at times."""

CHAINS = tuple(kind for kind in PROPOSALS if not kind.startswith("tree"))


@dataclass(frozen=True)
class Case:
    """A rule and how to build it.

    settings: those that are not left at their defaults; refused: settings out of their range, one at a time. length:
    how many guesses of a chain are kept: "first refused" ends it, or the "last passed" does. chooses: whether the token
    after the kept ones is the target's first choice and not drawn. kind: the class, for one that is not in `VERIFIERS`.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    refused: tuple[dict[str, Any], ...] = ()
    label: str = ""
    length: str = "first refused"
    chooses: bool = False
    kind: type[Verifier] | None = None

    def __str__(self) -> str:
        return self.label or self.name

    @property
    def verifier(self) -> type[Verifier]:
        """The class."""
        return self.kind or VERIFIERS[self.name]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of proposals it judges."""
        return tuple(PROPOSALS) if self.verifier.judges_trees else CHAINS

    def build(self) -> Verifier:
        """A fresh rule."""
        return self.verifier(**self.settings)

    def round(self, kind: str, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Proposal, torch.Tensor]:
        """A proposal and the target's rows for it, which give some of the tokens no probability."""
        proposal = PROPOSALS[kind](seed)
        kept = 1 if self.verifier.greedy_only else 3 if seed % 2 else VOCAB
        rows = random_rows(proposal.size + 1, seed, kept)
        probs = None if proposal.probs is None else proposal.probs.to(dtype)
        return replace(proposal, probs=probs), rows.to(dtype)

    def setup(self, kind: str, seed: int, **options: Any) -> Setup:
        """A whole decoding under it."""
        if self.verifier.greedy_only:
            options["sampling"] = GREEDY
        return SETUPS[kind](seed, **options).but(verifier=self.build())


CASES = (
    Case("token"),
    Case("greedy", chooses=True),
    Case("tree"),
    Case("block", length="last passed"),
    Case("equality"),
    Case("lenient", refused=({"leniency": 0.0}, {"leniency": 1.1}, {"leniency": float("nan")})),
    Case("lenient", settings={"leniency": 0.3}, label="lenient, 0.3"),
    Case("lenient", settings={"leniency": 1.0}, label="lenient, 1"),
    Case("ensemble", refused=({"weight": 0.0}, {"weight": 1.1}, {"weight": float("nan")})),
    Case("ensemble", settings={"weight": 0.4}, label="ensemble, 0.4"),
    Case("ensemble", settings={"weight": 1.0}, label="ensemble, 1"),
    Case(
        "typical", chooses=True,
        refused=({"epsilon": -0.1}, {"epsilon": 1.1}, {"delta": -0.1}, {"delta": 2.0}, {"delta": float("nan")}),
    ),
    Case("typical", settings={"epsilon": 0.5, "delta": 0.9}, label="typical, strict", chooses=True),
)  # fmt: skip
