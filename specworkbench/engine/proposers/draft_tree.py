"""A smaller model of the same vocabulary guesses a tree: many continuations, judged by one forward of the target."""

from __future__ import annotations

from dataclasses import replace

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.draft_model import DraftModelProposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.proposers.trees import GrowingTree, branches, confidence, most_grown
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError


class TreeDraftProposer(DraftModelProposer):
    """Drafts a tree of at most `nodes` nodes and of depth gamma, one forward of the draft a level.

    sampled=False: the tree grows where the draft is confident (EAGLE-2): each level continues the `width` most probable
    paths with their `width` most probable tokens, and the `nodes` most probable nodes of all are proposed. Guesses are
    certain (one-hot rows). Confidence is the draft's probability at the draft's temperature (1 at temperature 0) and
    under its penalty, before top-k, top-p and min-p.

    sampled=True: `width` first tokens drawn without replacement, each continued by a sampled chain down to gamma, or as
    far as `nodes` reach. A first token's row is q without its earlier siblings, normalised: what it was drawn from.
    Where the siblings are all that q holds, the next is drawn from q again.

    The draft's cache holds the context and the expanded nodes; of these the kept path stays. Raises `InputError` for
    settings below 1, nodes that do not suffice for one level, or a draft that cannot forward a tree.
    """

    name = "draft_tree"
    summary = "a tree of guesses of a smaller model of the same vocabulary"
    paper = "Miao et al. 2023 (SpecInfer); Li et al. 2024 (EAGLE-2)"
    drafts_trees = True

    def __init__(self, draft: LanguageModel, nodes: int = 16, width: int = 4, sampled: bool = False):
        if not 1 <= width <= nodes:
            raise InputError(f"nodes is {nodes} and width is {width}; they must satisfy 1 <= width <= nodes")
        draft.check_trees()
        self.draft, self.nodes, self.width, self.sampled = draft, nodes, width, sampled
        self.deterministic = not sampled
        self.reset()

    def reset(self) -> None:
        self._cache = self.draft.new_cache()
        self._drafted = 0  # expanded nodes at the end of the cache
        self._slots: torch.Tensor | None = None  # (n,) where each node stands among them

    def most_nodes(self, gamma: int) -> int:
        return min(self.nodes, self.width * gamma if self.sampled else most_grown(self.width, gamma))

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        self._drafted, self._slots = 0, None
        depth = min(gamma, self.draft.max_context - len(context.tokens) + 1)
        shortened = "draft_context" if depth < gamma else ""
        if depth <= 0:
            return nothing(context, shortened)
        inputs = context.ids(self._cache.length)
        logits = self.draft.forward(inputs, self._cache, rows=1).logits
        seen = None if context.seen is None else context.seen.unsqueeze(0)
        draw = self._sample if self.sampled else self._grow
        proposal = draw(context, depth, choose, logits, seen)
        return replace(
            proposal, forwards=proposal.forwards + 1, positions=proposal.positions + len(inputs), shortened=shortened
        )

    def _grow(
        self, context: Context, depth: int, choose: Chooser, logits: torch.Tensor, seen: torch.Tensor | None
    ) -> Proposal:
        """logits: (1, vocab) after the context; seen: (1, vocab) bools of the tokens in it, or None."""
        tree, sure = GrowingTree(self.width), confidence(context)
        tree.grow(sure(logits, seen).log())
        for _ in range(depth - 1):
            frontier = tree.frontier()
            logits, seen = self._expand(frontier.tokens, frontier.parents, frontier.visible, seen)
            tree.grow(sure(logits, seen).log())
        chosen = tree.best(self.nodes)
        self._slots = chosen.slots
        return Proposal(
            chosen.tokens, parents=chosen.parents, forwards=depth - 1, positions=self._drafted,
        )  # fmt: skip

    def _sample(
        self, context: Context, depth: int, choose: Chooser, logits: torch.Tensor, seen: torch.Tensor | None
    ) -> Proposal:
        """See `_grow`."""
        width, device = self.width, context.device
        shape = branches(width, min(depth, self.nodes // width))
        levels = shape.depths[-1]
        tokens, rows = _without_replacement(context.sampler(logits, seen), width, choose)
        all_tokens, all_rows = [tokens], [rows]
        parents = torch.zeros(width, dtype=torch.int64, device=device)
        eye = torch.eye(width, dtype=torch.bool, device=device)
        for level in range(1, levels):
            logits, seen = self._expand(tokens, parents, eye.repeat(1, level), seen)
            rows = context.sampler(logits, seen)
            tokens = choose.draw(rows, at=torch.arange(level * width, (level + 1) * width, device=device))
            parents = torch.arange(width, device=device)
            all_tokens.append(tokens)
            all_rows.append(rows)
        self._slots = torch.arange(len(shape.parents), device=device)
        return Proposal(
            torch.cat(all_tokens), torch.cat(all_rows), torch.tensor(shape.parents, device=device),
            forwards=levels - 1, positions=self._drafted,
        )  # fmt: skip

    def _expand(
        self, tokens: torch.Tensor, parents: torch.Tensor, visible: torch.Tensor, seen: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Forward one level: logits (m, vocab) after its nodes, and (m, vocab) which tokens each has before it."""
        logits = self.draft.forward(tokens, self._cache, visible=visible).logits
        self._drafted += tokens.shape[0]
        return logits, None if seen is None else seen[parents].scatter(-1, tokens.unsqueeze(-1), True)

    def observe(self, decision: Decision) -> None:
        """Keep the context and what was expanded of the kept path, which is all of it or all but its last node."""
        if not decision.proposed:
            return
        slots = self._slots.tolist()
        kept = [slots[node] for node in decision.nodes[: decision.emitted - 1]]
        self._cache.keep(self._drafted, [slot for slot in kept if 0 <= slot < self._drafted])


def _without_replacement(row: torch.Tensor, width: int, choose: Chooser) -> tuple[torch.Tensor, torch.Tensor]:
    """`width` tokens (width,) drawn one after the other, and the rows (width, vocab) they were drawn from.

    row: (1, vocab) probabilities. Each row is `row` without the tokens before, normalised; `row` where that is empty.
    """
    rest, tokens, rows = row, [], []
    for rank in range(width):
        total = rest.sum(-1, keepdim=True)
        own = torch.where(total > 0, rest / total, row) if rank else row
        token = choose.draw(own, at=torch.tensor([rank], device=row.device))
        rest = rest.scatter(-1, token.unsqueeze(-1), 0.0)
        tokens.append(token)
        rows.append(own)
    return torch.cat(tokens), torch.cat(rows)
