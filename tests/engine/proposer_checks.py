"""The proposer contract as functions: each takes a `Case` and fails where the proposer breaks that part of it."""

from __future__ import annotations

import json
from itertools import count
from unittest.mock import patch

import pytest
import torch

from specworkbench.engine.contracts import Proposal, Proposer
from specworkbench.engine.loop import DecodeSettings, Round, Sequence, decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import PROPOSERS, make_proposer
from specworkbench.engine.rng import Chooser, Streams, work_dtype
from specworkbench.engine.run import Decoder
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.trees import depths_of
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import Trace, contracts
from specworkbench.trace.schema import SHORTENED
from tests.engine.proposer_cases import EOS, Case
from tests.engine.proposer_doubles import Compared, Scripted

EXACT = 1e-12
PROMPT = "abcab"
PROMPTS = (PROMPT, "d", "addacadd")
GREEDY = SamplingSettings(temperature=0.0)
PROCESSED = SamplingSettings(temperature=0.8, top_k=2, repetition_penalty=1.5)
ROUND_KINDS = {"none accepted", "some accepted", "all accepted", "cut by EOS", "limited"}
ENOUGH_SEEDS = 60


def sequence_of(
    case: Case, prompt: str, settings: DecodeSettings, proposer: Proposer | None = None, seed: int = 0, streams=None,
    verifier=None, target: LanguageModel | None = None,
) -> Sequence:  # fmt: skip
    """The prompt as a sequence that has not begun."""
    target = target or case.target()
    streams = streams or Streams(seed, target.device, work_dtype(target.device))
    proposer = proposer or case.build(target)
    verifier = verifier or make_verifier(None, settings.sampling, proposer)
    return Sequence(target, target.encode(prompt), proposer, verifier, settings, streams)


def trace_of(
    case: Case, settings: DecodeSettings, prompts=PROMPTS, proposer: Proposer | None = None,
    target: LanguageModel | None = None, **options,
) -> Trace:  # fmt: skip
    target = target or case.target()
    decoder = Decoder(target, proposer or case.build(target), settings=settings, **options)
    for prompt in prompts:
        decoder.run(prompt)
    return decoder.trace()


def assert_contracts(trace: Trace) -> None:
    broken = [(contract.name, found.detail) for contract, found in contracts.run(trace) if found.status == "fail"]
    assert broken == []


# ---------------------------------------------------------------- what was drawn is what is reported


class Watched:
    """A chooser that keeps the rows that were drawn from, normalised, what was drawn, and for which guess."""

    def __init__(self, choose: Chooser):
        self.choose, self.rows, self.drawn, self.at = choose, [], [], []

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        drawn = self.choose.draw(probs, at)
        self.rows += list(probs / probs.sum(-1, keepdim=True))
        self.drawn += drawn.tolist()
        self.at += range(len(self.at), len(self.at) + len(drawn)) if at is None else at.tolist()
        return drawn


class WatchedStreams(Streams):
    """Streams that hand the proposer a watched chooser."""

    def for_proposer(self, sequence: int, round_index: int, asked: int):
        choose, drafted = super().for_proposer(sequence, round_index, asked)
        self.watched = Watched(choose)
        return self.watched, drafted


def check_reported_rows(case: Case) -> None:
    """Every guess was drawn, through the chooser, from the row that is reported as its q; a certain one was not drawn.

    Entry by entry, at plain sampling, processed rows, and a draft that is sampled otherwise than the target.
    """
    for sampling, draft in ((SamplingSettings(), None), (PROCESSED, None), (GREEDY, PROCESSED)):
        for prompt in PROMPTS:
            streams = WatchedStreams(1, torch.device("cpu"), torch.float64)
            settings = DecodeSettings(3, 16, sampling, draft, ignore_eos=True)
            sequence = sequence_of(case, prompt, settings, streams=streams)
            for step in decode_rounds(sequence):
                assert_drawn_as_reported(step, streams.watched)
                if step.proposal.size and (sequence.proposer.deterministic or (not sampling.greedy and draft is None)):
                    assert (step.proposal.probs is None) == sequence.proposer.deterministic


def assert_drawn_as_reported(step: Round, watched: Watched) -> None:
    proposal = step.proposal
    if proposal.probs is None:
        assert not watched.rows, "a guess that is said to be certain was drawn"
        return
    assert watched.rows, "q is reported and nothing was drawn through the chooser"
    order = sorted(range(len(watched.at)), key=watched.at.__getitem__)
    assert sorted(watched.at) == list(range(proposal.size)), "each guess is drawn once, with its own uniform"
    assert [watched.drawn[i] for i in order] == proposal.tokens.tolist()
    torch.testing.assert_close(torch.stack([watched.rows[i] for i in order]), proposal.probs, rtol=0, atol=EXACT)


# ---------------------------------------------------------------- its state is that of the context


def check_state(case: Case) -> None:
    """After every kind of round it guesses, with the same q, as a fresh proposer does that reads the whole context."""
    target, kinds, gamma = case.target(), set(), 3
    for shift in count():
        settings = DecodeSettings(gamma, 12, SamplingSettings(repetition_penalty=1.2))
        proposer, prompt = Compared(case, target), PROMPTS[shift % len(PROMPTS)]
        verifier = Scripted(gamma, shift)
        sequence = sequence_of(case, prompt, settings, proposer, seed=shift, verifier=verifier, target=target)
        for step in decode_rounds(sequence):
            kinds |= kinds_of(step)
        choose, _ = sequence.streams.for_proposer(0, sequence.context.round, proposer.most_nodes(gamma))
        with torch.inference_mode():  # what the last round left behind, be it cut or not
            proposer.propose(sequence.context, gamma, choose)
        if shift >= 5 and (kinds >= ROUND_KINDS or not case.proposes):
            return
        assert shift < ENOUGH_SEEDS, f"rounds of these kinds never came: {ROUND_KINDS - kinds}"


def kinds_of(step: Round) -> set[str]:
    """What kind of round it was, in the words of `ROUND_KINDS`."""
    accepted, n = step.decision.accepted, step.proposal.size
    if step.proposal.is_tree:
        n = max(depths_of(step.proposal.parents.tolist()))
    kinds = {"cut by EOS"} if step.stop_reason == "eos" and step.decision.emitted <= accepted else set()
    if n:
        kinds.add(f"{'none' if accepted == 0 else 'all' if accepted == n else 'some'} accepted")
        kinds |= {"limited"} if step.asked < step.gamma else set()
    return kinds


# ---------------------------------------------------------------- sizes and ends


def check_sizes(case: Case) -> None:
    """At most gamma guesses, each a token that its own row can give, for every gamma and length of prompt."""
    sizes = set()
    for prompt in (PROMPT, "d", "da", "abababababab"):
        for gamma in range(1, 6):
            sequence = sequence_of(case, prompt, DecodeSettings(gamma, 32), seed=gamma)
            sequence.prefill()
            most = sequence.proposer.most_nodes(gamma)
            choose, _ = sequence.streams.for_proposer(0, 0, most)
            with torch.inference_mode():
                proposal = sequence.proposer.propose(sequence.context, gamma, choose)
            sizes.add(proposal.size)
            assert_whole(proposal, most, sequence.target.vocab_size)
            assert not proposal.is_tree or max(depths_of(proposal.parents.tolist())) <= gamma
    assert (max(sizes) > 0) == case.proposes


def assert_whole(proposal: Proposal, most: int, vocab: int) -> None:
    tokens, n = proposal.tokens, proposal.size
    assert 0 <= n <= most
    assert tokens.dtype == torch.int64 and tokens.shape == (n,) and ((tokens >= 0) & (tokens < vocab)).all()
    assert proposal.shortened in SHORTENED
    if proposal.probs is not None:
        assert proposal.probs.shape == (n, vocab) and (proposal.probs >= 0).all()
        torch.testing.assert_close(proposal.probs.sum(-1), torch.ones(n, dtype=torch.float64), rtol=0, atol=EXACT)
        assert (proposal.probs.gather(-1, tokens.unsqueeze(-1)) > 0).all()


def check_ends(case: Case) -> None:
    """It stops where it must: at every number of new tokens, at the context's end, at EOS inside a proposal."""
    for limit in range(1, 7):
        trace = trace_of(case, DecodeSettings(3, limit, ignore_eos=True))
        assert [len(sequence["token_ids"]) for sequence in trace.sequences] == [limit] * len(PROMPTS)
        assert_contracts(trace)
    for context in (9, 10, 11):
        target = case.target(context=context)
        trace = trace_of(case, DecodeSettings(3, 30, ignore_eos=True), target=target)
        for sequence in trace.sequences:
            assert len(sequence["prompt_tokens"] + sequence["token_ids"]) == context
        assert_contracts(trace)
    for seed in range(ENOUGH_SEEDS):
        trace = trace_of(case, DecodeSettings(3, 24), seed=seed)
        assert_contracts(trace)
        last = trace.rounds.groupby("sequence").tail(1)
        if not case.proposes or (last["emitted"] <= last["accepted"]).any():
            return
    raise AssertionError(f"in {ENOUGH_SEEDS} runs no EOS was accepted inside a proposal")


# ---------------------------------------------------------------- repetition, law, cost, trace, description


def check_repeats(case: Case) -> None:
    """The same prompt gives the same trace, whatever was decoded in between and by whom."""
    target, settings = case.target(), DecodeSettings(3, 20, ignore_eos=True)
    used = case.build(target)
    first, second, *_, later = (
        trace_of(case, settings, [prompt], used, target, seed=4).positions for prompt in (PROMPT, *PROMPTS, PROMPT)
    )
    fresh = trace_of(case, settings, [PROMPT], target=target, seed=4).positions
    for again in (second, later, fresh):
        assert again.equals(first)


def check_law(case: Case, processed: bool = False) -> None:
    """The law of the whole decode loop is the target's own, at temperature 1 or with top-k, penalty and EOS."""
    target = case.target(vocab=3, eos=EOS if processed else None)
    settings = DecodeSettings(2, 3, PROCESSED if processed else SamplingSettings())
    proposer = case.build(target)
    setup = Setup(target, (0, 1, 0), settings, proposer, make_verifier(None, settings.sampling, proposer))
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert total_variation(law, product_law(target, setup.prompt, settings)) < EXACT


def check_cost(case: Case) -> None:
    """What a round cost is recorded: forwards iff it runs a model, rows over them, time, and the bytes of its cache."""
    proposer = case.build(case.target())
    rounds = trace_of(case, DecodeSettings(3, 20, ignore_eos=True), proposer=proposer).rounds
    some = rounds["proposed"] > 0
    assert some.any() == case.proposes
    forwards, positions, held = (rounds[name] for name in ("draft_forwards", "draft_positions", "draft_cache_bytes"))
    assert (forwards[some] > 0).all() if case.runs_model else (forwards == 0).all()
    assert (positions >= forwards).all() and ((positions > 0) == (forwards > 0)).all()
    assert (rounds["ms_propose"] >= 0).all() and (rounds["ms_propose"][some] > 0).all()
    assert (held[some] > 0).all() if case.caches else (held == 0).all()
    proposer.reset()
    assert proposer.cache_bytes == 0


def check_traces(case: Case) -> None:
    """Its traces keep every contract, with the top of the distributions captured or all of them, warm and greedy."""
    for capture in ("top-k", "full"):
        for sampling in (SamplingSettings(), GREEDY, PROCESSED):
            trace = trace_of(case, DecodeSettings(3, 16, sampling), capture=capture, top_k_captured=2)
            assert_contracts(trace)


def check_description(case: Case) -> None:
    """It says in JSON what it is, with all its settings, those not given at their defaults; refuses ones unknown."""
    kind, target = case.proposer, case.target()
    built = case.build(target)
    said = built.describe()
    assert json.loads(json.dumps(said, allow_nan=False))["name"] == kind.name == case.name
    assert kind.summary and said["deterministic"] == built.deterministic
    assert case.weights is None or said["draft"] is not None
    given = said["settings"]
    assert set(given) == set(kind.settings())
    assert {name: given[name] for name in case.settings} == case.settings
    with patch.dict(PROPOSERS, {case.name: kind}):
        weights = None if case.weights is None else case.weights(target)
        made = make_proposer(case.name, target=target, draft=weights, **case.settings)
        assert type(made) is kind and made.describe() == said
        with pytest.raises(InputError, match=f"the proposer {case.name} has no setting 'unknown_setting'"):
            make_proposer(case.name, target=target, draft=weights, unknown_setting=1)


CHECKS = (
    check_reported_rows, check_state, check_sizes, check_ends, check_repeats, check_law, check_cost, check_traces,
    check_description,
)  # fmt: skip
