"""Proposers of trees of any fixed shape over a toy draft, which keep no cache: every row is a fresh forward."""

from __future__ import annotations

from functools import partial

import torch

from specworkbench.engine.contracts import Context, Proposal, Proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.proposers.trees import Topology, from_paths
from specworkbench.engine.rng import Chooser
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import table_setup

TWINS = from_paths([[0], [1]])
RAGGED = from_paths([[0], [1], [0, 0], [0, 1]])
LATE = from_paths([[0], [1], [1, 0], [1, 0, 0]])


class ShapedTree(Proposer):
    """A tree whose shape depends on the length of the context; None where nothing is proposed.

    certain=False: children drawn independently from q (SpecInfer); certain=True: the most probable ones, by rank.
    """

    name = "shaped_tree"
    drafts_trees = True

    def __init__(self, draft: LanguageModel, shapes: tuple[Topology | None, ...] = (RAGGED,), certain: bool = False):
        self.draft, self.shapes, self.certain = draft, shapes, certain
        self.deterministic = certain

    def most_nodes(self, gamma: int) -> int:
        return max(len(shape.cut(gamma).parents) for shape in self.shapes if shape is not None)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        shape = self.shapes[len(context.tokens) % len(self.shapes)]
        if shape is None:
            return nothing(context)
        shape = shape.cut(gamma)
        tokens, rows, paths = [], [], []
        for node, (parent, rank) in enumerate(zip(shape.parents, shape.ranks, strict=True)):
            before = [] if parent < 0 else paths[parent]
            row = self.row(context, before)
            if self.certain:
                token = row.topk(rank + 1, dim=-1).indices[:, -1]
            else:
                token = choose.draw(row, at=torch.tensor([node]))
            tokens.append(token)
            rows.append(row)
            paths.append([*before, int(token)])
        probs = None if self.certain else torch.cat(rows)
        return Proposal(torch.cat(tokens), probs, torch.tensor(shape.parents))

    def row(self, context: Context, path: list[int]) -> torch.Tensor:
        """(1, vocab) the draft's row after the context and a path of guesses."""
        ids = torch.tensor(context.tokens + path)
        logits = self.draft.forward(ids, self.draft.new_cache(), rows=1).logits
        seen = torch.zeros(context.vocab_size, dtype=torch.bool).index_fill(0, ids, True)
        return context.sampler(logits, seen, ahead=len(path))


KINDS = {
    "top-k": partial(TreeDraftProposer, nodes=5, width=2, branching="top-k"),
    "without replacement": partial(TreeDraftProposer, nodes=4, width=2, branching="sampled"),
    "independent": ShapedTree,
    "certain, ragged": partial(ShapedTree, shapes=(RAGGED, LATE), certain=True),
    "independent, at times none": partial(ShapedTree, shapes=(LATE, None, TWINS)),
}
"""Every kind of tree: a draft to the proposer."""


def tree_setup(seed: int = 0, *, kind: str = "independent", vocab: int = 3, **options) -> Setup:
    """`table_setup` with a proposer of trees and the rule for it, or the one that is named."""
    rule = options.pop("rule", None)
    setup = table_setup(seed, vocab=vocab, **options)
    proposer = KINDS[kind](setup.proposer.draft)
    return setup.but(proposer=proposer, verifier=make_verifier(rule, setup.settings.sampling, proposer))
