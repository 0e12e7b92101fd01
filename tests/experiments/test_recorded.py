"""Traces on disk become the runs they are parts of, and others are refused."""

import json

import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.experiments.recorded import is_plain, joined, label_of, runs_of_report, with_plain
from specworkbench.trace import save_trace
from tests.trace.toy import toy_trace


@pytest.fixture
def report(tmp_path):
    """A report's folder: a plain run and a speculative one, a file a prompt."""
    for number, proposer in enumerate(("none", "draft_model")):
        trace = toy_trace(proposer=proposer)
        for index in range(len(trace.sequences)):
            part = analysis.select(trace, [index])
            save_trace(part, tmp_path / "traces" / f"{number}" / f"{index:03d}.trace")
    return tmp_path


def test_the_parts_of_a_run_are_joined_in_order(report):
    plain, speculative = runs_of_report(report)
    assert is_plain(plain) and not is_plain(speculative)
    whole = toy_trace()
    assert speculative.sequences == whole.sequences
    assert speculative.rounds["accepted"].tolist() == whole.rounds["accepted"].tolist()


def test_of_a_finished_report_only_its_own_traces_count(report):
    listed = [f"traces/{number}/000.trace" for number in (1, 0)]
    (report / "report.json").write_text(json.dumps({"environment": {"traces": listed}}))
    assert [len(run.sequences) for run in runs_of_report(report)] == [1, 1]


def test_a_run_is_beside_the_plain_one_of_its_sampling(report):
    plain, speculative = runs_of_report(report)
    assert with_plain([plain, speculative]) == [(plain, speculative)]
    assert with_plain([speculative]) == [] == with_plain([toy_trace(rule="greedy"), plain])


def test_a_label_tells_target_proposer_gamma_and_temperature():
    assert label_of(toy_trace(gamma=2)) == "toy draft_model:toy-draft gamma 2 temperature 1"
    assert label_of(toy_trace(proposer="none")) == "toy none temperature 1"
    trace = toy_trace()
    trace.manifest["proposer"] |= {"draft": None, "name": "ngram", "settings": {"min_n": 1, "deep": True}}
    assert label_of(trace) == "toy ngram,min_n=1,deep=true gamma 3 temperature 1"


@pytest.mark.parametrize(("other", "what"), [({"gamma": 2}, "gamma"), ({"rule": "greedy"}, "proposer, rule, sampling")])
def test_traces_of_other_settings_are_no_part_of_the_run(tmp_path, other, what):
    files = [save_trace(trace, tmp_path / f"{i}.trace") for i, trace in enumerate((toy_trace(), toy_trace(**other)))]
    with pytest.raises(InputError, match=f"1.trace is no part of the run of .*0.trace: {what}"):
        joined(files)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"environment": {}}'])
def test_a_folder_without_a_report_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="there are no traces of a report"):
        runs_of_report(tmp_path)
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(InputError, match="is no report"):
        runs_of_report(tmp_path)
