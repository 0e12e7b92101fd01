"""How a proposer draws a chain, guess after guess. Its counterpart for trees is `trees`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from specworkbench.engine.contracts import Context

Guess = Callable[[list[torch.Tensor], torch.Tensor | None], tuple[torch.Tensor, torch.Tensor]]
"""The guesses so far, (1,) each, and which tokens occurred before, theirs too, to the next row q (1, vocab) and the
guess drawn from it (1,)."""


def draw_chain(context: Context, n: int, guess: Guess) -> tuple[torch.Tensor, torch.Tensor]:
    """(n,) guesses and the (n, vocab) rows they were drawn from, each after the ones before."""
    seen, guesses, rows = context.seen, [], []
    for _ in range(n):
        row, drawn = guess(guesses, seen)
        rows.append(row)
        guesses.append(drawn)
        if seen is not None:
            seen = seen.index_fill(0, guesses[-1], True)
    return torch.cat(guesses), torch.cat(rows)
