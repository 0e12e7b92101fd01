"""A smaller model of the same vocabulary guesses token by token (Leviathan et al. 2023; Chen et al. 2023)."""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal, Proposer
from specworkbench.engine.loading import check_same_vocabulary
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.chains import draw_chain
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser


class DraftModelProposer(Proposer):
    """Draws gamma tokens from a draft model, one forward each, with a cache of its own.

    The cache lags: the last guess is never forwarded, and what a round emitted beyond it enters with the next round's
    first forward, so full acceptance costs no extra step. Past the end of the draft's context it proposes nothing and
    says so.
    """

    name = "draft_model"
    summary = "a smaller model of the same vocabulary"
    paper = "Leviathan et al. 2023; Chen et al. 2023"
    weights = "a language model of the target's vocabulary"
    default_weights = "embedded/draft-s"
    tells_doubt = True

    def __init__(self, draft: LanguageModel):
        self.draft = draft
        self.reset()

    @classmethod
    def build(cls, target: LanguageModel | None, draft: LanguageModel, **settings: Any) -> DraftModelProposer:
        if target is not None:
            check_same_vocabulary(target, draft)
        return cls(draft, **settings)

    def reset(self) -> None:
        self._cache = self.draft.new_cache()
        self._context_length = 0

    def prepare(self, context: Context) -> None:
        self._cache.reserve(min(context.longest, self.draft.max_context))
        if self.draft.engine == "compiled":
            for tokens in (1, 2):  # after full acceptance two are new to the draft
                self.draft.expect(tokens, 1)
            self.draft.prepare(self._cache)
            context.sampler.prepare(self.draft.blank_logits(1))

    def prefill(self, context: Context) -> None:
        """Forward the prompt but its last token, as the target does."""
        if 1 < len(context.tokens) <= self.draft.max_context:
            self.draft.forward(context.ids(0, -1), self._cache, rows=1)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        length = len(context.tokens)
        n = min(gamma, self.draft.max_context - length + 1)
        shortened = "draft_context" if n < gamma else ""
        if n <= 0:
            return nothing(context, shortened)
        self._context_length = length
        inputs = context.ids(self._cache.length)

        def logits_after(guesses: list[torch.Tensor]) -> torch.Tensor:
            return self.draft.forward(guesses[-1] if guesses else inputs, self._cache, rows=1).logits

        tokens, rows = draw_chain(context, n, choose, logits_after)
        forwards = tokens.shape[0]
        return Proposal(tokens, rows, forwards=forwards, positions=inputs.shape[0] + forwards - 1, shortened=shortened)

    def observe(self, decision: Decision) -> None:
        """Keep what reached the context, but its last token: accepted guesses, up to where EOS cut them off."""
        if decision.proposed:
            surplus = self._cache.length - (self._context_length + decision.emitted - 1)
            self._cache.rollback(max(0, surplus))

    @property
    def cache_bytes(self) -> int:
        return self._cache.nbytes

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": self.draft.describe()}
