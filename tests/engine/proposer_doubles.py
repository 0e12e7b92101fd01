"""A rule with a script, and a proposer that is compared with itself: what the checks of a proposer's state stand on."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice

import torch

from specworkbench.engine.contracts import Context, Proposal, Proposer, Verdict
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.rng import Chooser, UniformChooser
from specworkbench.engine.trees import depths_of
from tests.engine.proposer_cases import Case


class Scripted:
    """A rule that accepts as many guesses as its script says, whatever they are: for states, never for laws."""

    name, lossless, greedy_only, judges_trees = "scripted", False, False, True

    def __init__(self, gamma: int, shift: int):
        self.lengths = islice(cycle((0, 1, gamma, gamma - 1, gamma)), shift % 5, None)
        self.tokens = islice(cycle((0, 1, 3)), shift % 3, None)

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        n, wanted, path = proposal.size, next(self.lengths), []
        if proposal.is_tree:
            path = first_path(proposal.parents.tolist())[:wanted]
        accepted = torch.tensor(len(path) if proposal.is_tree else min(wanted, n))
        kept = torch.tensor(path + [-1] * (n - len(path))) if proposal.is_tree else None
        row = target_probs[path[-1] + 1 if path else 0] if proposal.is_tree else target_probs[accepted]
        return Verdict(accepted, torch.tensor(next(self.tokens)), row, torch.ones(n), torch.ones(n), kept)


def first_path(parents: list[int]) -> list[int]:
    """The deepest path of a tree, the first among equals."""
    depth = depths_of(parents)
    node, path = depth.index(max(depth)), []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


class Compared(Proposer):
    """A proposer whose every proposal is compared with that of one that reads the whole context anew."""

    def __init__(self, case: Case, target: LanguageModel):
        self.case, self.target, self.inner = case, target, case.build(target)
        self.name, self.needs, self.drafts_trees = self.inner.name, self.inner.needs, self.inner.drafts_trees
        self.most_nodes = self.inner.most_nodes
        self.prefill, self.observe, self.reset = self.inner.prefill, self.inner.observe, self.inner.reset

    def propose(self, context: Context, gamma: int, choose: UniformChooser) -> Proposal:
        found = self.inner.propose(context, gamma, UniformChooser(None, choose.draw_uniforms))
        fresh, context = self.case.build(self.target), self.anew(context)
        if context.round % 2:  # reading the prompt beforehand is optional
            fresh.prefill(context)
        expected = fresh.propose(context, gamma, UniformChooser(None, choose.draw_uniforms))
        assert found.tokens.tolist() == expected.tokens.tolist()
        assert (found.parents is None) == (expected.parents is None)
        assert found.parents is None or torch.equal(found.parents, expected.parents)
        assert (found.probs is None) == (expected.probs is None)
        if found.probs is not None:
            torch.testing.assert_close(found.probs, expected.probs, rtol=0, atol=1e-10)
        return found

    def anew(self, context: Context) -> Context:
        """The context as whoever has seen nothing of it finds it: what it needs is of all tokens but the last."""
        cache, hidden = self.target.new_cache(), {}
        if len(context.tokens) > 1 and (self.needs.hidden_layers or self.needs.cache):
            ids = context.ids(0, -1)
            hidden = self.target.forward(ids, cache, rows=1, layers=self.needs.hidden_layers).hidden
        return replace(context, tokens=list(context.tokens), hidden=hidden, cache=cache if self.needs.cache else None)
