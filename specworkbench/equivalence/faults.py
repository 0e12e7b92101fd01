"""Faults that any rule can be given: the positive controls of a run, which its tests must reject."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from specworkbench.engine.contracts import Proposal, Verdict, Verifier
from specworkbench.engine.rng import Chooser


@dataclass
class Fault:
    """A chooser that decides as the one it has, but for what a fault states. target_probs: the rule's rows."""

    choose: Chooser
    target_probs: torch.Tensor

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        return self.choose.accept(probs)

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        return self.choose.draw(probs, at)


class AcceptEverything(Fault):
    """Every guess is accepted."""

    def accept(self, probs):
        return torch.ones_like(self.choose.accept(probs))


class ResampleFromTarget(Fault):
    """The token after a rejected guess is drawn from p, not from the residual."""

    def draw(self, probs, at=None):
        return self.choose.draw(self.target_probs[at], at)


class PreferTheBest(Fault):
    """One token in ten is the most probable one."""

    def draw(self, probs, at=None):
        rows = probs / probs.sum(-1, keepdim=True)
        best = torch.zeros_like(rows).scatter_(-1, rows.argmax(-1, keepdim=True), 1.0)
        return self.choose.draw(0.9 * rows + 0.1 * best, at)


FAULTS = {"accept": AcceptEverything, "resample": ResampleFromTarget, "best": PreferTheBest}


class FaultyVerifier(Verifier):
    """A rule under a fault, by the rule's own name. fault: a key of `FAULTS`."""

    def __init__(self, verifier: Verifier, fault: str):
        self._verifier, self._fault = verifier, FAULTS[fault]
        self.name, self.lossless, self.judges_trees = verifier.name, verifier.lossless, verifier.judges_trees

    def verify(self, proposal: Proposal, target_probs: torch.Tensor, choose: Chooser) -> Verdict:
        """See `Verifier.verify`. A bonus, drawn at the place after the last node, is left as it is, but by `best`."""
        return self._verifier.verify(proposal, target_probs, self._fault(choose, target_probs))


def control_for(greedy: bool, proposes: bool) -> str:
    """The fault that a run's positive control has: at temperature 0 the residual is p itself, so that resampling is no
    fault there; and without proposals there is nothing to accept or to reject.
    """
    return "accept" if greedy and proposes else "resample" if proposes else "best"
