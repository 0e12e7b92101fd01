"""Trees of guesses: their shape, one forward over them, the path that stays, and the rule on its special cases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode
from specworkbench.engine.contracts import Needs
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.trees import from_paths
from specworkbench.engine.sampling import seen_in_rows, seen_in_tree
from specworkbench.engine.trees import ancestors, depths, depths_of, earlier_siblings, visible_rows
from specworkbench.equivalence.tree_toys import KINDS, RAGGED, ShapedTree
from specworkbench.trace import contracts, load_trace, save_trace
from tests.engine.toys import toy_model, toy_tokenizer

NEAR = 1e-10
PARENTS = [-1, -1, 0, 0, 1, 4, 2]
"""Two children of the context; the first has two, and a grandchild; the second a chain of two."""
TARGET, DRAFT = toy_model(5), toy_model(5, seed=1, layers=1)
trees = st.lists(st.integers(0, 20), min_size=1, max_size=12).map(
    lambda numbers: [number % (node + 1) - 1 for node, number in enumerate(numbers)]
)


def path_to(node: int, parents: list[int]) -> list[int]:
    return [] if node < 0 else [*path_to(parents[node], parents), node]


def through(path: str, **options) -> LanguageModel:
    """The toy target by another road."""
    if path == "fused":
        assert TARGET.describe()["forward"] == "fused"
        return TARGET
    model = toy_model(5).model
    model.set_attn_implementation(path)
    return LanguageModel(model, toy_tokenizer(5), path, fused=False)


@given(trees)
def test_ancestors_depths_and_siblings_are_those_found_one_by_one(parents):
    nodes = range(len(parents))
    ancestry = ancestors(torch.tensor(parents))
    assert [[j for j in nodes if ancestry[i, j]] for i in nodes] == [path_to(i, parents) for i in nodes]
    assert depths(ancestry).tolist() == depths_of(parents) == [len(path_to(i, parents)) for i in nodes]
    before = earlier_siblings(torch.tensor(parents))
    assert [[j for j in nodes if before[i, j]] for i in nodes] == [
        [j for j in range(i) if parents[j] == parents[i]] for i in nodes
    ]


@given(trees)
@settings(max_examples=30)
def test_a_node_has_seen_the_context_and_its_own_path(parents):
    tokens = torch.arange(len(parents)) * 3 % 7
    seen = torch.tensor([True, *[False] * 6])
    rows = seen_in_tree(seen, tokens, ancestors(torch.tensor(parents)))
    for node in range(-1, len(parents)):
        assert {t for t in range(7) if rows[node + 1, t]} == {0, *tokens[path_to(node, parents)].tolist()}
    chain = ancestors(torch.arange(len(parents)) - 1)
    assert torch.equal(seen_in_tree(seen, tokens, chain), seen_in_rows(seen, tokens, len(parents) + 1))


def test_parents_that_follow_their_children_are_no_tree():
    with pytest.raises(ValueError, match="must precede"):
        depths_of([-1, 2, 0])


@pytest.mark.parametrize("road", ["fused", "sdpa", "eager"])
@pytest.mark.parametrize("past", [1, 5])
def test_one_forward_over_a_tree_gives_the_row_and_the_features_of_every_path(road, past):
    model = through(road)
    context, guesses = [3, 1, 4, 1, 2, 0][: past + 1], [1, 2, 0, 4, 4, 3, 2]
    cache = model.new_cache()
    model.forward(torch.tensor(context[:-1]), cache)
    ids = torch.tensor([context[-1], *guesses])
    visible = visible_rows(ancestors(torch.tensor(PARENTS)))
    forward = model.forward(ids, cache, layers=(0, 1, -1), visible=visible)
    for node in range(-1, len(guesses)):
        tokens = context + [guesses[i] for i in path_to(node, PARENTS)]
        fresh = model.forward(torch.tensor(tokens), model.new_cache(), layers=(0, 1, -1))
        assert torch.allclose(forward.logits[node + 1], fresh.logits[-1], atol=NEAR)
        assert all(torch.allclose(forward.hidden[k][node + 1], fresh.hidden[k][-1], atol=NEAR) for k in fresh.hidden)


@pytest.mark.parametrize("road", ["fused", "sdpa"])
@pytest.mark.parametrize("kept", [[], [0], [1], [0, 2, 6], [1, 4], [1, 4, 5], [0, 3]])
def test_the_row_after_a_kept_path_is_that_of_a_fresh_forward(road, kept):
    model, context, guesses = through(road), [3, 1, 4], [1, 2, 0, 4, 4, 3, 2]
    cache = model.new_cache()
    visible = visible_rows(ancestors(torch.tensor(PARENTS)))
    model.forward(torch.tensor(context[:-1]), cache)
    model.forward(torch.tensor([context[-1], *guesses]), cache, visible=visible)
    cache.keep(len(guesses), kept)
    tokens = context + [guesses[node] for node in kept]
    assert cache.length == len(tokens)
    for more in ([2], [0, 3]):
        tokens += more
        row = model.forward(torch.tensor(more), cache).logits[-1]
        assert torch.allclose(row, model.forward(torch.tensor(tokens), model.new_cache()).logits[-1], atol=NEAR)


@pytest.mark.parametrize("kept", [[1, 0], [0, 0], [3], [-1]])
def test_what_is_no_path_cannot_be_kept(kept):
    cache = TARGET.new_cache()
    TARGET.forward(torch.arange(4), cache)
    with pytest.raises(ValueError, match="must rise"):
        cache.keep(3, kept)


class Watching(ShapedTree):
    """Compares, at each proposal, caches and features with fresh forwards over the context."""

    needs = Needs(hidden_layers=(0, -1), rows=True, cache=True)
    rounds = 0

    def propose(self, context, gamma, choose):
        known = context.cache.length
        assert known == len(context.tokens) - 1
        row = self.target.forward(context.ids(known), context.cache).logits[-1]
        context.cache.rollback(1)
        fresh = self.target.forward(context.ids(), self.target.new_cache(), layers=(0, -1))
        assert torch.allclose(row, fresh.logits[-1], atol=NEAR)
        for layer, features in context.hidden.items():
            new = len(features)
            assert torch.allclose(features, fresh.hidden[layer][known - new : known], atol=NEAR)
        self.rounds += 1
        return super().propose(context, gamma, choose)


@pytest.mark.parametrize("road", ["fused", "sdpa"])
@pytest.mark.parametrize("certain", [True, False])
def test_cache_and_features_are_those_of_a_fresh_forward_after_every_kind_of_round(road, certain):
    proposer = Watching(DRAFT, (RAGGED, from_paths([[0], [1], [1, 0], [1, 0, 0]]), None), certain)
    proposer.target = through(road)
    kinds, lengths = set(), set()
    for seed in range(3):
        steps = []
        decode("abcde", target=proposer.target, proposer=proposer, gamma=3, max_new_tokens=40, seed=seed,
               on_round=steps.append)  # fmt: skip
        kinds |= {(step.decision.outcome, step.decision.nodes == list(range(step.decision.accepted))) for step in steps}
        lengths |= {step.decision.accepted for step in steps}
    assert proposer.rounds > 20 and lengths >= {0, 1, 2}
    assert {("corrected", True), ("corrected", False), ("bonus", True), ("bonus", False), ("plain", True)} <= kinds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("capture", ["none", "top-k", "full"])
def test_a_trace_of_trees_keeps_every_contract_through_saving(tmp_path, kind, temperature, capture):
    sampling = SamplingSettings(temperature=temperature, top_k=4, repetition_penalty=1.2)
    decoder = Decoder(
        TARGET, KINDS[kind](DRAFT), settings=DecodeSettings(3, 25, sampling), capture=capture, top_k_captured=2
    )
    for prompt in ("abcab", "c", "eeddeedd"):
        decoder.run(prompt)
    save_trace(decoder.trace(), tmp_path / "a.trace")
    trace = load_trace(tmp_path / "a.trace")
    found = {contract.name: finding for contract, finding in contracts.run(trace)}
    assert [name for name, finding in found.items() if finding.status == "fail"] == []
    assert (trace.rounds["proposed"] > trace.rounds["asked"]).any()


def test_captured_rows_are_found_by_node():
    steps = []
    trace = decode("abcab", target=TARGET, proposer=ShapedTree(DRAFT), gamma=2, max_new_tokens=20, capture="full",
                   on_round=steps.append).trace  # fmt: skip
    for step in steps:
        parents = step.decision.parents or []
        for row in trace.round_positions(0, step.index).to_dict("records"):
            found = trace.distribution_of(row)
            p = step.target_probs[row["parent"] + 1]
            assert torch.allclose(torch.tensor(found.p), p.float()[found.tokens].double())
            if row["node"] >= 0:
                q = step.proposal.probs[row["node"]]
            elif row["outcome"] == "corrected":
                q = step.proposal.probs[parents.index(row["parent"])]
            else:
                assert found.q is None
                continue
            assert torch.allclose(torch.tensor(found.q), q.float()[found.tokens].double())


@pytest.mark.parametrize("kind", ["top-k", "certain, ragged"])
def test_at_temperature_0_the_output_is_the_targets_own(kind):
    options = dict(target=TARGET, gamma=4, max_new_tokens=30, sampling=SamplingSettings(temperature=0))
    plain = decode("abcab", **options)
    result = decode("abcab", proposer=KINDS[kind](TARGET), **options)
    assert result.token_ids == plain.token_ids
    assert (result.trace.rounds["accepted"] > 0).all()
    assert result.trace.manifest["rule"]["name"] == "tree"
