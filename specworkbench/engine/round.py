"""A round as it happened: what the loop yields, and what recorders, displays and controllers are given."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from specworkbench.engine.contracts import Decision, Proposal, Verdict
from specworkbench.engine.rng import RoundUniforms


@dataclass(frozen=True)
class Round:
    """One round as it happened. Tensors stay on the device until somebody records them.

    gamma: tokens wanted, by the settings or a controller; asked: what of these fitted; target_probs: (n + 1, vocab);
    decision: the verdict on the host; stop_reason: None while decoding goes on; times: ms by phase and 'total'; cache
    sizes after the round.

    >>> from specworkbench.engine import decode, load_model, make_proposer
    >>> target, proposer, rounds = load_model("embedded"), make_proposer("ngram"), []
    >>> result = decode("a b a b", target=target, proposer=proposer, max_new_tokens=8, on_round=rounds.append)
    >>> rounds[0].index, tuple(rounds[0].target_probs.shape) == (len(rounds[0].proposal.tokens) + 1, target.vocab_size)
    (0, True)
    >>> sorted(rounds[0].times)
    ['accept', 'propose', 'rollback', 'total', 'verify']
    """

    sequence: int
    index: int
    context_length: int
    gamma: int
    asked: int
    shortened: str
    proposal: Proposal
    target_probs: torch.Tensor
    verdict: Verdict
    decision: Decision
    uniforms: RoundUniforms | None
    stop_reason: str | None
    times: dict[str, float]
    target_cache_tokens: int
    target_cache_bytes: int
    draft_cache_bytes: int

    @property
    def emitted(self) -> list[int]:
        """The tokens that reached the output."""
        return [*self.decision.kept, self.decision.next_token][: self.decision.emitted]
