"""A run of the tests: its verdict with both controls, what it says when it cannot know, and how it stops."""

import os
import time
from dataclasses import replace
from functools import partial
from itertools import cycle

import numpy as np
import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.loop import decode_rounds
from specworkbench.equivalence.faults import FAULTS
from specworkbench.equivalence.judge import judge
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.mutants.loops import RejectedTokenStays
from specworkbench.equivalence.mutants.proposals import RawRows
from specworkbench.equivalence.numerics import Divergence
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.experiments import equivalence, implementation
from specworkbench.experiments.equivalence import Check, check, row_differences
from specworkbench.experiments.implementation import Implementation, default_jobs, evidence_of, opened
from specworkbench.experiments.plan import ProposerSpec
from specworkbench.experiments.workers import Workers
from specworkbench.workloads import Prompt, load_prompts
from tests.experiments.equivalence_cases import toy_implementation
from tests.experiments.toys import PROMPTS

LEVEL = 0.01


def checked(wanted, prompts=PROMPTS, tokens=600, jobs=1, level=LEVEL, **options):
    with Workers(jobs) as workers:
        return check(wanted, prompts, tokens=tokens, level=level, workers=workers, **options)


def same(one, other):
    """Whether two judgements are equal, bit for bit."""
    plain = [replace(each, slots=None, outcomes=None, tv={}) for each in (one, other)]
    return plain[0] == plain[1] and one.slots.equals(other.slots) and repr(one) == repr(other)


@pytest.fixture(scope="module")
def sound(toys):
    """The check of the token rule on the toys."""
    return checked(toy_implementation(toys))


def test_a_right_rule_is_not_rejected_and_its_controls_come_out_as_they_must(sound):
    assert sound.verdict == "not rejected" and sound.lossless
    assert sound.positive.rejected and not sound.null.rejected and not sound.subject.rejected
    assert sound.subject.tokens == 600 and sound.null.tokens == 150
    assert sound.rows.kind == "rounding" and sound.law_bound.upper < 1e-9
    assert sound.divergences is None


def test_the_same_run_gives_the_same_and_two_jobs_give_what_one_gives(toys):
    wanted = toy_implementation(toys)
    one, two, other = (checked(each, tokens=150, jobs=jobs) for each, jobs in (
        (wanted, 1), (wanted, 2), (replace(wanted, seed=9), 1),
    ))  # fmt: skip
    for part, found in one.judged.items():
        assert same(found, two.judged[part]), part
    assert two.rows == one.rows
    assert not same(one.subject, other.subject)


@pytest.mark.parametrize(("rule", "lossless"), [("typical", False), ("ensemble,weight=0.5", False)])
def test_a_lossy_rule_is_rejected_and_called_lossy(toys, rule, lossless):
    found = checked(toy_implementation(toys, rule=rule))
    assert found.verdict == "rejected" and found.lossless is lossless
    assert "e-process" in found.subject.rejected_by and found.subject.decided_at < 600


def test_a_faulty_rule_is_rejected(toys):
    found = checked(toy_implementation(toys, fault="accept"), tokens=600)
    assert found.subject.rejected and found.subject.decided_at < 600


def test_where_nothing_is_proposed_nothing_is_decided(toys):
    found = checked(toy_implementation(toys, "ngram,min_n=30,max_n=30"), tokens=100)
    assert found.verdict == "undecided"
    assert found.positive.guided == found.subject.guided == 0 and found.positive.tokens == 100


def test_plain_decoding_can_be_tested_itself(toys):
    found = checked(toy_implementation(toys, "none", temperature=3.0), tokens=1200)
    assert found.implementation.faulty().fault == "best"
    assert found.verdict == "not rejected"


def test_rows_that_are_not_the_targets_own_are_a_fault(toys, sound, monkeypatch):
    """The sampler follows the rows it is given, so no test of it can tell; the rows can."""
    monkeypatch.setattr(equivalence, "Setup", partial(Setup, sequence=RejectedTokenStays))
    rows = row_differences(toy_implementation(toys), PROMPTS).verdict()
    assert rows.kind == "cache"
    assert replace(sound, rows=rows).verdict == "rejected"


def test_at_temperature_0_outputs_are_compared_with_plain_decoding(toys):
    found = checked(toy_implementation(toys, temperature=0.0), tokens=300)
    assert found.verdict == "not rejected"
    assert found.divergences == dict.fromkeys([prompt.id for prompt in PROMPTS])
    assert found.positive.decided_at is not None
    parted = {"one/1": None, "two": Divergence(3, 1, 2, 5.0, 0.1, "bias")}
    assert replace(found, divergences=parted).verdict == "rejected"
    rounded = {"two": replace(parted["two"], judgement="rounding")}
    assert replace(found, divergences=rounded).verdict == "not rejected"


@pytest.mark.parametrize("part", ["rows", "positive", "null", "subject"])
def test_who_watches_stops_it_and_what_was_judged_is_kept(toys, part):
    begun = []

    def watch(name, done, total, log_e):
        begun.append(name)
        return name != part

    found = checked(toy_implementation(toys), tokens=900, watch=watch)
    order = ["rows", "positive", "null", "subject"]
    assert list(dict.fromkeys(begun)) == order[: order.index(part) + 1]
    assert set(found.judged) == set(order[1 : order.index(part) + 1]) if part != "rows" else not found.judged
    assert (found.rows is None) == (part == "rows")
    if part != "rows":
        assert 0 < found.judged[part].tokens <= 32, "one sequence"
    if part != "subject":
        assert found.verdict == "undecided"


def test_it_says_how_far_it_is(toys):
    seen = []
    checked(toy_implementation(toys), tokens=100, watch=lambda *told: seen.append(told))
    assert [(done, total) for part, done, total, _ in seen if part == "rows"] == [(1, 3), (2, 3), (3, 3)]
    assert [(done, total) for part, done, total, _ in seen if part == "null"] == [(25, 25)]
    done = [(done, total) for part, done, total, _ in seen if part == "subject"]
    assert done[-1] == (100, 100) and len(done) == 4


@pytest.mark.parametrize("options", [{"tokens": 0}, {"level": 0.0}, {"level": 2.0}, {"prompts": ()}])
def test_numbers_out_of_range_are_refused_before_anything_is_decoded(toys, options, monkeypatch):
    monkeypatch.setattr(equivalence, "row_differences", lambda *_: pytest.fail("decoded"))
    with pytest.raises(InputError):
        checked(toy_implementation(toys), **options)


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_decoded(toys, monkeypatch):
    monkeypatch.setattr(equivalence, "row_differences", lambda *_: pytest.fail("decoded"))
    with pytest.raises(InputError, match=r"prompt long: the prompt has 400 tokens"):
        checked(toy_implementation(toys), [*PROMPTS, Prompt("long", "letters", "ab" * 200)])


def test_a_check_that_lacks_a_part_decides_nothing(sound):
    assert Check(sound.implementation, True, sound.subject, sound.positive).verdict == "undecided"


def test_the_null_control_must_not_be_rejected(sound):
    assert replace(sound, null=sound.positive).verdict == "undecided"


def test_a_control_has_draws_of_its_own(toys):
    wanted = toy_implementation(toys)
    assert len({wanted.seed, wanted.plain().seed, wanted.faulty().seed}) == 3
    assert wanted.faulty().fault in FAULTS and wanted.plain().proposer.name == "none"


def test_draws_depend_on_the_seed_and_the_number_of_the_sequence(toys):
    wanted = toy_implementation(toys)
    first, again, other = (evidence_of(wanted, "abc", index).token for index in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert not np.array_equal(first, evidence_of(wanted.faulty(), "abc", 0).token)


@pytest.mark.parametrize(
    ("target", "device", "cuda", "jobs"),
    [
        ("embedded", None, False, os.cpu_count()),
        ("embedded/target", "cpu", False, os.cpu_count()),
        ("embedded", None, True, 1),
        ("somebody/model", None, False, 1),
    ],
)
def test_processes_are_for_small_models_on_a_cpu(toys, monkeypatch, target, device, cuda, jobs):
    monkeypatch.setattr(implementation.torch.cuda, "is_available", lambda: cuda)
    assert default_jobs(replace(toy_implementation(toys), target=target, device=device)) == jobs


@pytest.mark.slow
class TestTheEmbeddedPair:
    """What is promised of the embedded target with its draft."""

    WANTED = Implementation("embedded", ProposerSpec("draft_model").fitted("embedded"))

    def decided(self, evidence, tokens):
        return judge(evidence, tokens=tokens, slots=5).decided_at

    @pytest.mark.parametrize("seed", range(10))
    def test_resampling_from_the_target_is_decided_within_3_000_tokens(self, seed):
        wanted, prompts = replace(self.WANTED, fault="resample", seed=seed), cycle(load_prompts("embedded"))
        with Workers(default_jobs(wanted)) as workers:
            parts = workers.map(evidence_of, ((wanted, prompt.text, i) for i, prompt in enumerate(prompts)))
            decided = self.decided(parts, 3_000)
            parts.close()
        assert decided is not None
        print(f"resample from p, seed {seed}: decided after {decided} tokens")

    @pytest.mark.parametrize("seed", range(5))
    def test_raw_q_after_top_k_is_decided_within_10_000_tokens(self, seed):
        parts, top_k = opened(self.WANTED), SamplingSettings(top_k=50)
        settings = replace(self.WANTED.settings, sampling=top_k, draft_sampling=top_k)

        def evidence():
            for index, prompt in enumerate(cycle(load_prompts("embedded"))):
                ids = tuple(parts.target.encode(prompt.text))
                setup = Setup(parts.target, ids, settings, RawRows(parts.proposer.draft), parts.verifier)
                monitor = Monitor(parts.verifier.name)
                for step in decode_rounds(setup.start(setup.streams(seed), index)):
                    monitor(step)
                yield monitor.take()

        decided = self.decided(evidence(), 10_000)
        assert decided is not None
        print(f"raw q after top-k, seed {seed}: decided after {decided} tokens")

    def test_a_check_of_20_000_tokens_takes_less_than_three_minutes(self):
        began = time.monotonic()
        with Workers(default_jobs(self.WANTED)) as workers:
            found = check(self.WANTED, load_prompts("embedded"), tokens=20_000, workers=workers)
        seconds = time.monotonic() - began
        print(f"20,000 tokens in {seconds:.0f} s")
        assert found.verdict == "not rejected" and found.subject.tokens == 20_000
        assert seconds < 180
