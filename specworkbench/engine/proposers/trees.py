"""How a proposer shapes a tree: grown by confidence (EAGLE-2), or of a fixed shape (Medusa, sampled branches).

Model-independent: whoever has rows for the leaves of a tree (a draft model, an EAGLE or MTP head) grows one here. Nodes
are numbered as `Proposal.parents` wants them. Nothing branches on a device value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from specworkbench.engine.contracts import Context
from specworkbench.engine.sampling import Sampler
from specworkbench.errors import InputError


@dataclass(frozen=True)
class Frontier:
    """The leaves that are to be expanded next.

    tokens: (m,) int64; parents: (m,) which row of the frontier before each continues (0, the context, at first);
    visible: (m, k) bools for `LanguageModel.forward`, k the tokens of all frontiers so far, these m at the end.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    visible: torch.Tensor


@dataclass(frozen=True)
class Chosen:
    """A finished tree: tokens (n,), parents (n,), and slots (n,), where each node stands among the tokens of all
    frontiers (what a drafting cache holds behind the context), -1 for a node that was never expanded.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    slots: torch.Tensor


class GrowingTree:
    """A tree grown level by level by confidence, as EAGLE-2's (Li et al. 2024).

    A node's value is the sum of log-probabilities on its path. Each level expands the `width` most valuable leaves of
    the level before into their `width` most probable children; `best` keeps the most valuable nodes of all. Values
    only fall along a path and earlier nodes win ties, so that a kept node's ancestors are kept too.

        tree = GrowingTree(width)
        tree.grow(log_probs)                       # (1, vocab), after the context
        while ...:
            frontier = tree.frontier()             # its m rows through the model give log_probs (m, vocab)
            tree.grow(log_probs)
        chosen = tree.best(nodes)
    """

    def __init__(self, width: int):
        self.width = width
        self._tokens: list[torch.Tensor] = []  # one entry a level, as all below
        self._parents: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._slots: list[torch.Tensor] = []
        self._size = self._expanded = 0
        self._nodes: torch.Tensor | None = None  # of the frontier, among all nodes
        self._visible: torch.Tensor | None = None

    def grow(self, log_probs: torch.Tensor) -> None:
        """Add the children of the frontier (of the context, at first). log_probs: (m, vocab), one row a leaf."""
        top = log_probs.topk(min(self.width, log_probs.shape[-1]), dim=-1)
        rows, width = top.indices.shape
        if self._nodes is None:
            self._nodes, before = torch.full((1,), -1, device=log_probs.device), top.values.new_zeros(1)
        else:
            before = self._values[-1][self._nodes - (self._size - self._values[-1].shape[0])]
        self._tokens.append(top.indices.flatten())
        self._parents.append(self._nodes.repeat_interleave(width))
        self._values.append((before.unsqueeze(-1) + top.values).flatten())
        self._slots.append(torch.full((rows * width,), -1, device=log_probs.device))
        self._size += rows * width

    def frontier(self) -> Frontier:
        """The most valuable nodes of the last level, in the order of the level; the next `grow` is theirs."""
        values = self._values[-1]
        start, m = self._size - values.shape[0], min(self.width, values.shape[0])
        at = values.topk(m).indices.sort().values
        self._slots[-1][at] = torch.arange(self._expanded, self._expanded + m, device=at.device)
        self._expanded += m
        branches = values.shape[0] // self._nodes.shape[0]
        parents = at // branches
        own = torch.eye(m, dtype=torch.bool, device=at.device)
        visible = own if self._visible is None else torch.cat([self._visible[parents], own], dim=-1)
        self._nodes, self._visible = at + start, visible
        return Frontier(self._tokens[-1][at], parents, visible)

    def best(self, nodes: int) -> Chosen:
        """The tree of the `nodes` most valuable nodes, or of all where there are fewer."""
        values, parents = torch.cat(self._values), torch.cat(self._parents)
        order = values.sort(descending=True, stable=True).indices
        kept = order[:nodes].sort().values
        number = torch.full_like(parents, -1).index_copy_(0, kept, torch.arange(kept.shape[0], device=kept.device))
        above = parents[kept]
        above = torch.where(above < 0, -1, number[above])
        return Chosen(torch.cat(self._tokens)[kept], above, torch.cat(self._slots)[kept])


def most_grown(width: int, depth: int) -> int:
    """How many nodes a `GrowingTree` of this depth has at most."""
    return width + (depth - 1) * width**2


@dataclass(frozen=True)
class Topology:
    """A tree of fixed shape: parents (n,) as in `Proposal`; depths (n,) from 1; ranks (n,), which of its parent's
    candidates a node is, 0 the most probable. On the host.
    """

    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ranks: tuple[int, ...]

    def cut(self, depth: int) -> Topology:
        """The same without what is deeper."""
        kept = sum(found <= depth for found in self.depths)
        return Topology(self.parents[:kept], self.depths[:kept], self.ranks[:kept])


def from_paths(paths: Sequence[Sequence[int]]) -> Topology:
    """A topology from paths of ranks, as Medusa (Cai et al. 2024) writes them: [[0], [1], [0, 0], [0, 1], ...].

    A path names a node: which candidate to take at each depth. Nodes are numbered level by level. Raises `InputError`
    for a path that is there twice, or whose beginning is not a node.
    """
    ordered = sorted((tuple(path) for path in paths), key=lambda path: (len(path), path))
    number = {(): -1} | {path: node for node, path in enumerate(ordered)}
    if len(number) != len(ordered) + 1:
        raise InputError("a tree names a path twice, or an empty one; every node has one path of at least one rank")
    for path in ordered:
        if path[:-1] not in number:
            raise InputError(f"the tree has the path {list(path)} and not its beginning {list(path[:-1])}; add that")
    return Topology(
        tuple(number[path[:-1]] for path in ordered),
        tuple(len(path) for path in ordered),
        tuple(path[-1] for path in ordered),
    )


def branches(width: int, depth: int) -> Topology:
    """`width` children of the context, each continued as a chain down to `depth`."""
    return from_paths([(rank, *(0,) * tail) for rank in range(width) for tail in range(depth)])


def confidence(context: Context) -> Sampler:
    """How sure a row is of its tokens: the draft's own sampling without cuts, at temperature 1 where it is greedy."""
    settings = context.sampler.settings
    temperature = settings.temperature or 1.0
    return Sampler(replace(settings, temperature=temperature, top_k=0, top_p=1.0, min_p=0.0), context.device)
