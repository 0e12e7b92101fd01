"""Comparisons of whole outputs: who differs from whom, with controls, and what is refused before anything is drawn."""

from dataclasses import replace

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments import against, implementation
from specworkbench.experiments.against import MOST_OUTPUTS, GreedyComparison, compare, few, prepared, short
from specworkbench.experiments.engines import Engine, other_engine, outputs_of
from specworkbench.experiments.workers import Workers
from tests.experiments.equivalence_cases import toy_implementation
from tests.experiments.toys import PROMPTS

TWO = few(PROMPTS)


def compared(wanted, engine, outputs=100, jobs=1, **options):
    with Workers(jobs) as workers:
        options = {"level": 0.01, "length": 3} | options
        return compare(wanted, engine, TWO, outputs=outputs, workers=workers, **options)


@pytest.fixture(scope="module", autouse=True)
def coarse_control():
    """Small samples are for a control with a large fault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "control_for", lambda *_: "accept")
        yield


@pytest.fixture(scope="module")
def with_plain(toys):
    return compared(toy_implementation(toys, gamma=2), "plain")


def test_few_prompts_are_the_first_of_each_bucket():
    assert [prompt.id for prompt in TWO] == ["one/1", "two"]


def test_a_right_rule_does_not_differ_from_plain_decoding_and_its_fault_does(with_plain):
    assert with_plain.verdict == "not rejected"
    assert with_plain.positive.differ and not with_plain.null.differ
    assert with_plain.subject.n_a == with_plain.subject.n_b == 2 * 100
    assert with_plain.engine == {"engine": "plain decoding"} and set(with_plain.law) == {"subject"}


def test_a_lossy_rule_differs_from_plain_decoding(toys):
    assert compared(toy_implementation(toys, rule="typical", gamma=2), "plain").verdict == "rejected"


def test_controls_decide_whether_there_is_a_verdict(with_plain):
    assert replace(with_plain, null=with_plain.positive).verdict == "undecided"
    assert replace(with_plain, positive=with_plain.subject).verdict == "undecided"
    assert replace(with_plain, subject=with_plain.positive).verdict == "rejected"


def test_transformers_is_held_against_the_targets_own_law(toys):
    found = compared(toy_implementation(toys, gamma=2), "transformers", outputs=40)
    assert found.engine["kind"] == "draft model" and found.engine["num_assistant_tokens"] == 2
    assert set(found.law) == set(found.adjusted) == {"subject", "theirs"}
    assert all(set(by_prompt) == {"one/1", "two"} for by_prompt in found.law.values())
    assert not found.off_the_law("theirs") and not found.off_the_law("subject") and not found.subject.differ
    worst = replace(found, adjusted=found.adjusted | {"theirs": {"one/1": 0.0, "two": 1.0}})
    assert worst.off_the_law("theirs") and not worst.off_the_law("subject") and worst.verdict == found.verdict
    worst = replace(found, adjusted=found.adjusted | {"subject": {"one/1": 0.0, "two": 1.0}})
    assert worst.off_the_law("subject")


def test_at_temperature_0_one_output_of_each_prompt_says_it_all(toys):
    seen = []
    wanted = toy_implementation(toys, temperature=0.0)
    found = compared(wanted, "transformers", watch=lambda *told: seen.append(told))
    assert isinstance(found, GreedyComparison) and found.verdict == "not rejected"
    assert list(found.divergences) == ["one/1", "two"]
    assert seen == [("theirs", 1, 2), ("theirs", 2, 2)]
    assert compared(replace(wanted, fault="accept"), "plain").verdict == "rejected"


def test_who_watches_stops_it(toys):
    wanted, seen = toy_implementation(toys), []
    assert compared(wanted, "plain", watch=lambda *told: seen.append(told) or len(seen) < 3) is None
    assert [done for _, done, _ in seen] == [25, 50, 75]
    greedy = toy_implementation(toys, temperature=0.0)
    assert compared(greedy, "plain", watch=lambda *_: False) is None


def test_outputs_depend_on_their_number_and_not_on_the_task_that_drew_them(toys):
    wanted = short(toy_implementation(toys))
    for engine in (Engine("ours", wanted), Engine("transformers", wanted)):
        assert outputs_of(engine, "abc", 4, 0) == outputs_of(engine, "abc", 2, 0) + outputs_of(engine, "abc", 2, 2)


@pytest.mark.parametrize(
    ("proposer", "engine", "options", "says"),
    [
        ("suffix", "transformers", {}, "of suffix; compare it with plain"),
        ("draft_model", "vllm", {}, "there is no engine 'vllm'"),
        ("draft_model", "plain", {"defaults": True}, "has no defaults"),
        ("draft_model", "plain", {"outputs": 0}, "outputs is 0"),
        ("draft_model", "plain", {"outputs": MOST_OUTPUTS + 1}, f"1 to {MOST_OUTPUTS}"),
        ("draft_model", "plain", {"level": 1e-6}, "level is 1e-06"),
        ("draft_model", "transformers", {"outputs": 4}, "4 outputs are too few"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_drawing(toys, monkeypatch, proposer, engine, options, says):
    monkeypatch.setattr(against, "_drawn", lambda *_: pytest.fail("drawn"))
    with pytest.raises(InputError, match=says):
        compared(toy_implementation(toys, proposer), engine, **options)
    with pytest.raises(InputError, match=says):
        options = {"outputs": 100, "level": 0.01, "defaults": False} | options
        prepared(short(toy_implementation(toys, proposer)), engine, TWO, **options)


def test_the_draft_may_not_sample_otherwise_where_transformers_cannot(toys):
    wanted = toy_implementation(toys)
    own = replace(wanted.settings, draft_sampling=replace(wanted.settings.sampling, temperature=2.0))
    with pytest.raises(InputError, match="leave the draft's sampling out"):
        other_engine(replace(wanted, settings=own), "transformers")
