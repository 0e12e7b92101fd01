"""`study`: planned, run, stopped, gone on with, and read back as a table and a figure."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import load_study
from specworkbench.experiments.study import worker as worker_module
from specworkbench.experiments.study.grid import AXES
from tests.experiments.toys import strict_json, write_prompts

REPOSITORY = Path(__file__).parents[2]


def written(toys, folder, **values):
    """A TOML file of a study of the toy models."""
    prompts = write_prompts(folder / "prompts.jsonl")
    given = {
        "target": str(toys / "target"), "proposer": ["ngram", f"draft_model:{toys / 'draft'}"], "gamma": [1, 2],
        "max_new_tokens": 8, "prompts": str(prompts),
    }  # fmt: skip
    path = folder / "grid.toml"
    lines = [f"{key} = {value!r}" for key, value in (given | values).items()]
    path.write_text("\n".join(lines).replace("True", "true"))
    return path


@pytest.fixture
def file(toys, tmp_path):
    return written(toys, tmp_path)


@pytest.fixture(scope="module")
def study(toys, tmp_path_factory):
    """A study that was run: its folder."""
    from specworkbench.experiments.study import run_study

    folder = tmp_path_factory.mktemp("study")
    proposers = ["ngram", *(f"draft_model:{toys / name}" for name in ("draft", "other"))]
    run_study(load_study(written(toys, folder, temperature=[0, 1], proposer=proposers)), folder / "out")
    return folder / "out"


def test_the_example_is_a_study(command, tmp_path):
    code, out, _ = command("study", "example")
    (tmp_path / "example.toml").write_text(out)
    assert code == 0 and load_study(tmp_path / "example.toml").proposer


def test_a_dry_run_shows_the_plan_and_writes_nothing(command, file, tmp_path):
    code, out, err = command("study", "run", file, "--out", tmp_path / "out", "--dry-run")
    assert code == 0 and "4 cells = 2 proposer x 2 gamma" in out and "that takes about" in out
    assert not (tmp_path / "out").exists() and "Traceback" not in err
    code, out, _ = command("study", "run", file, "--out", tmp_path / "out", "--dry-run", "--json")
    planned = strict_json(out)
    assert len(planned["cells"]) == 4 and planned["seconds"] > 0 and planned["settled"] == 0


def test_a_study_is_run_once_with_its_plan_and_a_bar(command, file, tmp_path):
    code, out, err = command("study", "run", file, "--out", tmp_path / "out", "--json")
    done = strict_json(out)
    assert code == 0 and "4/4 cells" in err and "to decode: 4 cells" in err
    assert (done["finished"], done["failed"], done["interrupted"]) == (4, [], False) and len(done["rows"]) == 4
    code, out, err = command("study", "run", file, "--out", tmp_path / "out")
    assert code == 0 and "to decode: 0 cells" in err and "4 of 4 cells are finished" in err and out == ""


def test_a_failed_cell_is_told_and_so_is_the_exit_code(command, file, tmp_path, monkeypatch):
    decoders = worker_module.decoders

    def failing(models, task):
        if task.cell.gamma == 2:
            raise InputError("the weights are damaged")
        return decoders(models, task)

    monkeypatch.setattr(worker_module, "decoders", failing)
    code, _, err = command("study", "run", file, "--out", tmp_path / "out")
    assert code == 1 and "failed: proposer ngram, gamma 2: the weights are damaged" in err
    assert "2 of 4 cells are finished" in err and "2 failed" in err
    code, out, err = command("study", "table", tmp_path / "out")
    assert code == 0 and "ngram" in out and "failed: proposer ngram, gamma 2: the weights are damaged" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_keeps_the_finished_and_the_study_goes_on(toys, tmp_path, number, command):
    """A real process and a real signal, sent once some cells are on disk."""
    file = written(toys, tmp_path, seed=list(range(12)), max_new_tokens=60, ignore_eos=True)
    arguments = [sys.executable, "-m", "specworkbench", "study", "run", str(file), "--out", "out", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(arguments, cwd=tmp_path, env=environment, **pipes)
    try:
        while len(list((tmp_path / "out").glob("cells/*/row.json"))) < 2 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err and "interrupted; " in err
    done = strict_json(out)
    assert done["interrupted"] and 2 <= done["finished"] < done["cells"] == 48
    rows = {path.parent.name for path in (tmp_path / "out").glob("cells/*/row.json")}
    assert rows == {row["id"] for row in done["rows"]}
    plan = strict_json(command("study", "run", file, "--out", tmp_path / "out", "--dry-run", "--json")[1])
    assert plan["settled"] == len(rows) and "finished cell" in plan["seconds_judged_by"]


def test_the_table_has_a_row_a_cell_with_the_axes_that_vary(command, study, tmp_path):
    code, out, err = command("study", "table", study)
    assert code == 0 and "Traceback" not in err
    head = next(line for line in out.splitlines() if "speedup" in line)
    assert all(name in head for name in ("gamma", "temperature", "E[N]", "interval", "tokens"))
    assert "proposer" not in head and "max_new_tokens 8" in " ".join(out.split())
    assert out.count("proposer ngram") == 1 and out.count(" to ") == 8, "a table each, a row a cell"
    assert "left out, 4 cells: " in err and "another vocabulary" in err
    code, out, _ = command("study", "table", study, "--json")
    shown = strict_json(out)
    assert len(shown["rows"]) == 8 and {*AXES, "speedup_low", "c_high", "status"} <= set(shown["rows"][0])
    assert len(shown["left_out"]) == 4
    code, out, err = command("study", "table", study, "--csv", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as rows:
        assert len(list(csv.DictReader(rows))) == 8
    assert code == 0 and out == "" and "table written to" in err


def test_medians_by_an_axis(command, study):
    code, out, _ = command("study", "table", study, "--by", "gamma,proposer")
    assert code == 0 and "cells" in out and "lowest to highest" in " ".join(out.split()) and out.count("ngram") == 1
    rows = strict_json(command("study", "table", study, "--by", "gamma", "--json")[1])["rows"]
    assert [(row["gamma"], row["cells"]) for row in rows] == [(1, 4), (2, 4)]


def test_a_figure_is_one_file_that_needs_no_network(command, study, tmp_path):
    out = tmp_path / "f.html"
    arguments = ("--x", "gamma", "--y", "alpha_counts", "--color", "proposer", "--facet", "temperature", "--out", out)
    code, _, err = command("study", "plot", study, *arguments)
    page = out.read_text()
    assert code == 0 and "figure of 8 cells" in err and "differ in" not in err
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", page) and "temperature 1" in page
    code, _, err = command("study", "plot", study, "--out", out)
    assert code == 0 and "points at one place differ in gamma, temperature; hovering tells" in err


def test_a_study_of_which_nothing_is_finished_says_so(command, refused, tmp_path, file):
    from specworkbench.experiments.study.store import Store

    Store(tmp_path / "out").begin(load_study(file), {}, [])
    code, out, err = command("study", "table", tmp_path / "out")
    assert code == 0 and out == "" and "0 of 4 cells are done" in err
    assert "no cell of the study" in refused("study", "plot", tmp_path / "out")


@pytest.mark.parametrize(
    "values, more, said",
    [
        ({"gamma": []}, (), "grid.toml: gamma is an empty list"),
        ({"speed": 1}, (), "grid.toml: there is no key 'speed'"),
        ({"proposer": "draft_model"}, (), "needs a draft"),
        ({}, ("--jobs", "0"), "jobs is 0"),
        ({}, ("--jobs", "2", "--ray", "auto"), "beside a Ray cluster"),
        ({}, ("--cpus-per-worker", "2"), "without a Ray cluster"),
        ({"target": "/no/such/folder"}, (), "no model folder"),
        ({"prompts": "/no/such/file.jsonl"}, (), "no prompt file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(refused, toys, tmp_path, values, more, said):
    file = written(toys, tmp_path, **values)
    assert said in refused("study", "run", file, "--out", tmp_path / "out", *more)
    assert not (tmp_path / "out").exists()


def test_bad_choices_of_table_and_plot_are_refused(refused, study, tmp_path):
    assert "no axis 'speed'" in refused("study", "table", study, "--by", "speed")
    assert "no axis 'speed'" in refused("study", "plot", study, "--x", "speed")
    assert "no figure 'speed'; there are alpha_counts" in refused("study", "plot", study, "--y", "speed")
    assert "ends in .html" in refused("study", "plot", study, "--out", tmp_path / "f.png")
    assert "there is no study in" in refused("study", "table", tmp_path / "nothing")
    assert "there is no study file" in refused("study", "run", tmp_path / "none.toml")
