"""What EAGLE and MTP share: a head that goes on from the target's own features, with caches of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from specworkbench.engine.contracts import Context, Decision, Needs, Proposal, Proposer
from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.heads.files import describe_head, load_head
from specworkbench.engine.heads.running import Chained, Recurrent
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.chains import draw_chain
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.proposers.trees import Frontier, TreeSettings, draft_tree
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError


class FeatureHeadProposer(Proposer):
    """Guesses from a feature head: a chain that is drawn, or a tree.

    First the positions that the target has forwarded since the last proposal enter with its true features; the last of
    them gives the first guess. Then a single module goes on from its own outputs, or each of several modules gives one
    guess, so that no more are proposed than there are modules.

    nodes: 0 for a chain; more for a tree of so many guesses at most, of this `width` and `branching` (`TreeSettings`).
    Raises `InputError` for settings out of range, and for a tree of several modules.
    """

    needs_target = True
    drafts_trees = True
    tells_doubt = True
    kind: ClassVar[str]

    def __init__(self, head: FeatureHead, nodes: int = 0, width: int = 4, branching: str = "auto"):
        self.tree = TreeSettings(nodes, width, branching) if nodes else None
        if nodes and len(head.stages) > 1:
            raise InputError(
                f"this head has {len(head.stages)} chained modules, which guess a chain only; leave nodes at 0"
            )
        self.head, self.nodes, self.width, self.branching = head, nodes, width, branching
        self.drafts_trees = nodes > 0
        self.deterministic = self.drafts_trees and branching == "top-k"
        self.needs = Needs(hidden_layers=head.shape.layers)
        self.reset()

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> FeatureHead:
        return load_head(weights, target, cls.kind, revision)

    def most_nodes(self, gamma: int) -> int:
        return self.tree.most(gamma) if self.tree else gamma

    def reset(self) -> None:
        self._running = (Chained if len(self.head.stages) > 1 else Recurrent)(self.head)

    def prefill(self, context: Context) -> None:
        self._running.enter(context)
        if isinstance(self._running, Chained):
            self._running.catch_up()

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        running = self._running
        forwards, positions = running.forwards, running.positions
        headed = running.enter(context)
        if headed is None:
            return nothing(context)
        if self.tree:
            logits = self.head.logits(headed)
            chosen = draft_tree(context, self.tree, gamma, choose, logits, self._branch)
            tokens, rows, parents = chosen.tokens, chosen.rows, chosen.parents
        else:
            (tokens, rows), parents = self._draw(context, gamma, choose, headed), None
        return Proposal(
            tokens, rows, parents, forwards=running.forwards - forwards, positions=running.positions - positions
        )

    def _draw(
        self, context: Context, gamma: int, choose: Chooser, headed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A chain: tokens (n,) and the rows (n, vocab) they were drawn from. headed: (1, width)."""
        modules = len(self.head.stages)

        def logits_after(guesses: list[torch.Tensor]) -> torch.Tensor:
            return self.head.logits(self._running.advance(guesses[-1]) if guesses else headed)

        return draw_chain(context, gamma if modules == 1 else min(gamma, modules), choose, logits_after)

    def _branch(self, frontier: Frontier, depth: int) -> torch.Tensor:
        """Logits (m, vocab) after the nodes of a frontier."""
        return self.head.logits(self._running.branch(frontier, depth))

    def observe(self, decision: Decision) -> None:
        if decision.proposed:
            self._running.keep(min(decision.accepted, decision.emitted))

    @property
    def cache_bytes(self) -> int:
        return self._running.nbytes

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": describe_head(self.head)}
