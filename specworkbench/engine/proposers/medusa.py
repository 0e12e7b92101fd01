"""Medusa: several heads on the target's last hidden state guess the next tokens at once."""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Context, Needs, Proposal, Proposer
from specworkbench.engine.heads.files import describe_head, load_head
from specworkbench.engine.heads.medusa import MedusaHeads, likely_paths
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.proposers.trees import Expansion, Topology, TreeSettings, confidence, from_paths, sampled_tree
from specworkbench.engine.rng import Chooser

MOST_RANKS = 10
"""Candidates of a head that a tree may take, where their acceptance was not measured."""


class MedusaProposer(Proposer):
    """Each head guesses from a row of its own, blind to what the others guess: a chain that is drawn, or a fixed tree.

    All rows are given by the context alone, so they are what a chain's guesses were really drawn from, and the token
    rule keeps the target's distribution. No deeper than there are heads.

    nodes: 0 for a chain; more for a tree of so many of the heads' candidates, those most often right by the acceptance
    the heads carry (`likely_paths`); where they carry none, 1 / (rank + 2) is assumed. branching: whether the
    candidates are the most probable ones, or drawn without replacement (`TreeSettings`). Raises `InputError` for
    settings out of range.
    """

    name = "medusa"
    summary = "independent heads on the target's last hidden state, one a guess"
    paper = "Cai et al. 2024"
    weights = "Medusa heads of this target"
    default_weights = "embedded/medusa"
    needs_target = True
    drafts_trees = True

    def __init__(self, heads: MedusaHeads, nodes: int = 0, branching: str = "auto"):
        self.tree = TreeSettings(nodes, 1, branching) if nodes else None
        self.heads, self.nodes, self.branching = heads, nodes, branching
        self.drafts_trees = nodes > 0
        self.deterministic = self.drafts_trees and branching == "top-k"
        self.needs = Needs(hidden_layers=MedusaHeads.layers)
        self._shapes: dict[int, Topology] = {}

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> MedusaHeads:
        return load_head(weights, target, "medusa", revision)

    def most_nodes(self, gamma: int) -> int:
        return self.nodes or gamma

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        hidden = context.hidden.get(-1)
        if hidden is None or not hidden.shape[0]:
            return nothing(context)
        depth, last = min(gamma, self.heads.shape.heads), hidden[-1:].to(self.heads.heads[0].weight.dtype)
        logits = [self.heads.logits(last, head, context.vocab_size) for head in range(depth)]
        if self.nodes:
            return self._tree(context, choose, logits)
        rows = [context.sampler(row, context.seen, ahead=head) for head, row in enumerate(logits)]
        tokens = [choose.draw(row) for row in rows]
        return Proposal(torch.cat(tokens), torch.cat(rows), forwards=1, positions=1)

    def _tree(self, context: Context, choose: Chooser, logits: list[torch.Tensor]) -> Proposal:
        """The fixed tree of the heads' candidates. logits: (1, vocab) of each head."""
        shape = self._shape(len(logits))
        if self.tree.samples(context.sampler):
            expand = Expansion(context, lambda frontier, depth: logits[depth].expand(frontier.tokens.shape[0], -1))
            chosen = sampled_tree(context, shape, choose, logits[0], expand)
            return Proposal(chosen.tokens, chosen.rows, chosen.parents, forwards=1, positions=1)
        sure, most = confidence(context), 1 + max(shape.ranks)
        rows = [sure(row, context.seen, ahead=head) for head, row in enumerate(logits)]
        candidates = torch.cat(rows).topk(most, dim=-1).indices
        at = torch.tensor([shape.depths, shape.ranks], device=context.device)
        parents = torch.tensor(shape.parents, device=context.device)
        return Proposal(candidates[at[0] - 1, at[1]], parents=parents, forwards=1, positions=1)

    def _shape(self, depth: int) -> Topology:
        """The likeliest tree of this depth."""
        if depth not in self._shapes:
            most = min(MOST_RANKS, self.heads.shape.vocabulary)
            ranks = self.heads.shape.ranks or (tuple(1 / (rank + 2) for rank in range(most)),) * depth
            self._shapes[depth] = from_paths(likely_paths(ranks[:depth], self.nodes))
        return self._shapes[depth]

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": describe_head(self.heads)}
