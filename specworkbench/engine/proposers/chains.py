"""How a proposer draws a chain, guess after guess. Its counterpart for trees is `trees`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from specworkbench.engine.contracts import Context
from specworkbench.engine.proposers.trees import confidence
from specworkbench.engine.rng import Chooser


def draw_chain(
    context: Context, n: int, choose: Chooser, logits_after: Callable[[list[torch.Tensor]], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to n guesses, (m,), and the (m, vocab) rows they were drawn from, each after the ones before.

    logits_after: the guesses so far, (1,) each, to the draft's logits after them, (1, vocab). Where there is a
    `context.stop_below`, a guess that the draft gave less than that (see `confidence`) is the last one.
    """
    seen, guesses, rows = context.seen, [], []
    for before in range(n):
        logits = logits_after(guesses)
        row, drawn = context.sampler.draw(logits, choose, seen, ahead=before)
        rows.append(row)
        guesses.append(drawn)
        if context.stop_below and before + 1 < n:
            sure = confidence(context)(logits, seen, ahead=before)[0, drawn]
            if sure < context.stop_below:
                break
        if seen is not None:
            seen = seen.index_fill(0, drawn, True)
    return torch.cat(guesses), torch.cat(rows)
