"""A draft with another tokenizer: q is what was drawn from, the law is the target's, and the draft reads the text."""

import math

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, load_model, make_proposer
from specworkbench.engine.contracts import Context
from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.proposers.other_vocabulary import METHODS
from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.sampling import Sampler
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, decode_law_memoised, largest_difference, product_law
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.toy_tokenizers import byte_level, ids, sentence_piece, spelled, table, toy

every_method = pytest.mark.parametrize("method", METHODS)
GREEDY = SamplingSettings(temperature=0.0)
SAMPLINGS = {
    "temperature 1": SamplingSettings(),
    "temperature 0": GREEDY,
    "top-k": SamplingSettings(temperature=0.8, top_k=2),
    "top-p": SamplingSettings(top_p=0.7),
    "penalty": SamplingSettings(repetition_penalty=1.7),
}
every_sampling = pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
PAIRS = {
    "another order": (spelled("a", "b", "c"), spelled("c", "a", "b")),
    "tokens the draft lacks": (spelled("a", "b", "c", "d"), spelled("b", "a", "x")),
    "tokens read as unknown": (spelled("a", "b", "c"), spelled("x", "b", "a", unknown="x")),
    "a longer token of the draft": (spelled("a", "b", "c"), spelled("b", "a", "ab", "c")),
    "a longer token of the target": (spelled("a", "b", "ab"), spelled("b", "a")),
    "longer tokens of both": (spelled("a", "b", "ab", "ba"), spelled("b", "a", "aa", "ab")),
    "parts of characters": (byte_level("a", "Ã", "©"), byte_level("©", "b", "Ã", "a", "Ã©")),
    "characters against their bytes": (byte_level("Ã©", "a", "Ã", "©"), spelled("é", "a")),
    "sentence pieces": (spelled(" ", "a", "b"), sentence_piece("▁", "b", "a", "▁a", fallback=(0x62, 0x0A))),
    "an end each": (spelled("a", "</s>", "b", eos="</s>"), spelled("b", "a", "<end>", eos="<end>")),
}
every_pair = pytest.mark.parametrize("pair", PAIRS)


def tables(pair: str, noise: float = 1.0):
    """Target and draft of a pair as table models; a special token ends the text."""
    return (
        table(tokenizer, seed=side, sharpness=noise, eos=tuple(tokenizer.all_special_ids))
        for side, tokenizer in enumerate(PAIRS[pair])
    )


def context_of(target, tokens, sampling: SamplingSettings = SAMPLINGS["temperature 1"]) -> Context:
    seen = None
    if sampling.repetition_penalty != 1.0:
        seen = torch.zeros(target.vocab_size, dtype=torch.bool).index_fill(0, torch.tensor(list(tokens)), True)
    return Context(list(tokens), len(tokens), Sampler(sampling), target.device, target.vocab_size, seen=seen)


def chooser(n: int) -> UniformChooser:
    return UniformChooser(None, torch.linspace(0.1, 0.9, n, dtype=torch.float64))


def plain_row(target, logits: dict[str, float], seen: set[str], sampling: SamplingSettings) -> list[float]:
    """q over the target's vocabulary from the draft's logits by text, computed one token at a time."""
    scores = {}
    for text in target.tokenizer.get_vocab():
        if text in logits:
            score = logits[text]
            if text in seen:
                score = score * sampling.repetition_penalty if score < 0 else score / sampling.repetition_penalty
            scores[text] = score
    best = sorted(scores, key=scores.get, reverse=True)
    best = best[:1] if sampling.greedy else best[: sampling.top_k or None]
    weights = {text: math.exp((scores[text] - scores[best[0]]) / (sampling.temperature or 1.0)) for text in best}
    total, kept = sum(weights.values()), {}
    for text in best:
        if sum(kept.values()) < sampling.top_p * total:
            kept[text] = weights[text]
    total = sum(kept.values())
    return [kept.get(target.tokenizer.convert_ids_to_tokens(i), 0.0) / total for i in range(target.vocab_size)]


@every_sampling
@pytest.mark.parametrize("pair", ["another order", "tokens the draft lacks", "longer tokens of both"])
def test_q_is_the_drafts_row_over_the_shared_tokens_processed_in_the_targets_ids(pair, sampling):
    target, draft = (toy(tokenizer, seed) for seed, tokenizer in enumerate(PAIRS[pair]))
    tokens = ids(target, "b", "a", "a")
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method="intersection")
    proposal = proposer.propose(context_of(target, tokens, sampling), 4, chooser(4))
    assert proposal.probs.shape == (4, target.vocab_size)
    read, seen = draft.tokenizer("baa").input_ids, {"a", "b"}
    for guess, row in zip(proposal.tokens.tolist(), proposal.probs, strict=True):
        logits = draft.forward(torch.tensor(read), draft.new_cache(), rows=1).logits[0].tolist()
        by_text = {text: logits[token] for text, token in draft.tokenizer.get_vocab().items()}
        assert row.tolist() == pytest.approx(plain_row(target, by_text, seen, sampling), abs=1e-12)
        text = target.tokenizer.convert_ids_to_tokens(guess)
        assert text in by_text and row[guess] > 0
        read, seen = [*read, draft.tokenizer.convert_tokens_to_ids(text)], seen | {text}


@every_sampling
def test_with_equal_vocabularies_q_is_that_of_draft_model(sampling):
    tokenizer = spelled("a", "b", "ab", "</s>", eos="</s>")
    target, draft = toy(tokenizer, eos=3), toy(tokenizer, seed=1, layers=1, eos=3)
    found = [
        make_proposer(name, target=target, draft=draft, **settings).propose(
            context_of(target, [0, 1, 2, 0], sampling), 4, chooser(4)
        )
        for name, settings in (("other_vocabulary", {"method": "intersection"}), ("draft_model", {}))
    ]
    assert torch.equal(found[0].tokens, found[1].tokens)
    assert torch.equal(found[0].probs, found[1].probs)


def test_the_drafts_likeliest_text_is_guessed_in_the_targets_tokens():
    target, draft = toy(spelled("b", "a", "ba", "c", "ab")), toy(spelled("a", "b", "c"), seed=3)
    text = "abc"
    proposal = make_proposer("other_vocabulary", target=target, draft=draft, method="text").propose(
        context_of(target, ids(target, "ab", "c")), 3, chooser(3)
    )
    for _ in range(proposal.forwards):
        logits = draft.forward(torch.tensor(draft.tokenizer(text).input_ids), draft.new_cache(), rows=1).logits
        text += "abc"[logits.argmax()]
    assert proposal.probs is None and 0 < proposal.size <= 3
    assert text[3:].startswith(target.decode(proposal.tokens.tolist()))
    assert target.tokenizer(text[3:]).input_ids[: proposal.size] == proposal.tokens.tolist()
    assert proposal.positions == 3 + proposal.forwards - 1


def setup_of(pair: str, method: str, sampling: SamplingSettings, models=tables, gamma: int = 2) -> Setup:
    target, draft = models(pair)
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
    settings = DecodeSettings(gamma, 3, sampling)
    return Setup(target, (0, 0), settings, proposer, make_verifier(None, sampling))


def assert_exact(setup: Setup, law) -> None:
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert largest_difference(law, product_law(setup.target, setup.prompt, setup.settings)) < 1e-12


@every_method
@every_pair
@every_sampling
def test_the_law_is_the_targets_own(sampling, pair, method):
    setup = setup_of(pair, method, sampling)
    assert_exact(setup, decode_law_memoised(setup))


@every_method
@pytest.mark.parametrize("pair", ["longer tokens of both", "parts of characters"])
def test_the_law_of_the_whole_loop_with_real_caches_is_the_targets_own(pair, method):
    def llamas(pair):
        small = {"layers": 1, "width": 8, "sharpness": 2.0}
        return (toy(tokenizer, seed, **small) for seed, tokenizer in enumerate(PAIRS[pair]))

    setup = setup_of(pair, method, SamplingSettings(top_k=2, repetition_penalty=1.3), llamas)
    assert_exact(setup, decode_law(setup))


@every_method
@every_pair
def test_a_used_cache_gives_the_guesses_of_a_fresh_reading_after_every_kind_of_round(pair, method):
    kinds = set()
    for seed in range(2):
        target, draft = (toy(tokenizer, side, sharpness=1.5) for side, tokenizer in enumerate(PAIRS[pair]))
        used = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
        settings = DecodeSettings(3, 30, ignore_eos=True)
        sequence = Decoder(target, used, settings=settings, seed=seed).start("aa")
        for step in decode_rounds(sequence):
            before = sequence.context.tokens[: step.context_length]
            fresh = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
            if step.asked:
                context = context_of(target, before)
                expected = fresh.propose(context, step.asked, UniformChooser(None, step.uniforms.draft))
                assert torch.equal(step.proposal.tokens, expected.tokens)
                assert step.proposal.forwards == expected.forwards and step.proposal.positions <= expected.positions
                if expected.probs is not None:
                    assert torch.allclose(step.proposal.probs, expected.probs, atol=1e-10)
            n, accepted = step.proposal.size, step.decision.accepted
            assert used._cache.length == len(used._cached)
            kept = used._theirs.spell(used._cached[len(used._reader.read(before) or used._cached) :])
            assert used._ours.spell(step.decision.proposed[:accepted]).startswith(kept)  # nothing rejected stays
            kinds.add("empty" if n == 0 else "all" if accepted == n else "some" if accepted else "none")
    assert kinds >= {"none", "some"} or kinds >= {"none", "all"}


def test_what_was_accepted_is_not_forwarded_again_unless_it_reads_otherwise():
    """The target as its own draft, its tokens in another order: every guess is accepted and none is read twice."""
    tokenizers = spelled("a", "b", "c"), spelled("c", "b", "a")
    target, draft = (toy(tokenizer, context=64) for tokenizer in tokenizers)
    with torch.no_grad():
        for weight in (draft.model.get_input_embeddings().weight, draft.model.get_output_embeddings().weight):
            weight.copy_(weight.flip(0))
    draft = with_weights_read_anew(draft)
    for method, sampling in (("intersection", SamplingSettings()), ("text", GREEDY)):
        proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
        rounds = decode("abc", target=target, proposer=proposer, gamma=3, max_new_tokens=24, sampling=sampling).trace
        rounds = rounds.rounds[rounds.rounds["asked"] == 3]
        assert (rounds["accepted"] == 3).all()
        assert rounds["draft_positions"].tolist() == [3] + [4] * (len(rounds) - 1)


def with_weights_read_anew(draft):
    """The same network: the engine may hold its weights in another form of its own."""
    return type(draft)(draft.model, draft.tokenizer, draft.name)


@every_method
def test_the_same_prompt_twice_gives_the_same_trace_and_traces_keep_their_contracts(method):
    target, draft = tables("longer tokens of both")
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
    decoder = Decoder(target, proposer, settings=DecodeSettings(3, 24), seed=3, capture="top-k")
    first, second = (
        decode("abab", target=target, proposer=proposer, gamma=3, max_new_tokens=24, seed=4).trace.positions
        for _ in range(2)
    )
    assert first.equals(second)
    for prompt in ("ab", "bba"):
        decoder.run(prompt)
    trace = decoder.trace()
    assert [contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"] == []
    assert trace.manifest["proposer"]["deterministic"] == (method == "text")
    assert (trace.rounds["proposed"] <= trace.rounds["asked"]).all()


@every_method
def test_a_context_that_ends_within_a_character_gets_no_guess_and_the_next_whole_one_does(method):
    target, draft = tables("parts of characters")
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
    half = proposer.propose(context_of(target, ids(target, "a", "Ã")), 3, chooser(3))
    assert half.size == 0 and half.forwards == 0
    whole = proposer.propose(context_of(target, ids(target, "a", "Ã", "©")), 3, chooser(3))
    assert whole.forwards > 0


def test_of_a_drafted_half_character_only_the_text_before_it_is_guessed():
    target, draft = toy(byte_level("a", "Ã", "©")), toy(byte_level("©", "a", "Ã"))
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method="text")
    for drafted, expected in ((["a", "Ã"], ["a"]), (["Ã", "©"], ["Ã", "©"]), (["Ã"], []), (["a", "©", "a"], ["a"])):
        proposer._drafted = list(ids(draft, *drafted))
        guesses, more = proposer._in_target_tokens([0])
        assert guesses == list(ids(target, *expected)) and more


@every_method
def test_past_the_drafts_context_the_rounds_are_plain_and_say_so(method):
    target = table(PAIRS["another order"][0])
    draft = table(PAIRS["another order"][1], seed=1, context=9)
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
    for length, size in ((7, 3), (8, 2), (9, 1), (10, 0), (11, 0)):
        proposal = proposer.propose(context_of(target, ([0, 1, 2] * 4)[:length]), 3, chooser(3))
        assert (proposal.size, proposal.shortened) == (size, "" if size == 3 else "draft_context")
    rounds = decode("abcab", target=target, proposer=proposer, gamma=3, max_new_tokens=20).trace.rounds
    late = rounds[(rounds["context_length"] > 9) & (rounds["asked"] == 3)]
    assert len(late) and (late["proposed"] == 0).all() and (late["shortened"] == "draft_context").all()


def test_the_end_of_a_text_is_guessed_whatever_it_is_called():
    target, draft = tables("an end each", noise=0.0)
    draft.model.row(tuple(ids(draft, "a")))[2] = 9.0  # after 'a' the draft ends the text
    for method in METHODS:
        proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
        guesses = proposer.propose(context_of(target, [0], GREEDY), 3, chooser(3)).tokens.tolist()
        assert guesses[0] == target.eos_ids[0]


@every_method
def test_what_is_said_of_it(method):
    target, draft = tables("tokens the draft lacks")
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
    said = proposer.describe()
    assert said["settings"] == {"method": method} and said["deterministic"] == (method == "text")
    assert said["shared_tokens"] == 2 and said["shared_share"] == 0.5
    assert said["draft"] == draft.describe()


def test_an_unknown_method_and_vocabularies_with_nothing_in_common_are_refused():
    target, draft = table(spelled("a", "b")), table(spelled("x", "y", "z"))
    with pytest.raises(InputError, match=r"'letters'.*intersection, text"):
        make_proposer("other_vocabulary", target=target, draft=draft, method="letters")
    with pytest.raises(InputError, match=r"shares no token.*3 and 2 tokens.*method=text"):
        make_proposer("other_vocabulary", target=target, draft=draft, method="intersection")
    proposer = make_proposer("other_vocabulary", target=target, draft=draft, method="text")
    assert proposer.propose(context_of(target, [0, 1]), 3, chooser(3)).size == 0


def test_smollm2_drafts_for_the_embedded_target(real_model):
    target = load_model("embedded", dtype="float64", device="cpu")
    draft = load_model(str(real_model("smollm2")), dtype="float64", device="cpu")
    prompt, greedy = "import os\n\n\ndef read_lines(path):\n    with open(", {"sampling": GREEDY, "max_new_tokens": 12}
    plain = decode(prompt, target=target, capture=None, **greedy)
    for method in METHODS:
        proposer = make_proposer("other_vocabulary", target=target, draft=draft, method=method)
        result = decode(prompt, target=target, proposer=proposer, gamma=3, capture="top-k", **greedy)
        assert result.token_ids == plain.token_ids
        assert [c.name for c, finding in contracts.run(result.trace) if finding.status == "fail"] == []
        assert result.trace.rounds["accepted"].sum() > 0
        assert proposer.describe()["shared_tokens"] > 3000
