"""Proposers side by side: in turns with plain decoding; one that fails keeps none from going on; a stop is heard."""

import pytest

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, load_model, make_proposer
from specworkbench.errors import InputError
from specworkbench.experiments.comparison import Comparison, Watch
from specworkbench.experiments.models import Loaded
from specworkbench.experiments.plan import ProposerSpec
from specworkbench.experiments.side_by_side import decode_side_by_side
from tests.experiments.toys import PROMPTS

ALIKE = ["sequence", "round", "position", "token", "u", "outcome"]


class Seen(Watch):
    """Writes down what it is told; stops after so many rounds."""

    def __init__(self, rounds=10**9):
        self.left, self.said, self.turns, self.failures, self.done = rounds, [], [], {}, []

    def stopped(self):
        return self.left <= 0

    def doing(self, words):
        self.said.append(words)

    def round(self, label, step):
        self.left -= 1
        if not self.turns or self.turns[-1] != label:
            self.turns.append(label)

    def decoded(self, label, prompts):
        self.done.append((label, prompts))

    def failed(self, label, error):
        self.failures[label] = error


@pytest.fixture
def loaded():
    return Loaded()


@pytest.fixture
def target(toys):
    return load_model(str(toys / "target"))


def asked(target, *proposers, **options):
    return Comparison(PROMPTS, proposers, target=target, max_new_tokens=8, **options)


def test_each_trace_is_the_one_that_decoding_alone_gives(target, loaded):
    traces = decode_side_by_side(asked(target, "ngram", "suffix,min_prob=0", gamma=3, seed=5, top_k=3), Seen(), loaded)
    assert list(traces) == ["none", "ngram", "suffix,min_prob=0"]
    settings = DecodeSettings(3, 8, SamplingSettings(top_k=3))
    alone = {"none": None, "ngram": make_proposer("ngram"), "suffix,min_prob=0": make_proposer("suffix", min_prob=0.0)}
    for label, proposer in alone.items():
        decoder = Decoder(target, proposer, settings=settings, seed=5)
        for prompt in PROMPTS:
            decoder.run(prompt.text)
        assert decoder.trace().positions[ALIKE].equals(traces[label].positions[ALIKE])
        assert [sequence["id"] for sequence in traces[label].sequences] == [prompt.id for prompt in PROMPTS]


def test_they_take_turns_prompt_by_prompt_and_another_one_begins_each_time(target, loaded):
    watch = Seen()
    decode_side_by_side(asked(target, "ngram", "suffix"), watch, loaded)
    first, second, third = (watch.done[start : start + 3] for start in (0, 3, 6))
    assert [label for label, _ in first] == ["none", "ngram", "suffix"]
    assert [label for label, _ in second] == ["ngram", "suffix", "none"]
    assert {count for _, count in third} == {3} and third[0][0] == "suffix"


def test_one_that_fails_is_told_and_the_others_go_on(target, loaded, monkeypatch):
    proposers = ("nope", "ngram,foo=1", "draft_tree:./none-such", "none,a=1", "suffix", "ngram")
    watch = Seen()
    propose = type(make_proposer("suffix")).propose

    def breaks(self, context, gamma, choose):
        if watch.done and watch.done[-1][1] >= 2:
            raise RuntimeError("broken")
        return propose(self, context, gamma, choose)

    monkeypatch.setattr(type(make_proposer("suffix")), "propose", breaks)
    traces = decode_side_by_side(asked(target, *proposers), watch, loaded)
    assert list(traces) == ["none", "ngram"] and len(traces["ngram"].sequences) == 3
    assert set(watch.failures) == set(proposers) - {"ngram"} and str(watch.failures["suffix"]) == "broken"
    assert all(isinstance(watch.failures[label], InputError) for label in proposers[:4])


def test_a_stop_is_heard_after_the_round_and_keeps_what_was_decoded(target, loaded):
    watch = Seen(rounds=10)
    traces = decode_side_by_side(asked(target, "ngram"), watch, loaded)
    assert "none" in traces and sum(len(trace.rounds) for trace in traces.values()) == 10
    reasons = [sequence["stop_reason"] for trace in traces.values() for sequence in trace.sequences]
    assert reasons.count("stopped") == 1
    assert decode_side_by_side(asked(target, "ngram"), Seen(rounds=0), loaded) == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "greedy"}, "the rule greedy keeps"),
        ({"rule": "nope"}, "there is no rule"),
        ({"controller": "nope"}, "there is no controller"),
        ({"top_p": 0.0}, "top_p is 0.0"),
    ],
)
def test_what_nobody_can_decode_with_is_refused_at_once(target, loaded, options, words):
    watch = Seen()
    with pytest.raises(InputError, match=words):
        decode_side_by_side(asked(target, "ngram", **options), watch, loaded)
    assert not watch.said


def test_a_rule_or_controller_that_does_not_suit_a_proposer_is_its_own_failure(target, loaded):
    watch = Seen()
    traces = decode_side_by_side(asked(target, "ngram", "oracle", controller="confidence"), watch, loaded)
    assert "tells none" in str(watch.failures["ngram"]) and "ngram" not in traces and "none" in traces


def test_one_target_is_kept_with_its_proposers_and_given_back_for_another(toys):
    kept, name = Loaded(), str(toys / "target")
    models = kept.models(name)
    assert kept.models(name) is models and models.target.name == name
    assert models.kept(ProposerSpec("ngram")) is models.kept(ProposerSpec("ngram"))
    assert models.proposer(ProposerSpec("ngram")) is not models.proposer(ProposerSpec("ngram"))
    other = load_model(str(toys / "draft"))
    assert kept.models(other).target is other and kept.models(name) is not models
