"""What each proposer guesses; what all of them must hold is in `test_proposer_contract.py`."""

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.contracts import Context
from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.sampling import Sampler
from specworkbench.errors import InputError
from tests.engine.toys import toy_model

PLAIN = SamplingSettings()
TARGET, DRAFT = toy_model(5), toy_model(5, seed=1, layers=1)


def context_of(tokens: list[int], settings: SamplingSettings = PLAIN, vocab: int = 5) -> Context:
    seen = torch.zeros(vocab, dtype=torch.bool).index_fill(0, torch.tensor(tokens), True)
    device = torch.device("cpu")
    return Context(list(tokens), len(tokens), Sampler(settings), device, vocab, seen=seen)


def chooser(n: int) -> UniformChooser:
    return UniformChooser(None, torch.linspace(0.1, 0.9, n, dtype=torch.float64))


@pytest.mark.parametrize(
    "settings", [SamplingSettings(), SamplingSettings(temperature=0.7, top_k=3, repetition_penalty=1.5)]
)
def test_the_drafts_rows_are_those_its_guesses_were_drawn_from(settings):
    """q of guess j is the processed row of a fresh forward over the context and the guesses before."""
    tokens = [0, 3, 1, 1]
    proposal = make_proposer("draft_model", draft=DRAFT).propose(context_of(tokens, settings), 3, chooser(3))
    for j in range(3):
        before = tokens + proposal.tokens[:j].tolist()
        logits = DRAFT.forward(torch.tensor(before), DRAFT.new_cache(), rows=1).logits
        fresh = context_of(before, settings)
        assert torch.allclose(proposal.probs[j], fresh.sampler(logits, fresh.seen)[0], atol=1e-12)


@pytest.mark.parametrize("gamma", [1, 2, 4])
@pytest.mark.parametrize("draft", [DRAFT, TARGET], ids=["weak", "itself"])
def test_the_drafts_cache_equals_a_fresh_forward_after_every_kind_of_round(gamma, draft):
    proposer, kinds = make_proposer("draft_model", draft=draft), set()
    settings = DecodeSettings(gamma=gamma, max_new_tokens=40, draft_sampling=SamplingSettings(temperature=2.0))
    for prompt in ("abc", "d"):
        sequence = Decoder(TARGET, proposer, settings=settings).start(prompt)
        for step in decode_rounds(sequence):
            kinds.add("none" if step.decision.accepted == 0 else "all" if step.decision.accepted == gamma else "some")
            tokens, cached = sequence.context.tokens, proposer._cache.length
            assert cached <= len(tokens) - 1
            row = draft.forward(torch.tensor(tokens[cached:]), proposer._cache, rows=1).logits
            proposer._cache.rollback(len(tokens) - cached)
            fresh = draft.forward(torch.tensor(tokens), draft.new_cache(), rows=1).logits
            assert torch.allclose(row, fresh, atol=1e-10)
    assert kinds >= ({"none", "all"} if gamma < 4 or draft is TARGET else {"none", "some"})


def test_full_acceptance_costs_the_draft_no_extra_forward():
    result = decode(
        "abcab", target=TARGET, proposer=make_proposer("draft_model", draft=TARGET), gamma=3, max_new_tokens=24
    )
    rounds = result.trace.rounds
    assert (rounds["accepted"] == rounds["proposed"]).all()
    assert (rounds["draft_forwards"] == rounds["proposed"]).all()


def test_past_the_drafts_context_the_rounds_are_plain_and_say_so():
    short = toy_model(5, seed=1, context=12)
    result = decode(
        "abcab", target=TARGET, proposer=make_proposer("draft_model", draft=short), gamma=3, max_new_tokens=20
    )
    rounds = result.trace.rounds
    late = rounds[rounds["context_length"] > 12]
    assert len(result.token_ids) == 20 and len(late) > 0
    assert (late["proposed"] == 0).all() and (late[late["asked"] == 3]["shortened"] == "draft_context").all()
    partly = rounds[(rounds["proposed"] < rounds["asked"]) & (rounds["proposed"] > 0)]
    assert (partly["shortened"] == "draft_context").all()
    assert (result.trace.positions["outcome"] != "rejected")[result.trace.positions["round"].isin(late["round"])].all()


@pytest.mark.parametrize(
    "tokens, gamma, expected",
    [
        ([1, 2, 3, 4, 1, 2], 2, [3, 4]),
        ([1, 2, 3, 4, 1, 2], 4, [3, 4, 1, 2]),
        ([1, 2, 3, 9, 1, 2, 4, 9, 1, 2], 1, [4]),
        ([7, 7, 7], 4, [7, 7, 7, 7]),
        ([5, 6, 5, 6], 5, [5, 6, 5, 6, 5]),
        ([1, 2, 3], 3, []),
        ([1], 3, []),
    ],
)
def test_ngram_continues_the_latest_longest_match(tokens, gamma, expected):
    proposer = make_proposer("ngram", min_n=1, max_n=3)
    assert proposer.propose(context_of(tokens, vocab=10), gamma, chooser(gamma)).tokens.tolist() == expected


def test_ngram_prefers_a_longer_match_to_a_later_one():
    tokens = [1, 2, 8, 2, 9, 1, 2]
    proposer = make_proposer("ngram", min_n=1, max_n=2)
    assert proposer.propose(context_of(tokens, vocab=10), 1, chooser(1)).tokens.tolist() == [8]


def test_ngram_respects_its_shortest_length():
    proposer = make_proposer("ngram", min_n=2, max_n=3)
    assert proposer.propose(context_of([1, 2, 3, 1], vocab=10), 2, chooser(2)).size == 0


def test_ngram_finds_the_same_whether_it_grew_with_the_context_or_read_it_at_once():
    tokens = [i * i % 7 for i in range(30)]
    growing = make_proposer("ngram")
    for stop in range(1, 31):
        fresh = make_proposer("ngram")
        grown, read = (p.propose(context_of(tokens[:stop], vocab=10), 3, chooser(3)) for p in (growing, fresh))
        assert grown.tokens.tolist() == read.tokens.tolist()


@pytest.mark.parametrize("lengths", [(0, 2), (3, 2), (-1, -1)])
def test_ngram_lengths_out_of_order_are_refused(lengths):
    with pytest.raises(InputError, match="1 <= min <= max"):
        make_proposer("ngram", min_n=lengths[0], max_n=lengths[1])


def test_unknown_proposer_and_missing_draft_are_refused():
    with pytest.raises(InputError, match=r"no proposer 'magic'.*ngram"):
        make_proposer("magic")
    with pytest.raises(InputError, match="needs a draft"):
        make_proposer("draft_model")
