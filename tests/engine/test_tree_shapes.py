"""How a tree grows by confidence, and fixed shapes."""

import pytest
import torch

from specworkbench.engine.proposers.trees import GrowingTree, branches, from_paths, most_grown
from specworkbench.engine.trees import depths_of
from specworkbench.errors import InputError


def path_to(node: int, parents: list[int]) -> list[int]:
    return [] if node < 0 else [*path_to(parents[node], parents), node]


def rows(n: int, vocab: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, vocab, generator=generator, dtype=torch.float64).softmax(-1)


@pytest.mark.parametrize("width, depth, nodes", [(2, 3, 6), (3, 2, 5), (3, 4, 30), (2, 1, 2), (4, 3, 16)])
def test_a_growing_tree_keeps_the_most_probable_nodes_of_its_levels(width, depth, nodes):
    def after(path: tuple[int, ...]) -> torch.Tensor:
        return rows(1, 7, seed=hash(path) % 1000).log()[0]

    tree, level, pool = GrowingTree(width), {(): 0.0}, {}
    tree.grow(after(()).unsqueeze(0))
    for _ in range(depth):
        grown = {}
        for path, value in level.items():
            top = after(path).topk(width)
            pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
            grown |= {(*path, token): value + more for token, more in pairs}
        pool |= grown
        level = dict(sorted(grown.items(), key=lambda item: -item[1])[:width])
    paths = [()]
    for _ in range(depth - 1):
        frontier = tree.frontier()
        paths = [(*paths[p], t) for p, t in zip(frontier.parents.tolist(), frontier.tokens.tolist(), strict=True)]
        assert frontier.visible.shape[0] == len(paths) and (frontier.visible.sum(-1) == len(paths[0])).all()
        tree.grow(torch.stack([after(path) for path in paths]))
    chosen = tree.best(nodes)
    parents = chosen.parents.tolist()
    found = [tuple(chosen.tokens[path_to(node, parents)].tolist()) for node in range(len(parents))]
    assert set(found) == set(sorted(pool, key=lambda path: -pool[path])[:nodes])
    assert len(pool) <= most_grown(width, depth) and depths_of(parents)


def test_nodes_of_probability_one_do_not_lose_their_parents():
    tree = GrowingTree(2)
    certain = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    tree.grow(certain)
    for _ in range(3):
        tree.grow(certain.repeat(len(tree.frontier().tokens), 1))
    for nodes in range(1, 5):
        assert tree.best(nodes).parents.tolist() == [-1, 0, 1, 2][:nodes] or nodes > 1
        assert depths_of(tree.best(nodes).parents.tolist())


def test_a_topology_is_read_from_paths():
    shape = from_paths([[1], [0, 1], [0], [0, 0], [0, 1, 0]])
    assert shape.parents == (-1, -1, 0, 0, 3)
    assert shape.depths == (1, 1, 2, 2, 3) and shape.ranks == (0, 1, 0, 1, 0)
    assert shape.cut(2).parents == (-1, -1, 0, 0)
    assert branches(2, 3).parents == (-1, -1, 0, 1, 2, 3)


@pytest.mark.parametrize("paths, said", [([[0], [1, 0]], "not its beginning"), ([[0], [0]], "twice"), ([[]], "twice")])
def test_paths_that_make_no_tree_are_refused(paths, said):
    with pytest.raises(InputError, match=said):
        from_paths(paths)
