"""`table`: a report's runs by category, as Spec-Bench and SPEED-Bench print theirs."""

import pytest

from specworkbench import analysis
from specworkbench.trace import save_trace
from tests.experiments.toys import strict_json
from tests.trace.toy import toy_trace


@pytest.fixture
def folder(tmp_path):
    for number, proposer in enumerate(("none", "draft_model")):
        save_trace(toy_trace(proposer=proposer, buckets=("qa", "math")), tmp_path / f"traces/{number}/0.trace")
    return tmp_path


def test_spec_bench_is_tasks_with_mean_accepted_tokens_and_speedup(command, folder):
    code, out, _ = command("table", folder, "--json")
    rows = strict_json(out)["rows"]
    assert code == 0 and [row["task"] for row in rows] == ["mt_bench", "qa", "overall"]
    expected = analysis.spec_bench_table(
        *(toy_trace(proposer=p, buckets=("qa", "math")) for p in ("none", "draft_model"))
    )
    assert [row["Speedup ratio"] for row in rows] == expected["Speedup ratio"].tolist()
    code, out, _ = command("table", folder)
    assert code == 0 and "draft_model:toy-draft gamma 3" in out and "Speedup ratio" in out and "mt_bench" in out


def test_speed_bench_is_models_by_category_in_two_metrics_and_a_csv_has_both(command, folder, tmp_path):
    code, out, err = command("table", folder, "--layout", "speed-bench", "--out", tmp_path / "t.csv")
    assert code == 0 and "written to" in err and "accept_length" in out and "block_efficiency" in out
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "metric,Model,math,qa,Overall" and len(lines) == 3


def test_what_is_no_table_is_refused(refused, folder, tmp_path):
    assert "no layout 'mt-bench'; choose one of spec-bench, speed-bench" in refused(
        "table", folder, "--layout", "mt-bench"
    )
    assert "no traces of a report" in refused("table", tmp_path / "nowhere")
    (folder / "traces/1/0.trace").unlink()
    assert "no speculative run beside a plain one" in refused("table", folder)
    assert "no speculative run" in refused("table", folder, "--layout", "speed-bench")
