"""What follows from the parents of a tree of guesses, as tensors: ancestors, depths, siblings, who sees whom.

parents: (n,) int64, the node each node continues, -1 the context; a parent precedes its children, and siblings stand in
the order in which they are to be tried. No function here branches on a device value.
"""

from __future__ import annotations

import torch


def ancestors(parents: torch.Tensor) -> torch.Tensor:
    """(n, n) bools: row i marks node i and every node between it and the context."""
    n = parents.shape[0]
    order = torch.arange(n, device=parents.device)
    reach = ((parents.unsqueeze(-1) == order) | (order.unsqueeze(-1) == order)).float()
    for _ in range((n - 1).bit_length()):  # each time twice as far
        reach = (reach @ reach).clamp_(max=1.0)
    return reach > 0


def depths(ancestry: torch.Tensor) -> torch.Tensor:
    """(n,) int64, 1 for a child of the context; from `ancestors`."""
    return ancestry.sum(-1)


def rows_ahead(ancestry: torch.Tensor) -> torch.Tensor:
    """(n + 1,) int64, how many nodes each row of a round has before it: none the context's, a node's its own depth."""
    return torch.nn.functional.pad(depths(ancestry), (1, 0))


def earlier_siblings(parents: torch.Tensor) -> torch.Tensor:
    """(n, n) bools: row i marks the children of the same parent that are to be tried before node i."""
    return (parents.unsqueeze(-1) == parents).tril_(-1)


def visible_rows(ancestry: torch.Tensor) -> torch.Tensor:
    """(n + 1, n + 1) bools for `LanguageModel.forward` over the last token of the context and then the nodes.

    Every row sees the last token; a node also sees its ancestors and itself. ancestry: (n, n), from `ancestors`.
    """
    rows = torch.nn.functional.pad(ancestry, (1, 0, 1, 0))
    rows[:, 0] = True
    return rows


def depths_of(parents: list[int]) -> list[int]:
    """The same on the host: depth of each node, 1 for a child of the context. Raises `ValueError` for no such tree."""
    found: list[int] = []
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise ValueError(f"node {node} continues node {parent}; a parent must precede its children")
        found.append(1 if parent < 0 else found[parent] + 1)
    return found
