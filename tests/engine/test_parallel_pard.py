"""PARD: one forward over the context and the masks gives every row, and no mask stays in the cache."""

import json

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.parallel import PardDraft
from specworkbench.engine.sampling import Sampler
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.toys import toy_model

MASK = 6
TARGET, FUSED = toy_model(5, layers=3, rows=7), toy_model(5, seed=1, rows=7)
DRAFTS = {"fused": FUSED, "transformers": LanguageModel(FUSED.model, FUSED.tokenizer, "plain", fused=False)}
WARM = SamplingSettings(temperature=0.7, top_k=4, repetition_penalty=1.4)
GREEDY = SamplingSettings(temperature=0.0)


def pard(model: LanguageModel = FUSED, mask: int = MASK, target: LanguageModel = TARGET):
    return make_proposer("parallel", target=target, draft=PardDraft(model, mask))


@pytest.fixture
def folder(tmp_path):
    """A PARD model as it is published: a model whose config.json names the mask token."""
    FUSED.model.save_pretrained(tmp_path)
    FUSED.tokenizer.save_pretrained(tmp_path)
    return tmp_path


def with_entry(folder, **entry):
    config = json.loads((folder / "config.json").read_text()) | entry
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize("forward", DRAFTS)
@pytest.mark.parametrize("gamma", [1, 3])
@pytest.mark.parametrize("sampling", [SamplingSettings(), WARM, GREEDY], ids=["plain", "everything", "greedy"])
def test_the_rows_are_those_of_one_fresh_forward_over_context_and_masks(forward, gamma, sampling):
    model, sampler, kinds = DRAFTS[forward], Sampler(sampling), set()
    settings = DecodeSettings(gamma=gamma, max_new_tokens=40, sampling=sampling)
    decoder = Decoder(TARGET, pard(model), settings=settings, rule="token")
    for prompt in ("abcab", "d", "cc"):
        sequence = decoder.start(prompt)
        for step in decode_rounds(sequence):
            if not (n := step.proposal.size):
                continue
            kinds.add(step.decision.accepted)
            before = sequence.context.tokens[: step.context_length]
            ids = torch.tensor([before + [MASK] * (n - 1)])
            logits = model.model(ids).logits[0, -n:, :5].detach()
            seen = torch.zeros(5, dtype=torch.bool).index_fill(0, torch.tensor(before), True)
            fresh = sampler(logits, seen, step.proposal.tokens[: n - 1])
            assert torch.allclose(step.proposal.probs, fresh, atol=1e-6 if forward == "fused" else 1e-10)
    assert kinds >= ({0, 1} if sampling != GREEDY else {0})


@pytest.mark.parametrize("forward", DRAFTS)
def test_no_mask_stays_in_the_cache(forward):
    model = DRAFTS[forward]
    proposer, kinds = pard(model), set()
    sequence = Decoder(TARGET, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=50)).start("abcab")
    for step in decode_rounds(sequence):
        kinds.add(step.decision.accepted)
        tokens, cache = sequence.context.tokens, proposer.draft._cache
        assert cache.length <= step.context_length
        row = model.forward(torch.tensor(tokens[cache.length :]), cache, rows=1).logits
        cache.rollback(len(tokens) - step.context_length if step.proposal.size else len(tokens) - cache.length)
        fresh = model.forward(torch.tensor(tokens), model.new_cache(), rows=1).logits
        assert torch.allclose(row, fresh, atol=1e-10)
    assert kinds >= {0, 1, 2}


def test_a_round_costs_one_forward_over_the_new_tokens_and_the_masks():
    trace = decode("abcab", target=TARGET, proposer=pard(), gamma=3, max_new_tokens=30).trace
    rounds = trace.rounds[trace.rounds["proposed"] > 0]
    assert (rounds["draft_forwards"] == 1).all()
    new = rounds["emitted"].shift(1, fill_value=1)
    assert (rounds["draft_positions"] == new + rounds["proposed"] - 1).all()
    assert rounds["draft_cache_bytes"].gt(0).all()
    failed = [contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"]
    assert failed == []


@pytest.mark.parametrize("sampling", [SamplingSettings(), WARM, GREEDY], ids=str)
@pytest.mark.parametrize("mask", [4, 2], ids=["mask of its own", "mask from the vocabulary"])
def test_the_law_of_the_whole_loop_is_the_targets_own(sampling, mask):
    small = {"layers": 1, "width": 8, "sharpness": 2.0}
    target, draft = toy_model(3, **small), toy_model(3, seed=1, rows=5, **small)
    proposer = pard(draft, mask, target)
    setup = Setup(target, (0, 1, 0), DecodeSettings(2, 3, sampling), proposer, make_verifier("token", sampling))
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(law, product_law(target, setup.prompt, setup.settings)) < 1e-12


def test_the_same_prompt_twice_gives_the_same_trace():
    options = {"target": TARGET, "proposer": pard(), "gamma": 3, "max_new_tokens": 24, "seed": 4}
    first, second = (decode("abcab", **options).trace.positions for _ in range(2))
    assert first.equals(second)


def test_past_the_drafts_context_the_rounds_are_plain_and_say_so():
    short = toy_model(5, seed=1, context=12, rows=7)
    result = decode("abcab", target=TARGET, proposer=pard(short), gamma=3, max_new_tokens=20)
    rounds = result.trace.rounds
    late = rounds[rounds["context_length"] > 12]
    assert len(result.token_ids) == 20 and len(late) > 0
    assert (late["proposed"] == 0).all() and (late[late["asked"] == 3]["shortened"] == "draft_context").all()


@pytest.mark.parametrize("key", ["pard_token", "ptd_token_id", "mask_token_id"])
def test_a_published_folder_is_read(folder, key):
    proposer = make_proposer("parallel", target=TARGET, draft=with_entry(folder, **{key: MASK}))
    entry = proposer.describe()["draft"]
    assert (entry["family"], entry["mask_token"], entry["name"]) == ("PARD", MASK, str(folder))
    loaded, made = (decode("abcab", target=TARGET, proposer=each, gamma=3).token_ids for each in (proposer, pard()))
    assert loaded == made


@pytest.mark.parametrize(
    "entry, sentence",
    [
        ({}, "is no parallel draft.*pard_token"),
        ({"pard_token": 7}, "mask token .* is 7, but it embeds tokens 0 to 6"),
        ({"pard_token": 6, "speculators_model_type": "eagle3"}, "speculator of type 'eagle3'"),
    ],
)
def test_a_folder_that_is_no_parallel_draft_is_refused(folder, entry, sentence):
    with pytest.raises(InputError, match=sentence):
        make_proposer("parallel", target=TARGET, draft=with_entry(folder, **entry))


def test_another_vocabulary_and_missing_weights_are_refused(tmp_path):
    with pytest.raises(InputError, match="another vocabulary"):
        pard(toy_model(4, seed=1, rows=7))
    with pytest.raises(InputError, match="needs a draft, a PARD draft model or a DFlash head"):
        make_proposer("parallel", target=TARGET)
    with pytest.raises(InputError, match="no folder of a head"):
        make_proposer("parallel", target=TARGET, draft=str(tmp_path / "nowhere"))


def test_a_mask_token_with_a_name_of_its_own_is_no_other_vocabulary():
    draft = toy_model(6, seed=1)
    assert pard(draft, 5).describe()["draft"]["mask_token"] == 5
    result = decode("abcab", target=TARGET, proposer=pard(draft, 5), gamma=3, max_new_tokens=24)
    assert max(result.token_ids) < 5
