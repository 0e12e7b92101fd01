"""What commands wrote is read back as they meant it, and a folder of anything else is refused with a sentence."""

import json

import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.experiments.traces import read_report, read_traces, traces_of
from specworkbench.trace import save_trace
from tests.trace.toy import toy_trace


def save_cells(folder, trace, number=0):
    """One file a prompt, as a report writes them."""
    for index in range(len(trace.sequences)):
        save_trace(analysis.select(trace, [index]), folder / f"{number}{index}.trace")
    return folder


@pytest.fixture
def report(tmp_path):
    """A folder with plain decoding and two configurations of the n-gram proposer that differ in a setting."""
    for number, (name, settings) in enumerate(
        (("none", {}), ("ngram", {"min_n": 1, "max_n": 4}), ("ngram", {"min_n": 2, "max_n": 4}))
    ):
        trace = toy_trace(proposer=name, seed=number)
        trace.manifest["proposer"] |= {"settings": settings, "draft": None}
        save_cells(tmp_path / "traces" / f"{number}-{name}", trace)
    return tmp_path


def test_a_file_and_a_folder_of_one_configuration_are_the_same_trace(tmp_path):
    trace = toy_trace()
    one = read_traces(save_trace(trace, tmp_path / "whole.trace"))
    many = read_traces(save_cells(tmp_path / "parts", trace))
    assert one.rounds.equals(trace.rounds) and many.rounds.equals(trace.rounds)
    assert many.sequences == trace.sequences


def test_a_report_is_read_by_configuration_beside_its_plain_decoding(report):
    found = read_report(report)
    assert [compared.name for compared in found] == [
        "ngram gamma 3 temperature 1, min_n=1",
        "ngram gamma 3 temperature 1, min_n=2",
    ]
    for compared in found:
        assert compared.plain.manifest["proposer"]["name"] == "none" and len(compared.speculative.sequences) == 6


def test_only_what_report_json_lists_counts(report):
    listed = [str(path.relative_to(report)) for path in sorted(report.glob("traces/[01]*/*.trace"))]
    (report / "report.json").write_text(json.dumps({"rows": [], "environment": {"traces": listed}}))
    assert [compared.name for compared in read_report(report)] == ["ngram gamma 3 temperature 1"]


def test_each_temperature_has_its_own_plain_decoding(report):
    for name in ("none", "ngram"):
        trace = toy_trace(proposer=name, rule="greedy")
        trace.manifest["proposer"]["draft"] = None
        save_cells(report / "traces" / f"greedy-{name}", trace)
    for compared in read_report(report):
        assert compared.plain.manifest["sampling"] == compared.speculative.manifest["sampling"]


def test_what_cannot_be_read_is_refused_with_a_sentence(report, tmp_path):
    (tmp_path / "empty").mkdir()
    file = next((report / "traces" / "0-none").iterdir())
    mixed = save_cells(save_cells(tmp_path / "mixed", toy_trace()), toy_trace(gamma=2), number=1)
    for path, said in (
        (tmp_path / "nowhere", "there is no trace at"),
        (tmp_path / "empty", "there are no traces in"),
        (mixed, "is no part of the run of .*: gamma differ"),
    ):
        with pytest.raises(InputError, match=said):
            read_traces(path)
    for path, said in (
        (tmp_path / "nowhere", "there is no folder"),
        (tmp_path / "empty", "there are no traces of a report"),
        (file, "is one file; give two traces"),
    ):
        with pytest.raises(InputError, match=said):
            read_report(path)


def test_a_report_without_plain_traces_or_with_a_damaged_list_is_refused(report):
    for file in (report / "traces" / "0-none").iterdir():
        file.unlink()
    with pytest.raises(InputError, match="holds no plain decoding to compare ngram gamma 3 temperature 1 with"):
        read_report(report)
    for text in ("{", '{"environment": {}}', "[]"):
        (report / "report.json").write_text(text)
        with pytest.raises(InputError, match="is no report"):
            read_report(report)


def test_traces_one_by_one_keep_all_that_they_hold(tmp_path):
    trace = toy_trace(capture="top-k")
    save_cells(tmp_path, trace)
    found = traces_of(tmp_path)
    assert [part.sequences[0]["id"] for part in found] == [entry["id"] for entry in trace.sequences]
    assert all(part.distributions is not None for part in found)
    assert traces_of(trace) == [trace] and traces_of([]) == []
    assert [part.sequences for part in traces_of([trace, tmp_path / "00.trace"])] == [
        trace.sequences, found[0].sequences
    ]  # fmt: skip


def test_traces_of_several_configurations_are_refused(tmp_path):
    file = save_trace(toy_trace(gamma=2), tmp_path / "two.trace")
    with pytest.raises(InputError, match=r"two\.trace is no part of the run of trace 1: gamma differ"):
        traces_of([toy_trace(), file])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there are no traces in"):
        traces_of(tmp_path / "empty")
