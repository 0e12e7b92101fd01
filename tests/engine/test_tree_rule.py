"""The tree rule on its special cases, and what is refused where trees cannot be judged."""

from dataclasses import replace

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, make_proposer
from specworkbench.engine.contracts import Decision, Proposal
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.verifiers import TokenVerifier, TreeVerifier
from specworkbench.equivalence.tree_toys import ShapedTree
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.test_kvcache import recurrent, windowed
from tests.engine.toys import toy_model, toy_tokenizer

PARENTS = [-1, -1, 0, 0, 1, 4, 2]
TARGET, DRAFT = toy_model(5), toy_model(5, seed=1, layers=1)


def rows(n: int, vocab: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, vocab, generator=generator, dtype=torch.float64).softmax(-1)


@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize("shape", [None, [-1, 0, 1]], ids=["chain", "tree without branches"])
def test_on_a_chain_the_tree_rule_is_the_token_rule(certain, shape):
    for seed in range(30):
        p, q = rows(4, seed=seed), rows(3, seed=seed + 100)
        chain = Proposal(q.argmax(-1), None if certain else q)
        tree = replace(chain, parents=None if shape is None else torch.tensor(shape))
        uniforms = torch.rand(7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        one, other = (
            rule.verify(proposal, p, UniformChooser(uniforms[:3], uniforms[3:]))
            for rule, proposal in ((TokenVerifier(), chain), (TreeVerifier(), tree))
        )
        for name in ("accepted", "next_token", "next_probs", "accept_probs", "flags"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_certain_guesses_and_their_one_hot_rows_are_judged_alike():
    parents, tokens = torch.tensor(PARENTS), torch.tensor([1, 2, 0, 1, 4, 4, 2])
    certain = Proposal(tokens, parents=parents)
    for seed in range(20):
        p = rows(8, seed=seed)
        spelled = replace(certain, probs=certain.draft_probs(p))
        uniforms = torch.rand(15, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        one, other = (
            TreeVerifier().verify(proposal, p, UniformChooser(uniforms[:7], uniforms[7:]))
            for proposal in (certain, spelled)
        )
        assert torch.allclose(one.accept_probs, other.accept_probs, atol=1e-12)
        assert torch.allclose(one.next_probs / one.next_probs.sum(), other.next_probs / other.next_probs.sum())
        assert torch.equal(one.path, other.path) and one.next_token == other.next_token


def test_a_decision_says_what_became_of_every_node():
    decision = Decision([1, 2, 0, 4, 4, 3, 2], 2, 3, 3, PARENTS, [1, 4])
    assert (decision.nodes, decision.kept, decision.last, decision.refused) == ([1, 4], [2, 4], 4, [0, 5])
    assert decision.outcome == "corrected"
    leaf = Decision([1, 2, 0, 4, 4, 3, 2], 3, 3, 4, PARENTS, [0, 2, 6])
    assert (leaf.last, leaf.refused, leaf.outcome) == (6, [], "bonus")
    nothing = Decision([1, 2, 0, 4, 4, 3, 2], 0, 3, 1, PARENTS, [])
    assert (nothing.last, nothing.refused, nothing.outcome) == (-1, [0, 1], "corrected")


@pytest.mark.parametrize("build", [windowed, recurrent])
def test_a_target_whose_cache_holds_one_line_is_refused_before_the_first_round(build):
    steps = []
    with pytest.raises(InputError, match=r"cannot judge or draft a tree.*proposer of chains"):
        decode("abcabc", target=build(), proposer=ShapedTree(toy_model(7)), on_round=steps.append)
    assert steps == []


def test_attention_without_a_mask_is_refused():
    config = MistralConfig(
        vocab_size=7, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=None,
    )  # fmt: skip
    model = LanguageModel(MistralForCausalLM(config), toy_tokenizer(7), "toy", fused=False)
    model.check_trees()
    model.model.config._attn_implementation_internal = "flash_attention_2"
    with pytest.raises(InputError, match="flash_attention_2 takes no mask"):
        model.check_trees()


@pytest.mark.parametrize("rule, temperature", [("token", 1), ("greedy", 0)])
def test_rules_of_chains_refuse_a_proposer_of_trees_at_the_start(rule, temperature):
    options = DecodeSettings(sampling=SamplingSettings(temperature=temperature))
    with pytest.raises(InputError, match="choose the rule tree"):
        Decoder(TARGET, TreeDraftProposer(DRAFT), rule=rule, settings=options)


def test_the_tree_rule_judges_chains_too():
    options = dict(target=TARGET, proposer=make_proposer("draft_model", draft=DRAFT), gamma=3, max_new_tokens=20)
    token, tree = (decode("abcab", rule=rule, **options) for rule in ("token", "tree"))
    assert token.trace.positions.equals(tree.trace.positions)
    assert not [name for name, finding in contracts.run(tree.trace) if finding.status == "fail"]


class Careless(ShapedTree):
    """Takes gamma for the number of nodes, or forgets it."""

    def most_nodes(self, gamma):
        return self.said(gamma)

    def propose(self, context, gamma, choose):
        return Proposal(torch.zeros(len(self.parents), dtype=torch.int64), parents=torch.tensor(self.parents))


@pytest.mark.parametrize(
    "parents, said, sentence",
    [
        ([-1, -1, 0], lambda gamma: gamma, "gave 3 tokens, 2 were asked for"),
        ([-1, 0, 1], lambda gamma: 9, "gave a tree of depth 3, 2 was asked for"),
        ([0, -1], lambda gamma: 9, "must precede its children"),
    ],
)
def test_a_proposer_that_gives_more_than_it_said_is_a_fault(parents, said, sentence):
    proposer = Careless(DRAFT)
    proposer.parents, proposer.said = parents, said
    with pytest.raises(ValueError, match=sentence):
        decode("abc", target=TARGET, proposer=proposer, gamma=2)


def test_a_proposer_of_chains_that_gives_a_tree_is_a_fault():
    proposer = ShapedTree(DRAFT)
    proposer.drafts_trees = False
    with pytest.raises(ValueError, match="must say so"):
        decode("abc", target=TARGET, proposer=proposer, gamma=4, rule="tree")
