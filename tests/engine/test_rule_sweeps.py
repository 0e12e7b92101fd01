"""Faults that public engines had, swept over every rule: EOS inside a block, exact ties, state kept between prompts."""

from dataclasses import replace
from functools import cache
from itertools import product

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, SamplingSettings, decode
from specworkbench.engine.proposers import DraftModelProposer, TreeDraftProposer
from specworkbench.engine.stopping import Stopping
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.setup import Setup, record
from tests.engine.toys import toy_model

GREEDY, WARM = SamplingSettings(temperature=0.0), SamplingSettings()
LENGTH = 14
TREES = [name for name, rule in VERIFIERS.items() if rule.judges_trees]
JUDGED = [(name, "chain") for name in VERIFIERS] + [(name, "tree") for name in TREES]
"""Every rule on chains, and on trees what judges them."""

EACH_RULE = pytest.mark.parametrize("rule, shape", JUDGED)


@cache
def toys() -> tuple[LanguageModel, LanguageModel]:
    return toy_model(6, layers=2, sharpness=2.0), toy_model(6, seed=1, layers=1, sharpness=2.0)


def decoder_of(rule, shape, sampling, gamma=3, target=None, **more):
    draft = toys()[1]
    proposer = DraftModelProposer(draft) if shape == "chain" else TreeDraftProposer(draft, nodes=5, width=2)
    settings = DecodeSettings(gamma, LENGTH, sampling, **more)
    return Decoder(target or toys()[0], proposer, rule=rule, settings=settings, seed=5)


@EACH_RULE
@pytest.mark.parametrize("gamma", range(1, 5))
def test_each_output_token_declared_eos_ends_the_text_there(rule, shape, gamma):
    """Run greedily once, then declare output token k to be EOS, for every k. Nothing else may change."""
    target = toy_model(6, layers=2, sharpness=2.0)
    whole = decoder_of(rule, shape, GREEDY, gamma, target).run("abcab").token_ids
    if VERIFIERS[rule].lossless:
        assert whole == decode("abcab", target=target, max_new_tokens=LENGTH, sampling=GREEDY).token_ids
    inside = 0
    for token in whole:
        target.eos_ids = (token,)
        decoder = decoder_of(rule, shape, GREEDY, gamma, target)
        result = decoder.run("abcab")
        assert (result.token_ids, result.stop_reason) == (whole[: whole.index(token) + 1], "eos")
        last = decoder.trace().rounds.iloc[-1]
        inside += last["emitted"] <= last["accepted"]
    assert inside or gamma == 1, "no EOS was accepted inside a block"


@EACH_RULE
def test_an_eos_that_is_looked_for_at_the_end_of_a_block_only_would_be_seen(rule, shape, monkeypatch):
    """The sweep above fails on an engine that ignores an EOS inside an accepted block."""

    def last_token_only(self, block, output):
        return len(block), "eos" if block[-1] in self.eos_ids else None

    target = toy_model(6, layers=2, sharpness=2.0)
    whole = decoder_of(rule, shape, GREEDY, 3, target).run("abcab").token_ids
    monkeypatch.setattr(Stopping, "cut", last_token_only)
    wrong = 0
    for token in whole:
        target.eos_ids = (token,)
        wrong += decoder_of(rule, shape, GREEDY, 3, target).run("abcab").token_ids != whole[: whole.index(token) + 1]
    assert wrong


def greedily(target, **more):
    return decode("abcab", target=target, max_new_tokens=12, sampling=GREEDY, **more).token_ids


def with_twins(low, high, dtype, fused, vocab):
    """A target whose tokens `low` and `high` have the same row of the output matrix, and that does say one of them."""
    for seed in range(200):
        target = toy_model(vocab, seed=seed, layers=2, width=24, sharpness=2.0)
        target.model.lm_head.weight.data[high] = target.model.lm_head.weight.data[low]
        target = LanguageModel(target.model.to(dtype), target.tokenizer, "twins", fused=fused)
        if {low, high} & set(greedily(target)):
            return target
    raise AssertionError("no such target")


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "transformers"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("low, high, vocab", [(0, 1, 5), (2, 11, 16), (5, 14, 24)])
def test_of_equal_logits_the_lowest_id_wins_in_single_rows_and_in_blocks(low, high, vocab, dtype, fused):
    """Two equal rows of the output matrix give equal logits, and every rule takes the first of them.

    Not for the last tokens of all: a product may sum the rows beyond its last whole block in another order. How wide a
    block is depends on dtype and processor.
    """
    target = with_twins(low, high, dtype, fused, vocab)
    for rows in range(1, 10):
        logits = target.forward(torch.arange(13) % vocab, target.new_cache(), rows=rows).logits
        assert torch.equal(logits[:, low], logits[:, high])
    plain = greedily(target)
    assert low in plain and high not in plain
    for model, gamma in product((toy_model(vocab, seed=1, layers=1, sharpness=2.0), target), (1, 4)):
        for rule in ("greedy", "token", "equality", "block", "lenient", "typical"):
            found = greedily(target, proposer=DraftModelProposer(model), rule=rule, gamma=gamma)
            assert high not in found
            assert dtype != torch.float64 or found == plain


@EACH_RULE
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_the_same_prompt_twice_gives_the_same_trace(rule, shape, sampling):
    """With others in between, by one proposer and one rule object: no state stays behind."""
    if VERIFIERS[rule].greedy_only and not sampling.greedy:
        sampling = replace(GREEDY, repetition_penalty=1.3)
    decoder = decoder_of(rule, shape, sampling)
    target, prompt = decoder.target, tuple(decoder.target.encode("abcab"))
    setup = Setup(target, prompt, decoder.settings, decoder.proposer, decoder.verifier)
    first = record(setup, 1, seed=4)
    record(setup.but(prompt=(3, 3, 1)), 2, seed=9)
    again = record(setup, 1, seed=4)
    assert again.positions.equals(first.positions)
    timed = [name for name in first.rounds if name.startswith("ms_")]
    assert again.rounds.drop(columns=timed).equals(first.rounds.drop(columns=timed))
    assert first.positions["token"].tolist() != record(setup, 1, seed=6).positions["token"].tolist() or sampling.greedy
