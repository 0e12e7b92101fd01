"""The target's rows computed anew, with an empty cache: what a round's rows are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch

from specworkbench.engine.models import LanguageModel
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.numerics.settings import processed

Shape = Literal["full", "single"] | int
"""How the tokens go forward: all in one forward; one by one, as plain decoding does; or so many at a time."""


@torch.inference_mode()
def each_fresh_logits(
    target: LanguageModel, tokens: Sequence[int], rows: int, shape: Shape = "full", prefill: int | None = None
) -> Iterator[np.ndarray]:
    """(vocab,) float64 logits after each of the last `rows` of the tokens, one after the other, by an empty cache.

    prefill: how many tokens go forward together before the others follow in the given shape; by default all for which
    no row is asked. The last forward of several tokens is filled up to its width: what follows a row cannot change it.

    >>> from specworkbench.equivalence import TableModel
    >>> [logits.shape for logits in each_fresh_logits(TableModel(vocab=5), [0, 1, 0], rows=2)]
    [(5,), (5,)]
    """
    ids = torch.tensor(tokens, dtype=torch.int64, device=target.device)
    cache, n = target.new_cache(), len(tokens)
    if shape == "full":
        yield from _numpy(target.forward(ids, cache, rows=rows).logits)
        return
    width = 1 if shape == "single" else shape
    start = n - rows if prefill is None else min(prefill, n - rows)
    ids = torch.cat([ids, ids[-1:].repeat(min(-(n - start) % width, target.max_context - n))])
    if start:
        target.forward(ids[:start], cache, rows=1)
    for number, block in enumerate(ids[start:].split(width)):
        cache.rollback(0)
        for place, logits in enumerate(_numpy(target.forward(block, cache).logits), start + number * width):
            if n - rows <= place < n:
                yield logits


def fresh_logits(*arguments: Any, **more: Any) -> np.ndarray:
    """(rows, vocab) the same as one array.

    >>> from specworkbench.equivalence import toy_model
    >>> together, single = (fresh_logits(toy_model(), [0, 1, 2], rows=2, shape=shape) for shape in ("full", "single"))
    >>> together.shape, bool(np.allclose(together, single))
    ((2, 5), True)
    """
    return np.stack(list(each_fresh_logits(*arguments, **more)))


def fresh_rows(
    context: Sequence[int],
    proposed: Sequence[int],
    target: LanguageModel,
    sampling: SamplingSettings,
    *,
    parents: Sequence[int] | None = None,
    shape: Shape = "full",
    prefill: int | None = None,
) -> np.ndarray:
    """(n + 1, vocab) the target's distributions after the context and after each of the n proposed tokens.

    context: all tokens before the round; parents: of a tree, the node each node continues, -1 the context. Settings are
    applied by `settings.processed`, row by row; a penalty sees the context and the tokens between it and the row.
    prefill: see `each_fresh_logits`.

    >>> from specworkbench.equivalence import TableModel
    >>> fresh_rows([0, 1], [2], TableModel(vocab=3), SamplingSettings(top_k=2)).round(3)
    array([[0.   , 0.584, 0.416],
           [0.94 , 0.   , 0.06 ]])
    """
    rows = round_logits(context, proposed, target, parents=parents, shape=shape, prefill=prefill)
    return np.stack([processed(logits, before, sampling) for before, logits in rows])


def round_logits(
    context: Sequence[int],
    proposed: Sequence[int],
    target: LanguageModel,
    *,
    parents: Sequence[int] | None = None,
    shape: Shape = "full",
    prefill: int | None = None,
) -> list[tuple[list[int], np.ndarray]]:
    """The same before settings: for each row all tokens before it, and its logits (vocab,).

    A path of a tree is forwarded as a chain, so that no mask is needed.

    >>> from specworkbench.equivalence import TableModel
    >>> [before for before, _ in round_logits([0, 1], [2, 3, 4], TableModel(vocab=5), parents=[-1, -1, 0])]
    [[0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 4]]
    """
    nodes: list[list[int]] = [[]]  # between the context and each row
    for node, parent in enumerate(range(-1, len(proposed) - 1) if parents is None else parents):
        nodes.append([*nodes[parent + 1], node])
    before = [[*context, *(proposed[node] for node in path)] for path in nodes]
    found: dict[int, np.ndarray] = {}
    for row in sorted(range(len(nodes)), key=lambda row: -len(nodes[row])):
        if row not in found:  # with it come the rows on its way
            on_its_way = [0, *(node + 1 for node in nodes[row])]
            logits = each_fresh_logits(target, before[row], len(on_its_way), shape, prefill)
            found |= dict(zip(on_its_way, logits, strict=True))
    return [(before[row], found[row]) for row in range(len(nodes))]


def _numpy(logits: torch.Tensor) -> np.ndarray:
    return logits.double().cpu().numpy()
