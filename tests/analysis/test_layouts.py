"""Tables by category: their columns are those projects' own figures, recomputed here from the rounds."""

import numpy as np
import pytest

from specworkbench import analysis
from specworkbench.analysis.layouts import METRICS, SPEC_BENCH_TASKS, SPEED_BENCH_CATEGORIES
from specworkbench.errors import InputError
from tests.trace.toy import toy_trace

BUCKETS = ("rag", "stem", "writing", "other", "qa")


@pytest.fixture(scope="module")
def pair():
    options = {"buckets": BUCKETS, "per_bucket": 2, "max_new_tokens": 30}
    return toy_trace(proposer="none", **options), toy_trace(misses=0.3, **options)


def of(trace, *buckets):
    return analysis.select(trace, [i for i, s in enumerate(trace.sequences) if s["bucket"] in buckets])


def rates(trace):
    return [len(sequence["token_ids"]) / (sequence["ms_total"] / 1e3) for sequence in trace.sequences]


def test_tasks_are_spec_benchs_with_mt_bench_as_one(pair):
    table = analysis.spec_bench_table(*pair)
    assert list(table.index) == ["mt_bench", "qa", "rag", "other", "overall"]
    assert table["questions"].to_dict() == {"mt_bench": 4, "qa": 2, "rag": 2, "other": 2, "overall": 10}
    assert set(table.index[:3]) <= set(SPEC_BENCH_TASKS)


@pytest.mark.parametrize(
    ("task", "buckets"), [("mt_bench", ("stem", "writing")), ("rag", ("rag",)), ("overall", BUCKETS)]
)
def test_spec_bench_means_are_over_rounds_and_over_questions(pair, task, buckets):
    row = analysis.spec_bench_table(*pair).loc[task]
    plain, speculative = (of(trace, *buckets) for trace in pair)
    assert row["#Mean accepted tokens"] == pytest.approx(np.mean(speculative.rounds["accepted"] + 1))
    assert row["Tokens per second"] == pytest.approx(np.mean(rates(speculative)))
    assert row["Tokens per second for the baseline"] == pytest.approx(np.mean(rates(plain)))
    assert row["Speedup ratio"] == pytest.approx(np.mean(rates(speculative)) / np.mean(rates(plain)))


def test_our_own_figures_stand_beside_and_differ(pair):
    row = analysis.spec_bench_table(*pair).loc["overall"]
    measured = analysis.measured_speedup(*pair)
    assert tuple(row[["speedup", "low", "high"]]) == tuple(measured)
    assert row["block_efficiency"] == analysis.block_efficiency(pair[1]).value > row["#Mean accepted tokens"]
    assert row["Speedup ratio"] != row["speedup"]


def test_a_set_cost_has_no_speed(pair):
    plain, speculative = pair
    described = speculative.manifest["proposer"] | {"cost_set": 0.1}
    set_up = analysis.select(speculative, range(10))
    set_up.manifest["proposer"] = described
    table = analysis.spec_bench_table(plain, set_up)
    assert table[["Tokens per second", "Speedup ratio", "speedup"]].isna().all(axis=None)
    assert table["#Mean accepted tokens"].notna().all()
    assert analysis.speed_bench_table({"a": set_up}, "throughput").isna().all(axis=None)


def test_speed_bench_is_models_by_categories_and_their_mean(pair):
    plain, speculative = pair
    table = analysis.speed_bench_table({"b": of(speculative, "stem", "qa", "rag"), "a": of(speculative, "qa")})
    assert list(table.index) == ["b", "a"] and list(table.columns) == ["qa", "rag", "stem", "Overall"]
    assert set(table.columns[:-1]) <= set(SPEED_BENCH_CATEGORIES)
    rounds = of(speculative, "stem").rounds
    steps = rounds[rounds["proposed"] > 0]
    assert table.loc["b", "stem"] == pytest.approx(1 + steps["accepted"].sum() / len(steps))
    assert table.loc["b", "Overall"] == pytest.approx(table.loc["b", ["qa", "rag", "stem"]].mean())
    assert table.loc["a", ["rag", "stem"]].isna().all() and table.loc["a", "Overall"] == table.loc["a", "qa"]
    assert analysis.speed_bench_table({"plain": plain}).isna().all(axis=None)


@pytest.mark.parametrize(
    ("buckets", "columns"), [(("mixed", "low_entropy"), ["low_entropy", "mixed"]), (("qa", "b", "a"), ["a", "b", "qa"])]
)
def test_tiers_and_unknown_categories_have_an_order_too(buckets, columns):
    assert list(analysis.speed_bench_table({"m": toy_trace(buckets=buckets)}).columns) == [*columns, "Overall"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("accept_rate", lambda trace: trace.rounds["accepted"].sum() / trace.rounds["proposed"].sum()),
        ("block_efficiency", lambda trace: analysis.block_efficiency(trace).value),
        ("throughput", lambda trace: trace.rounds["emitted"].sum() / sum(s["ms_total"] for s in trace.sequences) * 1e3),
    ],
)
def test_the_other_metrics_of_a_category(pair, metric, expected):
    assert metric in METRICS
    table = analysis.speed_bench_table({"m": pair[1]}, metric)
    assert table.loc["m", "rag"] == pytest.approx(expected(of(pair[1], "rag")))


def test_an_unknown_metric_is_refused(pair):
    with pytest.raises(InputError, match=r"no metric .speed. of SPEED-Bench"):
        analysis.speed_bench_table({"m": pair[1]}, "speed")
