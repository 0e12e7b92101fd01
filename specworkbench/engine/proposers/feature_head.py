"""What EAGLE and MTP share: a head that goes on from the target's own features, with caches of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from specworkbench.engine.contracts import Context, Decision, Needs, Proposal, Proposer
from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.heads.files import describe_head, load_head
from specworkbench.engine.heads.running import Chained, Recurrent
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser


class FeatureHeadProposer(Proposer):
    """Draws guesses from a feature head, one after the other.

    First the positions that the target has forwarded since the last proposal enter with its true features; the last of
    them gives the first guess. Then a single module goes on from its own outputs, or each of several modules gives one
    guess, so that no more are proposed than there are modules.
    """

    needs_target = True
    kind: ClassVar[str]

    def __init__(self, head: FeatureHead):
        self.head = head
        self.needs = Needs(hidden_layers=head.shape.layers)
        self.reset()

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> FeatureHead:
        return load_head(weights, target, cls.kind, revision)

    @classmethod
    def build(cls, target: LanguageModel, draft: FeatureHead, **settings: Any) -> FeatureHeadProposer:
        return cls(draft, **settings)

    def reset(self) -> None:
        self._running = (Chained if len(self.head.stages) > 1 else Recurrent)(self.head)

    def prefill(self, context: Context) -> None:
        self._running.enter(context)
        if isinstance(self._running, Chained):
            self._running.catch_up()

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        running, modules = self._running, len(self.head.stages)
        forwards, positions = running.forwards, running.positions
        headed = running.enter(context)
        if headed is None:
            return nothing(context)
        n = gamma if modules == 1 else min(gamma, modules)
        seen, tokens, rows = context.seen, [], []
        for step in range(n):
            headed = running.advance(tokens[-1]) if step else headed
            probs = context.sampler(self.head.logits(headed), seen)
            guess = choose.draw(probs)
            if seen is not None:
                seen = seen.index_fill(0, guess, True)
            rows.append(probs)
            tokens.append(guess)
        return Proposal(
            torch.cat(tokens), torch.cat(rows),
            forwards=running.forwards - forwards, positions=running.positions - positions,
        )  # fmt: skip

    def observe(self, decision: Decision) -> None:
        if decision.proposed:
            self._running.keep(decision.accepted)

    @property
    def cache_bytes(self) -> int:
        return self._running.nbytes

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": describe_head(self.head)}
