"""Faults of the uniforms: which one a decision reads, and how it is compared."""

from __future__ import annotations

from functools import partial

import torch

from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.mutants.mutant import NO_EDGE, OF_SAMPLES, ORDER_OF_TOKENS, Mutant, of_uniforms, said
from specworkbench.equivalence.toys import table_setup


def one_uniform_for_all(stream: str, position: int) -> tuple[str, int]:
    """All positions of a round are compared with one u."""
    return (stream, 0) if stream == "accept" else (stream, position)


def uniform_reused(stream: str, position: int) -> tuple[str, int]:
    """The residual is drawn with the u that rejected the guess."""
    return ("accept" if stream == "residual" else stream), position


def draft_noise_reused(stream: str, position: int) -> tuple[str, int]:
    """The residual is drawn with the u that the rejected guess was drawn with."""
    return ("draft" if stream == "residual" else stream), position


class AtMost(UniformChooser):
    """A guess is accepted where u <= min(1, p/q), so at u = 0 one that the target never gives, too."""

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        below = super().accept(probs)
        return below | (self.accept_uniforms[self._accepted - len(probs) : self._accepted] == probs)


reused = partial(
    of_uniforms, shows="at the first rejected position", contracts=("uniforms",), blind=NO_EDGE | ORDER_OF_TOKENS,
)  # fmt: skip

UNIFORMS = (
    of_uniforms(
        "one_uniform_for_all", one_uniform_for_all, "at the second position of a round", first_token_exact=True,
        contracts=("uniforms",), blind=NO_EDGE,
    ),
    reused("uniform_reused", uniform_reused),
    reused("draft_noise_reused", draft_noise_reused),
    Mutant(
        "u_at_most", said(AtMost), "uniforms", "where u is exactly 0 and p is 0",
        lambda setup: setup.but(chooser=AtMost), first_token_exact=True,
        blind={"law": "a uniform of exactly 0 has probability 0"}
        | dict.fromkeys(("contracts", *OF_SAMPLES), "a uniform of exactly 0 comes once in 2^53 draws"),
        bench=partial(table_setup, sampling=SamplingSettings(top_k=3), draft_sampling=SamplingSettings()),
    ),
)  # fmt: skip
