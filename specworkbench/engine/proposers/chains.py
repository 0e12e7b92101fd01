"""How a proposer draws a chain, guess after guess. Its counterpart for trees is `trees`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from specworkbench.engine.contracts import Context
from specworkbench.engine.rng import Chooser

RowOf = Callable[[list[torch.Tensor], torch.Tensor | None], torch.Tensor]
"""The guesses so far, (1,) each, and which tokens occurred before, theirs too, to the next row q (1, vocab)."""


def draw_chain(context: Context, n: int, choose: Chooser, row_of: RowOf) -> tuple[torch.Tensor, torch.Tensor]:
    """(n,) guesses and the (n, vocab) rows they were drawn from, each after the ones before."""
    seen, guesses, rows = context.seen, [], []
    for _ in range(n):
        rows.append(row_of(guesses, seen))
        guesses.append(choose.draw(rows[-1]))
        if seen is not None:
            seen = seen.index_fill(0, guesses[-1], True)
    return torch.cat(guesses), torch.cat(rows)
