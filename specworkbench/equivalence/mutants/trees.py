"""Faults that only trees can have: siblings, paths, who sees whom."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from specworkbench.engine.contracts import Decision, Proposal
from specworkbench.engine.loop import Sequence
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.trees import earlier_siblings, visible_rows
from specworkbench.engine.verifiers.tree import TreeVerifier
from specworkbench.equivalence.mutants.mutant import (
    ACCEPTED_RIGHTLY,
    CONSISTENT,
    NO_EDGE,
    TOO_SMALL,
    WRONG_ROWS,
    Mutant,
    only,
    said,
)
from specworkbench.equivalence.tree_toys import tree_setup


class ResidualForgotten(TreeVerifier):
    """A child is judged by p, as if no sibling had been refused before it."""

    def judge(self, proposal, target_probs):
        _, left = super().judge(proposal, target_probs)
        p = target_probs[proposal.parents + 1, proposal.tokens]
        q = proposal.draft_probs(target_probs).gather(-1, proposal.tokens.unsqueeze(-1)).squeeze(-1)
        return (p / q).clamp(max=1.0), left


class WrongRow(TreeVerifier):
    """A child is judged by the row that its first sibling was drawn from, not by that row without it, normalised.

    To strike the sibling's token out without normalising is the same: once refused, nothing is left of it.
    """

    def judge(self, proposal, target_probs):
        first = earlier_siblings(proposal.parents) | torch.eye(proposal.size, dtype=torch.bool)
        return super().judge(replace(proposal, probs=proposal.probs[first.int().argmax(-1)]), target_probs)


class CorrectedFromTarget(TreeVerifier):
    """After refused children the token is drawn from p."""

    def next_row(self, proposal, target_probs, left, row):
        return target_probs.index_select(0, row.unsqueeze(0))


class LastRefusedOnly(TreeVerifier):
    """After several refused children the residual lacks the last of them only."""

    def next_row(self, proposal, target_probs, left, row):
        p = target_probs.index_select(0, row.unsqueeze(0))
        children = torch.nonzero(proposal.parents == row - 1).flatten()
        return p if not len(children) else (p - proposal.draft_probs(p)[children[-1:]]).clamp(min=0.0)


class FirstNodesKept(Sequence):
    """The first nodes stay in the target's KV cache, not those of the path."""

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        self.cache.rollback(proposal.size - (decision.emitted - 1))
        self.proposer.observe(decision)


class SiblingsPenalised(Sequence):
    """The repetition penalty of a node sees its siblings, as if the nodes were a chain."""

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


def tree_rule(name: str, verifier: type[TreeVerifier], shows: str, **more) -> Mutant:
    """A mutant that exchanges the rule of trees."""
    return Mutant(name, said(verifier), "tree", shows, lambda setup: setup.but(verifier=verifier()), **more)


def tree_loop(name: str, sequence: type[Sequence], shows: str, **more) -> Mutant:
    """A mutant that exchanges what the decode loop does with trees."""
    apply = lambda setup: setup.but(sequence=sequence)  # noqa: E731
    return Mutant(name, said(sequence), "tree", shows, apply, first_token_exact=True, **more)


FIRST_CHILD = {
    "acceptance": "it counts the first child of a node only, which is judged rightly",
    "overweight": "it goes by the first child's q: once that child is refused, nothing of the set is left of p",
}
BY_FIRST_ROW = dict.fromkeys(("e-process", "fresh e-process"), "no alternative knows of a second child")

TREES = (
    tree_rule(
        "tree_residual_forgotten", ResidualForgotten, "at the second child", contracts=("accept_prob",), bench=certain,
        blind=NO_EDGE | FIRST_CHILD | BY_FIRST_ROW | {"cells": "the second child shares its cell with other tokens"},
        named="e-process",
    ),
    tree_rule(
        "tree_wrong_row", WrongRow, "at the second child", full_contracts=("accept_prob",), bench=without_replacement,
        blind=NO_EDGE | FIRST_CHILD,
    ),
    tree_rule(
        "tree_corrected_from_target", CorrectedFromTarget, "at the first corrected token", bench=certain,
        contracts=("probabilities",), full_contracts=("draws",), blind=NO_EDGE | ACCEPTED_RIGHTLY,
    ),
    tree_rule(
        "tree_last_refused_only", LastRefusedOnly, "after two refused children", bench=certain,
        contracts=("probabilities",), full_contracts=("draws",), blind=NO_EDGE | ACCEPTED_RIGHTLY,
    ),
    tree_loop(
        "tree_first_nodes_kept", FirstNodesKept, "in the round after a path that is not the first", bench=certain,
        blind=NO_EDGE | WRONG_ROWS | CONSISTENT,
    ),
    tree_loop(
        "tree_siblings_penalised", SiblingsPenalised, "after the second child", bench=penalised,
        blind=NO_EDGE | WRONG_ROWS | CONSISTENT | only(TOO_SMALL, "two-sample"),
    ),
)  # fmt: skip
