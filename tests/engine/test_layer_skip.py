"""Self-drafting: the rows are the truncated target's, on the target's own cache, which stays as it is."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.preallocated import PreallocatedCache
from specworkbench.engine.proposers import LayerSkipProposer
from specworkbench.engine.sampling import Sampler
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.toys import toy_model, toy_tokenizer

FUSED = toy_model(5, layers=4)
TARGETS = {"fused": FUSED, "transformers": LanguageModel(FUSED.model, FUSED.tokenizer, "plain", fused=False)}
CHOICES = {
    "half": ({}, (0, 1)),
    "one": ({"layers": 1}, (0,)),
    "a prefix by its numbers": ({"subset": (0, 1, 2)}, (0, 1, 2)),
    "one skipped": ({"subset": (0, 2, 3)}, (0, 2, 3)),
    "the last": ({"subset": (3,)}, (3,)),
}
SHARED = {"half", "one", "a prefix by its numbers"}
WARM = SamplingSettings(temperature=0.7, top_k=4, repetition_penalty=1.4)
every_target = pytest.mark.parametrize("forward", TARGETS)
every_choice = pytest.mark.parametrize("choice", CHOICES)


def by_itself(model: LanguageModel, numbers: tuple[int, ...]) -> LanguageModel:
    """A model of its own with copies of these layers: what the draft must compute."""
    config = type(model.model.config)(**model.model.config.to_dict() | {"num_hidden_layers": len(numbers)})
    alone = LlamaForCausalLM(config).double()
    state = {name: tensor for name, tensor in model.model.state_dict().items() if ".layers." not in name}
    for place, number in enumerate(numbers):
        for name, tensor in model.model.model.layers[number].state_dict().items():
            state[f"model.layers.{place}.{name}"] = tensor
    alone.load_state_dict(state)
    return LanguageModel(alone, model.tokenizer, "by itself", fused=model._fused is not None)


@every_target
@every_choice
@pytest.mark.parametrize("sampling", [SamplingSettings(), WARM], ids=["plain", "everything"])
def test_the_rows_are_those_of_the_truncated_model_after_every_kind_of_round(forward, choice, sampling):
    target, (settings, numbers) = TARGETS[forward], CHOICES[choice]
    alone, sampler, kinds = by_itself(target, numbers), Sampler(sampling), set()
    proposer = make_proposer("layer_skip", target=target, **settings)
    decoder = Decoder(target, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=40, sampling=sampling))
    for prompt in ("abcab", "d", "cc"):
        sequence = decoder.start(prompt)
        for step in decode_rounds(sequence):
            kinds.add(step.decision.accepted)
            before = sequence.context.tokens[: step.context_length]
            for j in range(step.proposal.size):
                ids = torch.tensor(before + step.decision.proposed[:j])
                seen = torch.zeros(5, dtype=torch.bool).index_fill(0, ids, True)
                fresh = sampler(alone.forward(ids, alone.new_cache(), rows=1).logits, seen)[0]
                assert torch.allclose(step.proposal.probs[j], fresh, atol=1e-10)
    assert kinds >= {0, 1, 3}


def held(cache) -> list[torch.Tensor]:
    """Keys and values of every layer, (kv_heads, length, head_dim) each."""
    if isinstance(cache, PreallocatedCache):
        return [states[:, : cache.length] for states in (*cache.keys, *cache.values)]
    return [states[0] for layer in cache.cache.layers for states in (layer.keys, layer.values)]


@every_target
@every_choice
def test_drafting_leaves_the_targets_cache_as_it_is(forward, choice):
    target, (settings, _) = TARGETS[forward], CHOICES[choice]
    proposer = make_proposer("layer_skip", target=target, **settings)
    sequence = Decoder(target, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=30)).start("abcab")
    assert proposer.needs.cache == (choice in SHARED)
    propose = proposer.propose

    def watched(context, gamma, choose):
        before = [states.clone() for states in held(sequence.cache)]
        proposal = propose(context, gamma, choose)
        assert all(map(torch.equal, held(sequence.cache), before))
        return proposal

    proposer.propose = watched
    for _ in decode_rounds(sequence):
        tokens = torch.tensor(sequence.context.tokens)
        row = target.forward(tokens[-1:], sequence.cache).logits
        sequence.cache.rollback(1)
        assert torch.allclose(row, target.forward(tokens, target.new_cache(), rows=1).logits, atol=1e-10)


@every_target
def test_the_target_computes_as_before_and_keeps_its_layers(forward):
    target = TARGETS[forward]
    ids = torch.tensor([0, 3, 1])
    before = target.forward(ids, target.new_cache()).logits
    proposer = make_proposer("layer_skip", target=target, subset=(1, 3))
    decode("abc", target=target, proposer=proposer, capture=None)
    assert list(proposer.draft.model.model.layers) == [target.model.model.layers[1], target.model.model.layers[3]]
    assert torch.equal(target.forward(ids, target.new_cache()).logits, before)
    assert target.model.config.num_hidden_layers == len(target.model.model.layers) == 4
    assert [layer.self_attn.layer_idx for layer in target.model.model.layers] == [0, 1, 2, 3]


def test_a_forward_bound_to_the_whole_model_is_not_taken_over():
    """accelerate sets one on every module of a model that is spread over devices."""
    target = toy_model(5, layers=2)
    target = LanguageModel(target.model, target.tokenizer, "spread", fused=False)
    alone, ids = by_itself(target, (0,)), torch.tensor([0, 3, 1])
    for module in (target.model, target.model.model):
        module.forward = module.forward
    draft = make_proposer("layer_skip", target=target, layers=1).draft
    assert torch.allclose(
        draft.forward(ids, draft.new_cache()).logits, alone.forward(ids, alone.new_cache()).logits, atol=1e-10
    )


@every_target
def test_with_all_layers_the_draft_is_the_target_and_everything_is_accepted(forward):
    target = TARGETS[forward]
    proposer = make_proposer("layer_skip", target=target, layers=4)
    trace = decode("abcab", target=target, proposer=proposer, gamma=3, max_new_tokens=32, capture="full").trace
    rounds, drafted = trace.rounds, trace.positions["outcome"].isin(["accepted", "rejected"]).to_numpy()
    assert (rounds["accepted"] == rounds["proposed"]).all()
    assert abs(trace.rows["target"][drafted] - trace.rows["draft"][drafted]).max() < 1e-6  # kept as float32


@pytest.mark.parametrize("settings", [{"layers": 1}, {"layers": 2}, {"subset": (1,)}], ids=str)
@pytest.mark.parametrize("sampling", [SamplingSettings(), WARM, SamplingSettings(temperature=0.0)], ids=str)
def test_the_law_of_the_whole_loop_is_the_targets_own(settings, sampling):
    target = toy_model(3, layers=3, width=8, sharpness=2.0)
    proposer = LayerSkipProposer(target, **settings)
    setup = Setup(target, (0, 1, 0), DecodeSettings(2, 3, sampling), proposer, make_verifier(None, sampling))
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(law, product_law(target, setup.prompt, setup.settings)) < 1e-12


@every_choice
def test_the_trace_says_what_was_saved(choice):
    """Not recomputed: the prompt, and what a draft with its own cache would have had to catch up with."""
    target, (settings, numbers) = FUSED, CHOICES[choice]
    proposer = make_proposer("layer_skip", target=target, **settings)
    decoder = Decoder(target, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=25))
    for prompt in ("abcab", "eeddeedd"):
        decoder.run(prompt)
    trace = decoder.trace()
    entry, rounds = trace.manifest["proposer"], trace.rounds
    assert (tuple(entry["layers"]), entry["shared_cache"]) == (numbers, choice in SHARED)
    drafting = rounds[rounds["proposed"] > 0]
    after = rounds["proposed"].gt(0).groupby(rounds["sequence"]).shift(-1, fill_value=False)
    caught_up = ((rounds["accepted"] == rounds["proposed"]) & (rounds["proposed"] > 0) & after).sum()
    assert entry["cached_tokens_not_recomputed"] == (4 + 7 + caught_up if choice in SHARED else 0)
    assert (rounds["draft_cache_bytes"] == 0).all() == (choice in SHARED)
    assert (drafting["draft_forwards"] == drafting["proposed"]).all()
    extra = 0 if choice in SHARED else caught_up
    assert drafting["draft_positions"].sum() == drafting["proposed"].sum() + extra
    findings = contracts.run(trace)
    assert [contract.name for contract, finding in findings if finding.status == "fail"] == []


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"layers": 5}, "layers of the proposer layer_skip is 5; the target has 4"),
        ({"layers": -1}, "layers of the proposer layer_skip is -1"),
        ({"subset": (0, 4)}, "layers 0, 4 .* between 0 and 3"),
        ({"subset": (-1, 2)}, "between 0 and 3"),
        ({"subset": (2, 1)}, "increasing"),
        ({"subset": (1, 1)}, "increasing"),
    ],
)
def test_layers_that_the_target_does_not_have_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        make_proposer("layer_skip", target=FUSED, **settings)


def test_without_a_target_it_is_refused():
    with pytest.raises(InputError, match="give it the target"):
        make_proposer("layer_skip")


def test_what_cannot_be_truncated_is_refused():
    small = {
        "vocab_size": 7,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    windowed = MistralForCausalLM(MistralConfig(**small, num_key_value_heads=1, sliding_window=4))
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=16, n_layer=2, n_head=2))
    for model, sentence in ((windowed, "sliding window"), (gpt2, "GPT2LMHeadModel is not built as Llama is")):
        with pytest.raises(InputError, match=sentence):
            make_proposer("layer_skip", target=LanguageModel(model, toy_tokenizer(7), "other"))
