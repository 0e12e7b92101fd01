"""A minimum length: no EOS before so many new tokens, at every row of a block, whoever guesses and whoever judges."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode
from specworkbench.engine.loop import Sequence
from specworkbench.engine.proposers import NoProposer
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup, record, run
from specworkbench.equivalence.toys import table_setup, toy_model
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.proposer_cases import CASES, EOS
from tests.engine.proposer_checks import make_verifier, sequence_of

GREEDY = SamplingSettings(temperature=0.0)
EACH_CASE = pytest.mark.parametrize("case", CASES, ids=str)
UNMASKED = ("ngram", "suffix", "random", "none", "dial", "other_vocabulary")
"""Proposers whose guesses come from no row of logits, not from one alone, or from one of another vocabulary."""
MASKED = [case for case in CASES if case.name not in UNMASKED or case.settings.get("method") == "intersection"]


def in_a_hurry(make=toy_model, **options):
    """A target whose every row has nearly all its mass on EOS."""
    target = make(**options)
    plain = target.forward

    def forward(*parts, **more):
        found = plain(*parts, **more)
        return replace(found, logits=found.logits + 30.0 * (torch.arange(target.vocab_size) == EOS))

    target.forward = forward
    return target


@EACH_CASE
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_whoever_wants_to_stop_at_once_stops_after_exactly_the_minimum(case, temperature):
    """Off by one in any row of a block, be it of a chain or of a tree, gives another length."""
    target = in_a_hurry(case.target.__wrapped__)
    for gamma in (1, 3):
        for least in (0, 1, 2, 4, 7):
            settings = DecodeSettings(gamma, 10, SamplingSettings(temperature), min_new_tokens=least)
            result = Decoder(target, case.build(target), settings=settings, seed=least).run("abab")
            assert result.token_ids.index(EOS) == least and len(result.token_ids) == least + 1
            assert result.stop_reason == "eos"


@pytest.mark.parametrize("case", MASKED, ids=str)
def test_the_draft_does_not_guess_what_cannot_be_accepted(case):
    """Two tokens must not be EOS: no guess is at depth 1 or 2, and q of it is 0 there. Without a minimum some are."""
    target, found = case.target(vocab=6), {0: set(), 2: set()}
    for least, prompt, seed in product(found, ("abcab", "d", "addacadd", "bed", "fad", "cafe", "bb", "ef"), range(3)):
        sequence = sequence_of(case, prompt, DecodeSettings(3, 12, min_new_tokens=least), seed=seed, target=target)
        sequence.prefill()
        proposal = sequence.round().proposal
        depth = proposal.ancestors.sum(-1) if proposal.is_tree else 1 + torch.arange(proposal.size)
        possible = proposal.tokens == EOS if proposal.probs is None else proposal.probs[:, EOS] > 0
        found[least] |= set(depth[possible].tolist())
    assert found[0] & {1, 2} and not found[2] & {1, 2}
    assert proposal.is_tree or 3 in found[2]


@EACH_CASE
def test_the_law_of_the_whole_loop_is_the_targets_own(case):
    target = case.target(vocab=3)
    settings = DecodeSettings(2, 3, SamplingSettings(0.8, repetition_penalty=1.2), min_new_tokens=2)
    proposer = case.build(target)
    setup = Setup(target, (0, 1, 0), settings, proposer, make_verifier(None, settings.sampling, proposer))
    assert total_variation(decode_law(setup), product_law(target, setup.prompt, settings)) < 1e-12


@pytest.mark.parametrize("least", range(6))
def test_greedy_decoding_is_that_of_transformers(least):
    """Our plain and our speculative text against `generate(min_new_tokens=...)` on the same model."""
    stopped = set()
    for seed in range(8):
        target = toy_model(5, seed=seed, eos=EOS, sharpness=2.0)
        ids = torch.tensor([target.encode("abcab")])
        theirs = target.model.generate(
            ids, do_sample=False, max_new_tokens=8, min_new_tokens=least or None, eos_token_id=EOS, pad_token_id=0,
            attention_mask=torch.ones_like(ids),
        )[0, 5:].tolist()  # fmt: skip
        settings = DecodeSettings(3, 8, GREEDY, min_new_tokens=least)
        for case in (CASES[0], CASES[1], CASES[2]):
            assert Decoder(target, case.build(target), settings=settings).run("abcab").token_ids == theirs
        stopped.add(len(theirs))
    assert least < min(stopped) < 8


@pytest.mark.parametrize("name", [name for name, rule in VERIFIERS.items() if not rule.greedy_only])
def test_under_every_rule_no_eos_comes_too_early(name):
    outputs = set()
    for seed in range(40):
        setup = table_setup(3, vocab=4, length=6, gamma=3, eos=(1, 2), rule=name)
        settings = replace(setup.settings, min_new_tokens=4)
        outputs.add(run(setup.but(settings=settings), setup.streams(seed)))
    assert not any(token in (1, 2) for output in outputs for token in output[:4])
    assert name == "typical" or any(output[-1] in (1, 2) for output in outputs)


def test_without_an_eos_that_ends_the_sequence_it_has_no_effect():
    plain = partial(decode, "abcab", max_new_tokens=12, seed=2)
    free, ending = toy_model(5, sharpness=2.0), toy_model(5, eos=EOS, sharpness=2.0)
    assert plain(target=free, min_new_tokens=12).token_ids == plain(target=free).token_ids
    ignoring = plain(target=ending, ignore_eos=True)
    assert EOS in ignoring.token_ids[:-1]
    assert plain(target=ending, ignore_eos=True, min_new_tokens=12).token_ids == ignoring.token_ids


def test_a_stop_string_may_come_before():
    target = toy_model(5, eos=EOS, sharpness=2.0)
    whole = decode("abcab", target=target, max_new_tokens=12, min_new_tokens=12).text
    result = decode("abcab", target=target, max_new_tokens=12, min_new_tokens=12, stop=(whole[2:4],))
    assert result.stop_reason == "stop_string" and result.text == whole[: whole.index(whole[2:4]) + 2]


@pytest.mark.parametrize("least", [-1, 9])
def test_a_minimum_out_of_range_is_refused_with_its_limits(least):
    with pytest.raises(InputError, match=f"min_new_tokens is {least}; it must be at least 0 .*at most .* which is 8"):
        DecodeSettings(max_new_tokens=8, min_new_tokens=least)


class OffByOne(Sequence):
    """The last token that must not be EOS may be it."""

    def _target_rows(self, last, proposal):
        self.minimum.left -= 1
        return super()._target_rows(last, proposal)


def test_the_trace_says_the_minimum_and_its_contract_fails_where_eos_came_before_it():
    setup = table_setup(3, vocab=4, length=8, gamma=3, eos=(1, 2))
    setup = setup.but(settings=replace(setup.settings, min_new_tokens=4))

    def failed(setup):
        trace = record(setup, 20, seed=1)
        assert trace.manifest["min_new_tokens"] == 4
        return [(kind.name, found.detail) for kind, found in contracts.run(trace) if found.status == "fail"]

    assert failed(setup) == []
    assert failed(setup.but(sequence=OffByOne)) == [("end", "token 3 is an EOS, and min_new_tokens is 4")]
    older = record(setup.but(proposer=NoProposer()), 2)
    del older.manifest["min_new_tokens"]
    assert all(found.status != "fail" for _, found in contracts.run(older))
