"""The loop: what it emits, where it stops, what it forwards, what it refuses."""

import sys

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, Needs, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.proposers import NoProposer
from specworkbench.errors import InputError
from tests.engine.toys import LETTERS, toy_model

GREEDY = SamplingSettings(temperature=0)
TARGET, DRAFT = toy_model(7, layers=3), toy_model(7, seed=1, layers=1)


def proposers():
    return {
        "draft_model": make_proposer("draft_model", target=TARGET, draft=DRAFT),
        "ngram": make_proposer("ngram"),
        "itself": make_proposer("draft_model", draft=TARGET),
    }


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("gamma", range(1, 9))
def test_greedy_speculation_equals_greedy_plain_decoding(name, gamma):
    for prompt in ("abc", "g", "aabbccddeeff"):
        options = dict(target=TARGET, max_new_tokens=30, sampling=GREEDY)
        plain = decode(prompt, **options)
        assert decode(prompt, proposer=proposers()[name], gamma=gamma, **options).token_ids == plain.token_ids


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("penalty", [0.7, 1.3])
def test_a_repetition_penalty_counts_the_tokens_inside_the_block(name, penalty):
    sampling = SamplingSettings(temperature=0, repetition_penalty=penalty)
    options = dict(target=TARGET, max_new_tokens=30, sampling=sampling)
    plain = decode("abc", **options)
    assert decode("abc", proposer=proposers()[name], gamma=5, **options).token_ids == plain.token_ids


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("temperature", [0, 1])
def test_each_output_token_declared_eos_ends_the_text_there(name, temperature):
    """Run once without EOS, then declare output token k to be EOS, for every k."""
    target = toy_model(7, layers=3)
    options = dict(
        target=target, gamma=4, max_new_tokens=20, sampling=SamplingSettings(temperature=temperature), seed=3
    )
    whole = decode("abc", proposer=proposers()[name], **options).token_ids
    for k, token in enumerate(whole):
        target.eos_ids = (token,)
        result = decode("abc", proposer=proposers()[name], **options)
        expected = whole[: whole.index(token) + 1]
        assert (result.token_ids, result.stop_reason) == (expected, "eos"), f"EOS declared at {k}"
        emitted = result.trace.positions.query("emitted")
        assert emitted["token"].tolist() == expected


def test_several_eos_ids_stop_alike_and_ignore_eos_goes_on():
    target = toy_model(7, layers=3)
    whole = decode("abc", target=target, max_new_tokens=20).token_ids
    target.eos_ids = (whole[4], whole[9])
    first = min(whole.index(whole[4]), whole.index(whole[9]))
    assert decode("abc", target=target, max_new_tokens=20).token_ids == whole[: first + 1]
    assert decode("abc", target=target, max_new_tokens=20, ignore_eos=True).token_ids == whole


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_stop_string_ends_the_text_with_the_token_that_completes_it(name, length):
    options = dict(target=TARGET, gamma=4, max_new_tokens=24, seed=1)
    whole = decode("abc", proposer=proposers()[name], **options).text
    for start in range(0, 24 - length, 5):
        stop = whole[start : start + length]
        result = decode("abc", proposer=proposers()[name], stop=(stop,), **options)
        end = whole.index(stop) + length
        assert (result.text, result.stop_reason) == (whole[:end], "stop_string")


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("limit", range(1, 12))
def test_no_more_than_max_new_tokens_are_emitted(name, limit):
    result = decode("abcabc", target=TARGET, proposer=proposers()[name], gamma=4, max_new_tokens=limit)
    assert len(result.token_ids) == limit and result.stop_reason == "length"
    assert (result.trace.rounds["emitted"] == result.trace.rounds["verdict_length"]).all()


@pytest.mark.parametrize("name", proposers())
@pytest.mark.parametrize("context", range(8, 14))
def test_the_targets_context_is_filled_and_never_passed(name, context):
    target = toy_model(7, layers=3, context=context)
    result = decode("abcabc", target=target, proposer=proposers()[name], gamma=3, max_new_tokens=50)
    assert len(result.token_ids) == context - 6 and result.stop_reason == "context"
    last = result.trace.rounds.iloc[-1]
    assert last["context_length"] + last["proposed"] <= context
    assert (result.trace.rounds.query("asked < 3")["shortened"] == "context").all()


def test_every_round_is_one_forward_over_the_proposed_positions_and_one():
    lengths = []
    target = toy_model(7, layers=3)
    forward = target.forward
    target.forward = lambda ids, cache, **options: lengths.append(len(ids)) or forward(ids, cache, **options)
    rounds = decode("abcabc", target=target, proposer=proposers()["ngram"], gamma=3, max_new_tokens=20).trace.rounds
    assert lengths[0] == 5, "prefill stops before the prompt's last token"
    assert lengths[1:] == rounds["target_positions"].tolist() == (rounds["proposed"] + 1).tolist()


def test_a_prompt_of_one_token_needs_no_prefill():
    lengths = []
    target = toy_model(7, layers=3)
    forward = target.forward
    target.forward = lambda ids, cache, **options: lengths.append(len(ids)) or forward(ids, cache, **options)
    assert len(decode("a", target=target, max_new_tokens=4).token_ids) == 4
    assert lengths == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["draft_model", "ngram"])
def test_the_targets_rows_equal_a_fresh_forward_after_every_kind_of_round(name):
    kinds, settings = set(), DecodeSettings(gamma=3, max_new_tokens=40)
    for prompt in ("abc", "g", "ababab"):
        sequence = Decoder(TARGET, proposers()[name], settings=settings).start(prompt)
        before = list(sequence.context.tokens)
        for step in decode_rounds(sequence):
            kinds.add((step.proposal.size, step.decision.accepted))
            ids = torch.tensor(before + step.decision.proposed)
            logits = TARGET.forward(ids, TARGET.new_cache(), rows=step.proposal.size + 1).logits
            assert torch.allclose(step.target_probs, sequence.sampler(logits), atol=1e-10)
            before += step.emitted
    assert {(3, 0), (3, 1)} <= kinds and len(kinds) >= 4


READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__", "nonzero")
"""Tensor methods that make the host wait for the device."""


@pytest.mark.parametrize("name", [*proposers(), "none"])
@pytest.mark.parametrize("sampling", [GREEDY, SamplingSettings(top_k=5, top_p=0.9, min_p=0.01, repetition_penalty=1.2)])
def test_the_engine_reads_the_device_once_a_round(monkeypatch, name, sampling):
    reads = []

    def counting(method):
        original = getattr(torch.Tensor, method)

        def read(*arguments, **options):
            if "/specworkbench/engine/" in sys._getframe(1).f_code.co_filename:
                reads.append(method)
            return original(*arguments, **options)

        return read

    settings = DecodeSettings(gamma=3, max_new_tokens=16, sampling=sampling)
    sequence = Decoder(TARGET, proposers().get(name), settings=settings, capture=None).start("abcab")
    sequence.prefill()
    for method in READS:
        monkeypatch.setattr(torch.Tensor, method, counting(method))
    rounds = 0
    while len(sequence.output) < 16:
        sequence.round()
        rounds += 1
    assert reads == ["tolist"] * rounds


class Watching(NoProposer):
    """Asks for everything a proposer can ask for, and notes what it finds."""

    needs = Needs(hidden_layers=(1, -1), rows=True, cache=True)

    def reset(self):
        self.found = []

    def propose(self, context, gamma, choose):
        hidden = {layer: rows.clone() for layer, rows in context.hidden.items()}
        self.found.append((list(context.tokens), hidden, context.rows, context.cache.length))
        return super().propose(context, gamma, choose)


class WatchingDraft(Watching):
    """The same with real guesses, so that rows are rejected."""

    def __init__(self):
        self.draft = proposers()["draft_model"]

    def reset(self):
        super().reset()
        self.draft.reset()

    def propose(self, context, gamma, choose):
        super().propose(context, gamma, choose)
        return self.draft.propose(context, gamma, choose)

    def observe(self, decision):
        self.draft.observe(decision)


@pytest.mark.parametrize("build", [Watching, WatchingDraft])
def test_a_proposer_finds_just_what_it_needs_of_the_target(build):
    proposer = build()
    decode("abcab", target=TARGET, proposer=proposer, gamma=3, max_new_tokens=16)
    covered = 0
    for tokens, hidden, rows, cached in proposer.found:
        assert cached == len(tokens) - 1
        whole = TARGET.forward(torch.tensor(tokens[:-1]), TARGET.new_cache(), layers=(1, -1)).hidden
        assert set(hidden) == {1, -1}
        for layer in hidden:
            assert torch.allclose(hidden[layer], whole[layer][covered:], atol=1e-10)
        assert (rows is None) == (covered == 0)
        covered = len(tokens) - 1


def test_a_proposer_without_needs_costs_no_hidden_states():
    asked = []
    target = toy_model(7)
    forward = target.forward
    target.forward = lambda ids, cache, **options: (
        asked.append(options.get("layers", ())) or forward(ids, cache, **options)
    )
    decode("abc", target=target, max_new_tokens=3)
    assert set(asked) == {()}


def test_on_round_stops_when_it_says_so():
    result = decode("abc", target=TARGET, max_new_tokens=30, on_round=lambda step: step.index < 4)
    assert (len(result.token_ids), result.stop_reason) == (5, "stopped")


def test_a_prompt_may_be_text_or_its_tokens():
    ids = TARGET.encode("abc")
    by_text, by_ids = Decoder(TARGET, seed=3), Decoder(TARGET, seed=3)
    assert by_text.run("abc").token_ids == by_ids.run(ids).token_ids
    entries = [decoder.trace().sequences[0] for decoder in (by_text, by_ids)]
    assert entries[1]["prompt_tokens"] == ids and entries[1]["prompt"] == entries[0]["prompt"] == "abc"


def test_what_was_decoded_before_an_interrupt_is_in_the_trace():
    decoder = Decoder(TARGET)

    def interrupt(step):
        if step.index == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decoder.run("abc", on_round=interrupt)
    trace = decoder.trace()
    assert len(trace.output()) == 4 == len(trace.sequences[0]["token_ids"])
    assert trace.sequences[0]["stop_reason"] == "stopped"


def damaged(model):
    with torch.no_grad():
        model.model.lm_head.weight[2, 0] = torch.nan
    return model


@pytest.mark.parametrize("temperature", [0, 1])
def test_rows_of_nan_are_refused_and_say_whose(temperature):
    sampling = SamplingSettings(temperature=temperature)
    with pytest.raises(InputError, match="the target's probabilities in round 0"):
        decode("abc", target=damaged(toy_model(7)), sampling=sampling)
    draft = make_proposer("draft_model", draft=damaged(toy_model(7, seed=1)))
    with pytest.raises(InputError, match="the draft's probabilities in round 0"):
        decode("abc", target=TARGET, proposer=draft, sampling=sampling)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"gamma": 0}, "gamma is 0"),
        ({"gamma": -3}, "gamma is -3"),
        ({"gamma": 64}, "past the context"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"stop": ("",)}, "stop string is empty"),
        ({"seed": -1}, "seed is -1"),
        ({"capture": "everything"}, "capture is 'everything'"),
        ({"top_k_captured": 0}, "captured tokens is 0"),
        ({"rule": "guess"}, "no rule 'guess'"),
        ({"rule": "greedy"}, "only at temperature 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        decode("abc", target=TARGET, **options)


@pytest.mark.parametrize("prompt, said", [("", "empty"), (LETTERS[:7] * 10, "70 tokens and toy-0 reads at most 64")])
def test_prompts_that_cannot_be_are_refused(prompt, said):
    with pytest.raises(InputError, match=said):
        decode(prompt, target=TARGET)


def test_a_proposer_that_gives_more_than_it_was_asked_for_is_an_error():
    class Greedy(NoProposer):
        def propose(self, context, gamma, choose):
            return super().propose(context, gamma, choose).__class__(torch.zeros(gamma + 1, dtype=torch.int64))

    with pytest.raises(ValueError, match="gave 5 tokens, 4 were asked for"):
        decode("abc", target=TARGET, proposer=Greedy())
