"""Rows: what `analysis` says of the joined traces, one a bucket and one of all; nothing is NaN."""

import pandas as pd
import pytest

from specworkbench import analysis, plots
from specworkbench.cli.report import cells as printed
from specworkbench.experiments.plan import Configuration, ProposerSpec
from specworkbench.experiments.rows import (
    ALL,
    COLUMNS,
    efficiency_tables,
    gaps,
    join,
    pairs,
    position_tables,
    rows,
    time_table,
)
from specworkbench.plots.report_speedup import report_speedup
from specworkbench.trace import contracts
from tests.trace.toy import toy_trace

PLAIN = Configuration(ProposerSpec("none"), None, 1.0)
DRAFT = Configuration(ProposerSpec("draft_model", "d"), 3, 1.0)


def cells(proposer, ids=range(6)):
    """Traces of one sequence each, three prompts in each of two buckets."""
    whole = toy_trace(proposer=proposer, gamma=3)
    return [analysis.select(whole, [index]) for index in ids]


@pytest.fixture
def traces():
    return {PLAIN: cells("none"), DRAFT: cells("draft_model")}


def test_joining_the_parts_gives_the_whole_back():
    whole, joined = toy_trace(gamma=3), join(cells("draft_model"))
    assert joined.rounds.equals(whole.rounds) and joined.positions.equals(whole.positions)
    assert joined.sequences == whole.sequences
    assert {finding.status for _, finding in contracts.run(joined)} <= {"pass", "not recorded"}


def test_rows_are_those_of_analysis_by_bucket_and_of_all(traces):
    found = rows(traces)
    assert [row["bucket"] for row in found] == ["code", "prose", ALL]
    assert all(tuple(row) == COLUMNS and row["proposer"] == "draft_model:d" for row in found)
    expected = analysis.compare(toy_trace(proposer="none", gamma=3), toy_trace(gamma=3))
    assert found[-1] == {name: expected[name] for name in COLUMNS} | {"proposer": "draft_model:d"}
    assert found[-1]["tokens"] == sum(row["tokens"] for row in found[:-1])


def test_one_bucket_alone_still_has_a_row_of_all(traces):
    traces = {key: decoded[:3] for key, decoded in traces.items()}
    assert [row["bucket"] for row in rows(traces)] == ["code", ALL]


def test_only_prompts_that_both_finished_are_compared(traces):
    traces[DRAFT] = traces[DRAFT][:4]
    ((_, plain, speculative),) = pairs(traces)
    assert [sequence["id"] for sequence in plain.sequences] == [sequence["id"] for sequence in speculative.sequences]
    assert len(plain.sequences) == 4


@pytest.mark.parametrize("missing", [PLAIN, DRAFT])
def test_nothing_is_said_where_one_side_is_missing(traces, missing):
    traces[missing] = []
    assert rows(traces) == [] and position_tables(traces) == {}
    assert all(table.empty for table in efficiency_tables(traces))


def test_what_was_never_examined_is_null(traces):
    traces[DRAFT] = [analysis.select(toy_trace(gamma=3, misses=1.0), [index]) for index in range(6)]
    row = rows(traces)[-1]
    assert row["alpha_counts"] is row["expected_tokens"] is row["c"] is row["speedup_predicted"] is None
    assert row["block_efficiency"] == 1.0 and row["speedup_measured"] > 0
    assert position_tables(traces) == {}


def test_every_configuration_has_its_gap_and_one_of_which_nothing_can_be_said_has_none(traces):
    plain, own = toy_trace(proposer="none", gamma=3), toy_trace(gamma=3)
    assert gaps(traces) == {DRAFT.name: analysis.gap(plain, own)}
    for trace in traces[DRAFT]:
        trace.rounds["shortened"] = "budget"
    assert gaps(traces) == {}


def test_an_instrument_is_shown_without_a_speedup_and_without_a_bar(traces):
    for trace in traces[DRAFT]:
        trace.manifest["proposer"]["cost_set"] = 0.0
    found = rows(traces)
    assert all(row["speedup_measured"] is None and row["speedup_predicted"] > 1 for row in found)
    assert [printed(row)[-3:-1] for row in found] == [["–", "–"]] * len(found)
    figure = report_speedup(pd.DataFrame(found).assign(series="dial"))
    measured, predicted = figure.data
    assert pd.isna(measured.y).all() and not pd.isna(predicted.y).any()
    assert time_table(traces)["group"].tolist() == [PLAIN.name]
    plots.phases(time_table(traces), unit="ms per token")


def test_the_theory_curve_starts_at_one_token_and_takes_the_measured_alpha(traces):
    measured, theory = efficiency_tables(traces)
    alpha = analysis.alpha_counts(join(traces[DRAFT])).value
    assert set(theory["alpha"]) == {alpha} and theory["gamma"].tolist() == list(range(1, 9))
    assert theory["expected_tokens"].iloc[0] == pytest.approx(1 + alpha)
    assert measured["gamma"].tolist() == [3]


def test_the_phases_of_a_token_add_up_to_its_time(traces):
    table = time_table(traces).set_index("group")
    speedup = table.loc[PLAIN.name].sum() / table.loc[DRAFT.name].sum()
    assert speedup == pytest.approx(rows(traces)[-1]["speedup_measured"])
