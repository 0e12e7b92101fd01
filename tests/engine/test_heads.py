"""Feature heads and Medusa: what they compute in decoding is what they were trained for, and files keep it."""

from itertools import product

import pytest
import torch

from specworkbench.engine import DecodeSettings, SamplingSettings, decode, make_verifier
from specworkbench.engine.contracts import Decision
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape, likely_paths
from specworkbench.engine.proposers import EagleProposer, MedusaProposer, MtpProposer
from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.trees import depths_of
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from specworkbench.training.features import Batch
from specworkbench.training.heads import head_rows
from tests.engine.head_references import Told
from tests.engine.test_proposers import context_of
from tests.engine.toy_heads import BARE, FUSED, eagle, feature_head, medusa, randomised
from tests.engine.toys import toy_model

TARGET = toy_model(5, layers=4)
IDS = torch.tensor([0, 3, 1, 4, 2, 2, 0, 1, 3, 3, 1, 0])


HEADS = {
    "EAGLE-1": lambda: feature_head(TARGET, **BARE),
    "EAGLE-3": lambda: feature_head(TARGET, (1, 2, -1), vocabulary=5, **FUSED),
    "EAGLE-3, reduced vocabulary": lambda: feature_head(
        TARGET, (1, 2, 3), torch.tensor([0, 2, 3]), vocabulary=3, residual_normed=True, norm_fused=True, **FUSED
    ),
    "MTP, one module": lambda: feature_head(TARGET, feeds_normed=True),
    "MTP, three modules": lambda: feature_head(TARGET, modules=3),
    "MTP, feature first": lambda: feature_head(TARGET, modules=2, feature_first=True),
    "Medusa": lambda: randomised(MedusaHeads(MedusaShape(3, 2, 16, 5))),
}
every_head = pytest.mark.parametrize("name", HEADS)


def proposer_of(name, **settings):
    kind = MedusaProposer if name == "Medusa" else MtpProposer if name.startswith("MTP") else EagleProposer
    return kind(HEADS[name](), **settings)


def hidden_of(ids, layers):
    return TARGET.forward(ids, TARGET.new_cache(), layers=layers).hidden


@every_head
@pytest.mark.parametrize("accepted", [0, 1, 2])
def test_decoding_gives_the_rows_that_training_unrolls(name, accepted):
    """Round after round on one text, `accepted` guesses kept in each: the rows are those of the whole text unrolled."""
    proposer, steps = proposer_of(name), 2
    layers = proposer.needs.hidden_layers
    whole = hidden_of(IDS, layers)
    rows = IDS[None, :, None]
    batch = Batch(IDS[None], {layer: hidden[None] for layer, hidden in whole.items()}, rows, rows)
    expected = head_rows(getattr(proposer, "head", None) or proposer.heads, batch, steps)
    context = context_of(IDS[:3].tolist())
    context.hidden = {layer: rows[:2] for layer, rows in whole.items()}
    proposer.prefill(context)
    compared = 0
    while (length := len(context.tokens)) + steps < len(IDS):
        right = IDS[length : length + steps].tolist()
        told = Told([token if step < accepted else (token + 1) % 5 for step, token in enumerate(right)])
        proposer.propose(context, steps, told)
        for step in range(min(accepted + 1, steps)):
            place = length - 2
            logits = expected[step][0, place]
            ids = getattr(getattr(proposer, "head", None), "target_ids", None)
            if ids is not None:
                logits = torch.full((5,), -torch.inf, dtype=logits.dtype).index_copy_(0, ids, logits)
            assert torch.allclose(told.rows[step][0], logits.softmax(-1), atol=1e-9)
            compared += 1
        context.tokens.extend(IDS[length : length + accepted + 1].tolist())
        context.hidden = {layer: rows[length - 1 : length + accepted] for layer, rows in whole.items()}
        proposer.observe(Decision(right, accepted, int(IDS[length + accepted]), accepted + 1))
    assert compared > 4


@every_head
@pytest.mark.parametrize("temperature", [0, 1])
def test_greedy_output_is_the_targets_own_and_traces_keep_their_contracts(name, temperature):
    options = dict(target=TARGET, gamma=3, max_new_tokens=20, sampling=SamplingSettings(temperature=temperature))
    result = decode("abcab", proposer=proposer_of(name), **options)
    if temperature == 0:
        assert result.token_ids == decode("abcab", **options).token_ids
    assert [c.name for c, finding in contracts.run(result.trace) if finding.status == "fail"] == []


def test_the_likeliest_paths_are_those_of_the_largest_products_and_a_tree():
    ranks = ((0.6, 0.2, 0.05), (0.5, 0.15, 0.1), (0.4, 0.2, 0.1))
    every = [path for depth in (1, 2, 3) for path in product(range(3), repeat=depth)]

    def value(path):
        return torch.tensor([ranks[depth][rank] for depth, rank in enumerate(path)]).prod().item()

    paths = likely_paths(ranks, 12)
    assert sorted(map(value, paths), reverse=True) == pytest.approx(sorted(map(value, every), reverse=True)[:12])
    assert all(path[:-1] in paths[:i] for i, path in enumerate(paths) if len(path) > 1)
    assert len(likely_paths(ranks, 1000)) == len(set(likely_paths(ranks, 1000))) == len(every)


def prompted(proposer, length=6):
    context = context_of(IDS[:length].tolist())
    rows = hidden_of(IDS[: length - 1], proposer.needs.hidden_layers)
    context.hidden = dict(rows)
    proposer.prefill(context)
    return context


def families(proposal):
    """(tokens from the context to a node, the node's children) of every node that has any, and of the context."""
    parents, paths = proposal.parents.tolist(), [[]]
    for node, parent in enumerate(parents):
        paths.append([*paths[parent + 1], int(proposal.tokens[node])])
    for place, path in enumerate(paths):
        if children := [node for node, parent in enumerate(parents) if parent == place - 1]:
            yield path, children


def chain_row(name, path):
    """(vocab,) what a fresh chain draws from after the prompt and these guesses."""
    chain, told = proposer_of(name), Told([*path, 0])
    chain.propose(prompted(chain), len(path) + 1, told)
    return told.rows[-1][0]


@pytest.mark.parametrize("name", ["EAGLE-1", "EAGLE-3", "EAGLE-3, reduced vocabulary", "MTP, one module", "Medusa"])
def test_a_trees_children_are_the_most_probable_tokens_of_the_row_that_a_chain_has_there(name):
    width = {} if name == "Medusa" else {"width": 3}
    tree = proposer_of(name, nodes=9, branching="top-k", **width)
    proposal = tree.propose(prompted(tree), 3, Told([]))
    assert proposal.size == 9 and max(depths_of(proposal.parents.tolist())) == 3 and proposal.probs is None
    for path, children in families(proposal):
        ranked = chain_row(name, path).argsort(descending=True).tolist()
        tokens = proposal.tokens[children].tolist()
        assert sorted(tokens) == sorted(ranked[: len(children)])


@pytest.mark.parametrize("name", ["EAGLE-1", "EAGLE-3", "EAGLE-3, reduced vocabulary", "MTP, one module", "Medusa"])
def test_a_sampled_trees_rows_are_the_chains_without_the_earlier_siblings(name):
    tree = proposer_of(name, nodes=6, branching="sampled")
    chooser = UniformChooser(None, torch.linspace(0.05, 0.95, 6, dtype=torch.float64))
    proposal = tree.propose(prompted(tree), 3, chooser)
    assert proposal.size == 6 and max(depths_of(proposal.parents.tolist())) == (2 if name == "Medusa" else 3)
    for path, children in families(proposal):
        row = chain_row(name, path)
        for child in children:
            assert torch.allclose(proposal.probs[child], row / row.sum(), atol=1e-9)
            row = row.index_fill(0, proposal.tokens[child], 0.0)


@pytest.mark.parametrize("name", ["EAGLE-3", "MTP, one module", "Medusa"])
@pytest.mark.parametrize("temperature", [0, 1])
def test_decoding_with_a_tree_is_greedy_where_it_should_be_and_keeps_the_traces_contracts(name, temperature):
    options = dict(target=TARGET, gamma=3, max_new_tokens=30, sampling=SamplingSettings(temperature=temperature))
    result = decode("abcab", proposer=proposer_of(name, nodes=7), **options)
    if temperature == 0:
        assert result.token_ids == decode("abcab", **options).token_ids
    assert [c.name for c, finding in contracts.run(result.trace) if finding.status == "fail"] == []
    assert result.trace.rounds["proposed"].max() > 3


@pytest.mark.parametrize("branching", ["top-k", "sampled"])
@pytest.mark.parametrize("name", ["EAGLE-3", "Medusa"])
def test_the_law_of_a_heads_tree_is_the_targets_own(name, branching):
    target = toy_model(3, layers=2, width=8, sharpness=2.0)
    if name == "Medusa":
        proposer = MedusaProposer(medusa(target, heads=2), 4, branching)
    else:
        proposer = EagleProposer(eagle(target), 4, 2, branching)
    settings = DecodeSettings(2, 3)
    setup = Setup(target, (0, 1, 0), settings, proposer, make_verifier(None, settings.sampling, proposer))
    law, expected = decode_law(setup), product_law(target, setup.prompt, settings)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(law, expected) < 1e-12


@pytest.mark.parametrize("name, settings, said", [
    ("EAGLE-3", {"nodes": 2, "width": 3}, "1 <= width <= nodes"),
    ("MTP, three modules", {"nodes": 8}, "3 chained modules"),
    ("Medusa", {"nodes": -1}, "1 <= width <= nodes"),
    ("EAGLE-3", {"nodes": 4, "branching": "wide"}, "choose one of auto, top-k, sampled"),
])  # fmt: skip
def test_settings_of_a_tree_out_of_range_are_refused(name, settings, said):
    with pytest.raises(InputError, match=said):
        proposer_of(name, **settings)
