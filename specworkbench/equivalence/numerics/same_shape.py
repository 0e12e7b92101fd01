"""Plain sampling that runs the kernels of speculative rounds, so that a comparison with it sees no kernels change."""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Decision, Proposal
from specworkbench.engine.loop import Sequence
from specworkbench.engine.proposers import NoProposer
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError


class SameShape(Sequence):
    """A plain sequence whose every forward has the rows of a speculative one that starts at the same context.

    The last token of the context goes forward together with as many fillers as would be proposed there (gamma, fewer at
    the end), the first row is used and the fillers are taken back. Fillers are the last token again: rows of a causal
    model do not see what comes after them. Raises `InputError` for a proposer that proposes.

    >>> from specworkbench.engine import decode_rounds
    >>> from specworkbench.equivalence import table_setup
    >>> setup = same_shape(table_setup())
    >>> sequence = setup.start(setup.streams(seed=0))
    >>> [step.decision.outcome for step in decode_rounds(sequence)], isinstance(sequence, SameShape)
    (['plain', 'plain', 'plain'], True)
    """

    def __init__(self, *parts: Any, **more: Any):
        super().__init__(*parts, **more)
        if not isinstance(self.proposer, NoProposer):
            raise InputError(
                f"the proposer of a same-shape baseline is {self.proposer.name!r}; it samples plainly, give it none"
            )
        self._fillers = 0

    def _target_rows(self, last: torch.Tensor, proposal: Proposal) -> torch.Tensor:
        self._fillers, _ = self._asked(self.settings.gamma, len(self.context.tokens))
        logits = self.target.forward(last.repeat(1 + self._fillers), self.cache).logits
        return self.sampler(logits[:1], self.context.seen, proposal.tokens)

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        self.cache.rollback(self._fillers)
        self.proposer.observe(decision)


def plain(setup: Setup) -> Setup:
    """The same target, prompt and settings, sampled plainly.

    >>> from specworkbench.equivalence import table_setup
    >>> plain(table_setup()).proposer.name
    'none'
    """
    proposer = NoProposer()
    verifier = make_verifier(None, setup.settings.sampling, proposer)
    return Setup(setup.target, setup.prompt, setup.settings, proposer, verifier)


def same_shape(setup: Setup) -> Setup:
    """The same, by forwards of gamma + 1 rows.

    >>> from specworkbench.equivalence import run, table_setup
    >>> setup = table_setup(length=8)
    >>> run(same_shape(setup), setup.streams(seed=0)) == run(plain(setup), setup.streams(seed=0))
    True
    """
    return plain(setup).but(sequence=SameShape)
