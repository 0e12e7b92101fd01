"""How a proposer drafts a tree: grown by confidence (EAGLE-2), or sampled without replacement over a fixed shape.

Model-independent: whoever has rows for the leaves of a tree (a draft model, an EAGLE or MTP head) drafts one here.
Nodes are numbered as `Proposal.parents` wants them. Nothing branches on a device value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from specworkbench.engine.contracts import Context
from specworkbench.engine.rng import Chooser
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
    frontiers (what a drafting cache holds behind the context), -1 for a node that was never expanded. rows: (n, vocab)
    what the tokens were drawn from, None where they are certain.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    slots: torch.Tensor
    rows: torch.Tensor | None = None


BRANCHINGS = ("auto", "top-k", "sampled")


@dataclass(frozen=True)
class TreeSettings:
    """nodes: the most nodes; width: children of the context, and of every expanded node where the tree is grown.

    branching: 'top-k' grows the tree by confidence, its guesses certain; 'sampled' draws `width` first tokens, or as
    many as the nodes allow at full depth, without replacement, and goes on from each with a sampled chain; 'auto' is
    'top-k' where the draft is greedy and 'sampled' otherwise: a certain guess x is accepted with p(x), which is little
    where p is spread out. Raises `InputError` for values out of range.
    """

    nodes: int = 16
    width: int = 4
    branching: str = "auto"

    def __post_init__(self) -> None:
        if not 1 <= self.width <= self.nodes:
            raise InputError(f"nodes is {self.nodes} and width is {self.width}; they must satisfy 1 <= width <= nodes")
        if self.branching not in BRANCHINGS:
            raise InputError(f"branching is {self.branching!r}; choose one of {', '.join(BRANCHINGS)}")

    def samples(self, sampler: Sampler) -> bool:
        """Whether a tree is sampled under this sampling of the draft."""
        return self.branching == "sampled" or (self.branching == "auto" and not sampler.settings.greedy)

    def most(self, depth: int) -> int:
        """The most nodes of a tree of this depth, however it branches."""
        return min(self.nodes, most_grown(self.width, depth))

    def shape(self, depth: int) -> Topology:
        """The shape of a sampled tree."""
        depth = min(depth, self.nodes)
        return branches(min(self.width, self.nodes // depth), depth)


class Expansion:
    """Logits of a tree's nodes, level by level, with which tokens each node has before it (for a repetition penalty).

    forward: (frontier, depth of its nodes) to logits (m, vocab) after them.
    """

    def __init__(self, context: Context, forward: Callable[[Frontier, int], torch.Tensor]):
        self._forward = forward
        self.seen = None if context.seen is None else context.seen.unsqueeze(0)

    def __call__(self, frontier: Frontier, depth: int) -> torch.Tensor:
        if self.seen is not None:
            self.seen = self.seen[frontier.parents].scatter(-1, frontier.tokens.unsqueeze(-1), True)
        return self._forward(frontier, depth)


def draft_tree(
    context: Context, settings: TreeSettings, depth: int, choose: Chooser, logits: torch.Tensor,
    forward: Callable[[Frontier, int], torch.Tensor],
) -> Chosen:  # fmt: skip
    """A tree of this depth. logits: (1, vocab) after the context; forward: see `Expansion`."""
    expand = Expansion(context, forward)
    if settings.samples(context.sampler):
        return sampled_tree(context, settings.shape(depth), choose, logits, expand)
    tree, sure = GrowingTree(settings.width), confidence(context)
    tree.grow(sure(logits, expand.seen, ahead=0).log())
    for level in range(1, depth):
        logits = expand(tree.frontier(), level)
        tree.grow(sure(logits, expand.seen, ahead=level).log())
    return tree.best(settings.nodes)


def sampled_tree(
    context: Context, shape: Topology, choose: Chooser, logits: torch.Tensor, expand: Expansion
) -> Chosen:
    """A tree of this shape whose siblings are drawn without replacement. logits: (1, vocab) after the context.

    The row of a node is its parent's q without the node's earlier siblings, normalised, which is what it was drawn
    from; where the siblings are all that q holds, q again. (RSD: Jeon et al. 2024; Sequoia: Chen et al. 2024.)
    """
    n, device = len(shape.parents), context.device
    rows = context.sampler(logits, expand.seen, ahead=0)
    tokens, drawn = torch.empty(n, dtype=torch.int64, device=device), rows.new_empty(n, rows.shape[-1])
    slots, place, visible, expanded = [-1] * n, {-1: 0}, None, 0
    for depth in range(1, shape.depths[-1] + 1):
        level = [node for node in range(n) if shape.depths[node] == depth]
        rest = rows.clone()
        for rank in range(1 + max(shape.ranks[node] for node in level)):
            at = [node for node in level if shape.ranks[node] == rank]
            parents = [place[shape.parents[node]] for node in at]
            total = rest[parents].sum(-1, keepdim=True)
            own = torch.where(total > 0, rest[parents] / total, rows[parents]) if rank else rows[parents]
            tokens[at] = picked = choose.draw(own, at=torch.tensor(at, device=device))
            drawn[at] = own
            rest[parents, picked] = 0.0
        inner = [node for node in level if node in shape.parents]
        if inner:
            parents = torch.tensor([place[shape.parents[node]] for node in inner], device=device)
            own = torch.eye(len(inner), dtype=torch.bool, device=device)
            visible = own if visible is None else torch.cat([visible[parents], own], dim=-1)
            logits = expand(Frontier(tokens[inner], parents, visible), depth)
            rows = context.sampler(logits, expand.seen, ahead=depth)
            place = {node: i for i, node in enumerate(inner)}
            for node in inner:
                slots[node] = expanded + place[node]
            expanded += len(inner)
    return Chosen(tokens, torch.tensor(shape.parents, device=device), torch.tensor(slots, device=device), drawn)


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
    uncut = replace(settings, temperature=temperature, top_k=0, top_p=1.0, min_p=0.0)
    return Sampler(uncut, context.device, context.sampler.minimum)
