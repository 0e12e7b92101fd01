"""The embedded family through the real engine: exactness in float64, and guesses worth making."""

from functools import lru_cache

import pytest
import torch

from specworkbench import analysis
from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, load_model, load_pair, make_proposer
from specworkbench.paths import data_dir
from specworkbench.trace import contracts
from specworkbench.workloads import Prompt, load_prompts

PROMPTS = load_prompts("embedded")
GREEDY = DecodeSettings(gamma=4, max_new_tokens=24, sampling=SamplingSettings(temperature=0))


@lru_cache
def pair(draft: str = "embedded/draft-m", dtype: str = "float64"):
    return load_pair("embedded", draft, dtype=dtype, device="cpu")


@lru_cache
def plainly(prompt: Prompt) -> list[int]:
    """Greedy plain output in float64."""
    return Decoder(pair()[0], settings=GREEDY, capture=None).run(prompt.text).token_ids


def speculate(prompt: Prompt, name: str, gamma: int) -> list[int]:
    target, draft = pair()
    proposer = make_proposer(name, target=target, draft=draft) if name == "draft_model" else make_proposer(name)
    settings = DecodeSettings(gamma, GREEDY.max_new_tokens, GREEDY.sampling)
    return Decoder(target, proposer, settings=settings, capture=None).run(prompt.text).token_ids


@pytest.mark.parametrize("name", ["draft_model", "ngram"])
@pytest.mark.parametrize("gamma", range(1, 9))
def test_greedy_speculation_equals_greedy_plain_decoding_for_every_prompt(name, gamma):
    for prompt in PROMPTS:
        assert speculate(prompt, name, gamma) == plainly(prompt), prompt.id


HEADS = [("eagle", {}), ("eagle", {"nodes": 16}), ("medusa", {}), ("medusa", {"nodes": 16}), ("mtp", {})]
WORTH = {"eagle": ({}, 2.0), "medusa": ({"nodes": 16}, 1.6), "mtp": ({}, 1.8)}
"""Settings, and tokens a round at gamma 4 that a shipped head reaches with them in two buckets of three at least."""


@pytest.mark.parametrize("name, settings", HEADS, ids=str)
def test_greedy_speculation_with_a_head_equals_greedy_plain_decoding(name, settings):
    target = pair()[0]
    proposer = make_proposer(name, target=target, **settings)
    for prompt in PROMPTS[::4]:
        assert Decoder(target, proposer, settings=GREEDY).run(prompt.text).token_ids == plainly(prompt), prompt.id


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("name", WORTH)
def test_guesses_of_a_shipped_head_are_worth_making_in_two_buckets_of_three(name, temperature):
    target, reached, (own, worth) = pair(dtype="float32")[0], {}, WORTH[name]
    settings = DecodeSettings(4, 48, SamplingSettings(temperature=temperature))
    for bucket in ("code", "prose", "structured"):
        decoder = Decoder(target, make_proposer(name, target=target, **own), settings=settings)
        for prompt in load_prompts("embedded", buckets=[bucket], per_bucket=6):
            decoder.run(prompt.text, id=prompt.id, bucket=bucket)
        trace = decoder.trace()
        assert [c.name for c, finding in contracts.run(trace) if finding.status == "fail"] == []
        reached[bucket] = analysis.block_efficiency(trace).value
    assert sum(value >= worth for value in reached.values()) >= 2, reached


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("name", ["eagle", "medusa"])
def test_a_tree_of_sixteen_nodes_gives_more_tokens_a_round_than_the_chain_of_the_same_head(name, temperature):
    target, settings = pair(dtype="float32")[0], DecodeSettings(4, 48, SamplingSettings(temperature=temperature))
    reached = []
    for nodes in (0, 16):
        decoder = Decoder(target, make_proposer(name, target=target, nodes=nodes), settings=settings)
        for prompt in PROMPTS[::3]:
            decoder.run(prompt.text, id=prompt.id, bucket=prompt.bucket)
        reached.append(analysis.block_efficiency(decoder.trace()).value)
    assert reached[1] > reached[0]


def test_all_that_is_shipped_stays_under_forty_megabytes():
    assert sum(path.stat().st_size for path in (data_dir() / "models").rglob("*")) < 40e6


@pytest.mark.parametrize("prompt", PROMPTS[::6], ids=lambda prompt: prompt.id)
def test_greedy_plain_decoding_equals_transformers_generate(prompt):
    target = pair()[0]
    ids = torch.tensor([target.encode(prompt.text)])
    output = target.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=GREEDY.max_new_tokens, pad_token_id=0
    )
    assert output[0, ids.shape[1] :].tolist() == plainly(prompt)


def test_guesses_of_the_larger_draft_are_worth_making_in_two_buckets_of_three():
    """Block efficiency at temperature 1 and gamma 4: at least 2 tokens a round."""
    target, draft = pair(dtype="float32")
    reached = {}
    for bucket in ("code", "prose", "structured"):
        proposer = make_proposer("draft_model", target=target, draft=draft)
        decoder = Decoder(target, proposer, settings=DecodeSettings(gamma=4, max_new_tokens=64))
        for prompt in load_prompts("embedded", buckets=[bucket]):
            decoder.run(prompt.text, id=prompt.id, bucket=bucket)
        trace = decoder.trace()
        assert [c.name for c, finding in contracts.run(trace) if finding.status == "fail"] == []
        reached[bucket] = analysis.block_efficiency(trace).value
    assert sum(value >= 2.0 for value in reached.values()) >= 2, reached


def test_ngram_on_a_real_model_keeps_the_contracts_and_agrees_with_transformers(real_model):
    target = load_model(str(real_model("smollm2")), dtype="float64", device="cpu")
    prompt = "Repeat after me: the quick brown fox jumps over the lazy dog. The quick brown fox"
    settings = DecodeSettings(gamma=4, max_new_tokens=16, sampling=SamplingSettings(temperature=0))
    decoder = Decoder(target, make_proposer("ngram"), settings=settings, capture="top-k")
    output = decoder.run(prompt).token_ids
    assert [c.name for c, finding in contracts.run(decoder.trace()) if finding.status == "fail"] == []
    ids = torch.tensor([target.encode(prompt)])
    expected = target.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=16, pad_token_id=0
    )
    assert output == expected[0, ids.shape[1] :].tolist()
