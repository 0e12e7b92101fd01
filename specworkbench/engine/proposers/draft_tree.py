"""A smaller model of the same vocabulary guesses a tree: many continuations, judged by one forward of the target."""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.draft_model import DraftModelProposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.proposers.trees import Frontier, TreeSettings, draft_tree
from specworkbench.engine.rng import Chooser


class TreeDraftProposer(DraftModelProposer):
    """Drafts a tree of at most `nodes` nodes and of depth gamma, one forward of the draft a level.

    branching: how (see `TreeSettings`). Where the tree is grown, confidence is the draft's probability at its own
    temperature (1 where it is greedy) and under its penalty, before top-k, top-p and min-p.

    The draft's cache holds the context and the expanded nodes; of these the kept path stays. Raises `InputError` for
    settings out of range, or a draft that cannot forward a tree.
    """

    name = "draft_tree"
    summary = "a tree of guesses of a smaller model of the same vocabulary"
    paper = "Miao et al. 2023 (SpecInfer); Li et al. 2024 (EAGLE-2)"
    drafts_trees = True

    def __init__(self, draft: LanguageModel, nodes: int = 16, width: int = 4, branching: str = "auto"):
        self.tree = TreeSettings(nodes, width, branching)
        draft.check_trees()
        self.draft, self.nodes, self.width, self.branching = draft, nodes, width, branching
        self.deterministic = branching == "top-k"
        self.reset()

    def reset(self) -> None:
        self._cache = self.draft.new_cache()
        self._drafted = 0  # expanded nodes at the end of the cache
        self._slots: torch.Tensor | None = None  # (n,) where each node stands among them

    def most_nodes(self, gamma: int) -> int:
        return self.tree.most(gamma)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        self._drafted, self._slots = 0, None
        depth = min(gamma, self.draft.max_context - len(context.tokens) + 1)
        shortened = "draft_context" if depth < gamma else ""
        if depth <= 0:
            return nothing(context, shortened)
        inputs = context.ids(self._cache.length)
        logits = self.draft.forward(inputs, self._cache, rows=1).logits
        forwards = 1

        def forward(frontier: Frontier, level: int) -> torch.Tensor:
            nonlocal forwards
            forwards += 1
            self._drafted += frontier.tokens.shape[0]
            return self.draft.forward(frontier.tokens, self._cache, visible=frontier.visible).logits

        chosen = draft_tree(context, self.tree, depth, choose, logits, forward)
        self._slots = chosen.slots
        return Proposal(
            chosen.tokens, chosen.rows, chosen.parents, forwards, inputs.shape[0] + self._drafted, shortened
        )

    def observe(self, decision: Decision) -> None:
        """Keep the context and what was expanded of the kept path, which is all of it or all but its last node."""
        if not decision.proposed:
            return
        slots = self._slots.tolist()
        kept = [slots[node] for node in decision.nodes[: decision.emitted - 1]]
        self._cache.keep(self._drafted, [slot for slot in kept if 0 <= slot < self._drafted])
