"""The target's own first layers guess, and its own head reads them: self-drafting by early exit.

Zhang et al. 2023 (Draft & Verify, arXiv 2309.08168: any subset of the layers); Elhoushi et al. 2024 (LayerSkip, arXiv
2404.16710: the first layers, whose cache the verification shares).
"""

from __future__ import annotations

from typing import Any

from specworkbench.engine.contracts import Context, Decision, Needs, Proposal
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.draft_model import DraftModelProposer
from specworkbench.engine.rng import Chooser
from specworkbench.engine.truncated import TruncatedModel
from specworkbench.errors import InputError


class LayerSkipProposer(DraftModelProposer):
    """Draws gamma tokens from some of the target's layers, its final norm and its head, one forward each.

    layers: the first so many (0: half of the target's); subset: the numbers of the layers, 0-based and increasing, in
    place of the first ones. The first layers compute the same whether the later ones follow or not, so they draft on
    the target's own cache, which already holds every token but the last: there is no draft prefill, and no cache of
    its own. The input of a layer after a skipped one is not what the target computed: any other subset keeps a cache
    of its own, as a draft model does. Raises `InputError` for layers that the target does not have.
    """

    name = "layer_skip"
    summary = "the target's own first layers, or some of its layers, with its own head"
    paper = "Zhang et al. 2023; Elhoushi et al. 2024"
    weights = ""
    default_weights = None
    needs_target = True

    def __init__(self, target: LanguageModel, layers: int = 0, subset: tuple[int, ...] = ()):
        self.layers, self.subset = layers, tuple(subset)
        super().__init__(TruncatedModel(target, self.subset or _first(target, layers)))
        self.shared = self.draft.is_prefix
        self.needs = Needs(cache=self.shared)
        self._not_recomputed = 0

    @classmethod
    def build(cls, target: LanguageModel, draft: Any, **settings: Any) -> LayerSkipProposer:
        return cls(target, **settings)

    def reset(self) -> None:
        super().reset()
        self._own_length = 0  # what a cache of its own would hold

    def prefill(self, context: Context) -> None:
        if not self.shared:
            super().prefill(context)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        if self.shared:
            self._cache = self.draft.borrowed(context.cache)
            self._not_recomputed += self._cache.length - self._own_length
        return super().propose(context, gamma, choose)

    def observe(self, decision: Decision) -> None:
        """Keep of a cache of its own what was accepted; give a borrowed one back."""
        super().observe(decision)
        if self.shared and decision.proposed:
            self._own_length = self._cache.length
            self._cache = self.draft.new_cache()

    def describe(self) -> dict[str, Any]:
        """The layers used, and how many tokens their own cache would have had to compute that the target's held."""
        return super().describe() | {
            "layers": list(self.draft.numbers),
            "shared_cache": self.shared,
            "cached_tokens_not_recomputed": self._not_recomputed,
        }


def _first(target: LanguageModel, layers: int) -> tuple[int, ...]:
    """Numbers of the first layers; half of them for 0. What cannot be truncated is refused when it is."""
    depth = target.model.config.get_text_config().num_hidden_layers
    if not 0 <= layers <= depth:
        raise InputError(
            f"layers of the proposer layer_skip is {layers}; the target has {depth}: choose 1 to {depth} (0: half)"
        )
    return tuple(range(layers or max(1, depth // 2)))
