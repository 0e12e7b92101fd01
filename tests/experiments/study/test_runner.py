"""A study run: what is there is not done again, killed or not; what cannot be is left out; what failed stays failed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import read_study, run_study
from specworkbench.experiments.study import worker as module
from specworkbench.experiments.study.executors import Serial
from specworkbench.experiments.study.runner import Runner, executor_for
from tests.experiments.study.cases import toy_study

REPOSITORY = Path(__file__).parents[3]


def contents(folder):
    """Every file of the cells: its bytes and when it was written."""
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("cells/*/*")}


def test_a_study_is_run_once_and_goes_on_where_values_were_added(toys, tmp_path):
    study, seen = toy_study(toys), []
    table = run_study(study, tmp_path, on_row=lambda row: seen.append(row["id"]))
    assert len(table) == len(set(seen)) == 4 and (table["status"] == "finished").all()
    before = contents(tmp_path)
    assert len(before) == 4 * 3
    run_study(study, tmp_path, on_row=lambda row: seen.append(row["id"]))
    assert len(seen) == 4 and contents(tmp_path) == before
    table = run_study(toy_study(toys, gamma=[1, 2, 3]), tmp_path, on_row=lambda row: seen.append(row["id"]))
    assert len(seen) == len(set(seen)) == len(table) == 6
    assert before.items() <= contents(tmp_path).items()


SCRIPT = """
import sys
from pathlib import Path
from specworkbench.experiments.study import run_study
from tests.experiments.study.cases import toy_study
study = toy_study(Path(sys.argv[1]), proposer="ngram", gamma=[1, 2, 3], seed=[0, 1, 2], max_new_tokens=60)
print(len(run_study(study, sys.argv[2], on_row=lambda row: print(row["id"], flush=True))))
"""


def test_a_killed_study_loses_no_finished_cell_and_repeats_none(toys, tmp_path):
    def begin():
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(toys), str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE,
            text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    first = begin()
    told = [first.stdout.readline().strip() for _ in range(3)]
    first.send_signal(signal.SIGKILL)
    first.communicate()
    rows = {path.parent.name for path in tmp_path.glob("cells/*/row.json")}
    assert set(told) <= rows and len(rows) < 9, "what was told is there, and it was killed in the middle"
    before = contents(tmp_path)
    second = begin()
    *again, number = second.communicate(timeout=300)[0].split()
    assert number == "9" and len(again) == 9 - len(rows) and not rows & set(again)
    after = contents(tmp_path)
    kept = {path: content for path, content in before.items() if path.parent.name in rows}
    assert kept.items() <= after.items() and len(list(tmp_path.glob("cells/*/row.json"))) == 9
    assert not list(tmp_path.rglob("*.tmp"))


def planned(study, folder, **options):
    runner = Runner(study, folder, Serial(), **options)
    return runner, runner.plan()


def test_a_plan_says_what_is_left_out_what_is_there_and_how_long_it_takes(toys, tmp_path):
    study = toy_study(toys, proposer=["ngram", f"draft_model:{toys / 'other'}"])
    _, plan = planned(study, tmp_path)
    assert len(plan.tasks) == len(plan.waiting) == len(plan.left_out) == 2 and not plan.settled
    lines = "\n".join(plan.lines())
    assert lines.startswith("4 cells = 2 proposer x 2 gamma; target ")
    assert "left out, 2 cells: " in lines and "another vocabulary" in lines
    assert "to decode: 2 cells, plain and speculative interleaved, at most 96 tokens, by this process" in lines
    assert "judged by 16 plain tokens of" in lines and not list(tmp_path.iterdir())
    run_study(study, tmp_path)
    _, plan = planned(study, tmp_path)
    lines = "\n".join(plan.lines())
    assert "in the folder: 2 finished" in lines and "to decode: 0 cells" in lines and "that takes" not in lines


def test_a_study_of_which_no_cell_can_be_decoded_is_refused(toys, tmp_path):
    with pytest.raises(InputError, match=r"no cell of the study can be decoded: .*Unknown bucket"):
        run_study(toy_study(toys, bucket="digits"), tmp_path / "a")
    with pytest.raises(InputError, match=r"no cell of the study can be decoded: .*vocabulary"):
        run_study(toy_study(toys, proposer=f"draft_model:{toys / 'other'}"), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_failed_cell_does_not_keep_the_others_and_is_decoded_again_only_when_asked(toys, tmp_path, monkeypatch):
    study = toy_study(toys, proposer="ngram", gamma=[1, 2, 3])
    decoders = module.decoders

    def failing(models, task):
        if task.cell.gamma == 2:
            raise InputError("the weights are damaged")
        return decoders(models, task)

    with monkeypatch.context() as patch:
        patch.setattr(module, "decoders", failing)
        table = run_study(study, tmp_path)
    assert table["status"].tolist() == ["finished", "failed", "finished"]
    assert table["error"][1] == "the weights are damaged"
    seen = []
    run_study(study, tmp_path, on_row=seen.append)
    assert seen == [] and read_study(tmp_path)["status"][1] == "failed"
    table = run_study(study, tmp_path, retry_failed=True, on_row=seen.append)
    assert [row["axes"]["gamma"] for row in seen] == [2] and (table["status"] == "finished").all()


def test_a_stop_keeps_what_is_finished(toys, tmp_path):
    asked = []
    runner, plan = planned(toy_study(toys, max_new_tokens=4), tmp_path)
    runner.executor = Serial(lambda: bool(asked.append(1)) or len(asked) > 30)
    rows = list(runner.run(plan, stop=lambda: len(asked) > 30))
    assert 0 < len(rows) < 4 and len(read_study(tmp_path)) == len(rows)


def test_who_decodes_is_one_of_three(toys, monkeypatch):
    study = toy_study(toys)
    assert executor_for(study).kind == "this process" and executor_for(study, jobs=1).places == 1
    assert executor_for(study, jobs=3).kind == "3 processes"
    monkeypatch.setattr("specworkbench.experiments.study.runner.visible_gpus", lambda: ["0", "1"])
    monkeypatch.setattr("specworkbench.experiments.study.executors.visible_gpus", lambda: ["0", "1"])
    assert executor_for(study).kind == "2 processes, each with a GPU"
    assert executor_for(toy_study(toys, device="cpu")).kind == "this process"
    with pytest.raises(InputError, match="jobs is 2 beside a Ray cluster"):
        executor_for(study, jobs=2, ray="auto")
    with pytest.raises(InputError, match="cpus_per_worker is 2 without a Ray cluster"):
        executor_for(study, cpus_per_worker=2)
