"""Wrong implementations for trees that the exact law must reject; see `mutants`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from specworkbench.engine.contracts import Decision, Proposal
from specworkbench.engine.loop import Sequence
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.trees import earlier_siblings, visible_rows
from specworkbench.engine.verifiers.tree import TreeVerifier
from specworkbench.equivalence.mutants import Mutant, loop, rule
from specworkbench.equivalence.tree_toys import tree_setup


class ResidualForgotten(TreeVerifier):
    """Every child is judged by p itself."""

    def judge(self, proposal, target_probs):
        _, left = super().judge(proposal, target_probs)
        p = target_probs[proposal.parents + 1, proposal.tokens]
        q = proposal.draft_probs(target_probs).gather(-1, proposal.tokens.unsqueeze(-1)).squeeze(-1)
        return (p / q).clamp(max=1.0), left


class WrongRow(TreeVerifier):
    """Every child is judged, and taken off, by the row of its first sibling."""

    def judge(self, proposal, target_probs):
        first = earlier_siblings(proposal.parents) | torch.eye(proposal.size, dtype=torch.bool)
        return super().judge(replace(proposal, probs=proposal.probs[first.int().argmax(-1)]), target_probs)


class CorrectedFromTarget(TreeVerifier):
    """The corrected token is drawn from p, whatever was refused."""

    def next_row(self, proposal, target_probs, left, row):
        return target_probs.index_select(0, row.unsqueeze(0))


class LastRefusedOnly(TreeVerifier):
    """What is left after several refused children lacks the last of them only."""

    def next_row(self, proposal, target_probs, left, row):
        p = target_probs.index_select(0, row.unsqueeze(0))
        children = torch.nonzero(proposal.parents == row - 1).flatten()
        return p if not len(children) else (p - proposal.draft_probs(p)[children[-1:]]).clamp(min=0.0)


class FirstNodesKept(Sequence):
    """As many nodes stay in the target's cache as were accepted, but the first ones, not those of the path."""

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        self.cache.rollback(proposal.size - (decision.emitted - 1))
        self.proposer.observe(decision)


class SiblingsPenalised(Sequence):
    """The penalty takes the nodes for a chain: a node's row is penalised for all nodes before it."""

    def _target_rows(self, last: torch.Tensor, proposal: Proposal) -> torch.Tensor:
        proper = super()._target_rows(last, proposal)
        if not proposal.is_tree:
            return proper
        visible = visible_rows(proposal.ancestors)
        self.cache.rollback(proposal.size + 1)
        logits = self.target.forward(torch.cat([last, proposal.tokens]), self.cache, visible=visible).logits
        return self.sampler(logits, self.context.seen, proposal.tokens)


without_replacement = partial(tree_setup, kind="without replacement", vocab=4, length=2, gamma=1, noise=2.0)
certain = partial(tree_setup, kind="certain, ragged", vocab=4)
penalised = partial(certain, sampling=SamplingSettings(repetition_penalty=2.5))

TREE_MUTANTS = (
    Mutant(
        "tree_residual_forgotten", "a child is judged by p, as if no sibling had been refused before it", "law",
        "at the second child", rule(ResidualForgotten), contracts=("accept_prob",), bench=certain,
    ),
    Mutant(
        "tree_wrong_row", "a child is judged by the row its first sibling was drawn from", "law",
        "at the second child", rule(WrongRow), bench=without_replacement,
    ),
    Mutant(
        "tree_corrected_from_target", "the corrected token is drawn from p", "law",
        "at the first corrected token", rule(CorrectedFromTarget), contracts=("probabilities",), bench=certain,
    ),
    Mutant(
        "tree_last_refused_only", "the residual lacks the last refused child only", "law",
        "after two refused children", rule(LastRefusedOnly), contracts=("probabilities",), bench=certain,
    ),
    Mutant(
        "tree_first_nodes_kept", "the first nodes stay in the target's cache, not those of the path", "law",
        "in the round after a path that is not the first", loop(FirstNodesKept), first_token_exact=True, bench=certain,
    ),
    Mutant(
        "tree_siblings_penalised", "the repetition penalty of a node sees its siblings", "law",
        "after the second child", loop(SiblingsPenalised), first_token_exact=True, bench=penalised,
    ),
)  # fmt: skip
