"""Rows of a comparison: the figures of `analysis`, over the prompts that both sides have brought to an end."""

import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.experiments.comparison import Comparison, comparison_row, comparison_rows, explained, finished
from specworkbench.workloads import Prompt
from tests.trace.toy import toy_trace

PROMPT = Prompt("a", "code", "x = 1")


def plain(**options):
    return toy_trace(proposer="none", **options)


def stopped(trace, *sequences):
    """The same with these sequences stopped on request."""
    for index in sequences:
        trace.sequences[index]["stop_reason"] = "stopped"
    return trace


def test_a_row_is_what_analysis_says():
    before, after = plain(), toy_trace()
    first, row = comparison_rows({"none": before, "draft": after})
    assert (first["proposer"], first["speedup_measured"], first["alpha_counts"]) == ("none", 1.0, None)
    speedup = analysis.measured_speedup(before, after)
    assert (row["speedup_measured"], row["speedup_low"], row["speedup_high"]) == tuple(speedup)
    assert (row["alpha_counts"], row["alpha_counts_low"]) == tuple(analysis.alpha_counts(after))[:2]
    assert row["c"] == analysis.draft_cost(after, before).value and row["prompts"] == 6
    assert row["tokens"] == after.rounds["emitted"].sum() and row["rounds"] == len(after.rounds)
    assert first["ms_per_token"] / row["ms_per_token"] == pytest.approx(row["speedup_measured"])


def test_prompts_that_were_stopped_count_nowhere():
    after = toy_trace()
    row = comparison_row("draft", stopped(toy_trace(), 0, 4), stopped(plain(), 5))
    kept = analysis.select(after, [1, 2, 3])
    assert row["prompts"] == 3 and row["tokens"] == kept.rounds["emitted"].sum()
    assert row["speedup_measured"] == analysis.measured_speedup(analysis.select(plain(), [1, 2, 3]), kept).value
    assert row["alpha_counts"] == analysis.alpha_counts(kept).value


@pytest.mark.parametrize("before", [None, "stopped"])
def test_without_a_plain_decoding_there_is_acceptance_and_no_time(before):
    before = None if before is None else stopped(plain(), *range(6))
    after = toy_trace()
    row = comparison_row("draft", after, before)
    assert row["alpha_counts"] == analysis.alpha_counts(after).value and row["speedup_measured"] is row["c"] is None
    assert row["prompts"] == 0 and row["ms_per_token"] is None and row["rounds"] == len(after.rounds)
    assert "no speedup to explain" in explained(before, after)


def test_the_gap_is_explained_or_it_is_said_why_not():
    assert explained(plain(), toy_trace()) == analysis.gap(plain(), toy_trace()).sentence
    assert explained(plain(), plain()).startswith("The speedup cannot be explained: both traces are plain decoding")


def test_finished_leaves_out_what_was_stopped():
    assert [entry["id"] for entry in finished(stopped(plain(), 0, 1, 2)).sequences] == ["prose-0", "prose-1", "prose-2"]
    assert finished(stopped(plain(), *range(6))) is None


def test_plain_decoding_comes_first_and_each_once():
    assert Comparison((PROMPT,), ("ngram", "suffix", "ngram")).labels == ("none", "ngram", "suffix")
    assert Comparison((PROMPT, PROMPT), ("ngram",), max_new_tokens=10).planned_tokens == 20


@pytest.mark.parametrize(
    ("prompts", "proposers", "words"),
    [
        ((PROMPT,), (), "no proposer is chosen"),
        ((), ("ngram",), "no prompt is chosen"),
        ((Prompt("a", "code", " \n"),), ("ngram",), "the prompt 'a' is empty"),
    ],
)
def test_nothing_to_compare_is_refused(prompts, proposers, words):
    with pytest.raises(InputError, match=words):
        Comparison(prompts, proposers)
