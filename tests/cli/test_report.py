"""`report`: rows, files and figures; what was finished survives Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import typer

from specworkbench.engine import PROPOSERS
from specworkbench.experiments.bench import Bench
from specworkbench.trace import load_trace
from specworkbench.workloads import Prompt
from tests.experiments.toys import PROMPTS, strict_json, write_prompts

REPOSITORY = Path(__file__).parents[2]
ROW = (
    "proposer bucket gamma temperature alpha_counts alpha_overlap block_efficiency expected_tokens c verify_cost "
    "speedup_predicted speedup_measured speedup_low speedup_high tokens"
).split()


@pytest.fixture
def options(toys, tmp_path):
    prompts = write_prompts(tmp_path / "prompts.jsonl")
    pair = ("--target", toys / "target", "--draft", toys / "draft", "--prompts", prompts)
    return ("report", *pair, "--max-new-tokens", 8, "--out", tmp_path / "out")


def test_json_files_and_page_agree(command, options, tmp_path, toys):
    more = ("--proposer", "ngram,min_n=2", "--gamma", "2,4", "--temperature", "1")
    code, out, err = command(*options, *more, "--json")
    printed, out_folder = strict_json(out), tmp_path / "out"
    assert code == 0 and "15/15" in err
    assert printed == strict_json((out_folder / "report.json").read_text())
    assert set(printed) == {"rows", "environment"}
    assert all(list(row) == ROW for row in printed["rows"])
    keys = [(row["proposer"], row["gamma"], row["temperature"], row["bucket"]) for row in printed["rows"]]
    proposers = (f"draft_model:{toys / 'draft'}", "ngram,min_n=2")
    buckets = ("letters", "<b>[red]", "all")
    expected = {(p, g, 1, b) for p in proposers for g in (2, 4) for b in buckets}
    assert set(keys) == expected and len(keys) == len(expected)
    environment = printed["environment"]
    for name in ("python", "torch", "transformers", "cpu", "cores", "threads", "device", "dtype", "date", "seed"):
        assert environment[name] is not None
    assert environment["proposers"] == ["none", *proposers]
    assert not environment["interrupted"] and environment["prompts"]["number"] == 3
    assert all((out_folder / name).exists() for name in environment["traces"])


def test_the_page_needs_no_network_and_takes_no_text_for_markup(command, options, tmp_path):
    code, out, _ = command(*options)
    page = (tmp_path / "out" / "report.html").read_text()
    assert code == 0 and "draft_model:" in out and "[red]" in out
    assert page.count("&lt;b&gt;[red]") >= 4 and "<td><b>" not in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", page)
    assert page.count("plotly.js v") == 1, "plotly's script is inlined, once"
    assert "prefers-color-scheme: dark" in page
    assert page.count('class="plotly-graph-div"') >= 5
    assert "From the formula to the measured speedup" in page and "The formula says" in page


def test_quick_takes_two_prompts_a_bucket_and_few_tokens(command, options, tmp_path, monkeypatch):
    plans = []

    def capture(plan, *_):
        plans.append(plan)
        raise typer.Exit

    monkeypatch.setattr(import_module("specworkbench.cli.report"), "decode_plan", capture)
    write_prompts(tmp_path / "prompts.jsonl", [Prompt(f"{b}{i}", b, "abc") for b in "xy" for i in range(4)])
    few = [argument for argument in options if argument not in ("--max-new-tokens", 8)]
    for arguments in ((*few, "--quick"), (*options, "--quick"), few):
        assert command(*arguments)[0] == 0
    assert [prompt.id for prompt in plans[0].prompts] == ["x0", "x1", "y0", "y1"]
    assert [(len(plan.prompts), plan.max_new_tokens) for plan in plans] == [(4, 32), (4, 8), (8, 96)]


@pytest.mark.parametrize(
    "arguments, labels, source",
    [
        ((), ["draft_model:embedded/draft-m", "draft_model:embedded/draft-s", "ngram", "suffix"], "embedded"),
        (("--target", "somebody/model"), ["ngram", "suffix"], "general"),
        (("--proposer", "suffix,min_prob=0", "--draft", "a/b"), ["draft_model:a/b", "suffix,min_prob=0"], "embedded"),
    ],
)
def test_proposers_and_prompts_suit_the_target(command, monkeypatch, arguments, labels, source):
    known = {name: PROPOSERS[name] for name in ("none", "draft_model", "ngram", "suffix")}
    monkeypatch.setattr("specworkbench.engine.proposers.PROPOSERS", known)
    found = []

    def capture(plan, folder, prompts, quick):
        found.append(([spec.label for spec in plan.proposers], prompts, plan.gammas, plan.temperatures))
        raise typer.Exit

    monkeypatch.setattr(import_module("specworkbench.cli.report"), "decode_plan", capture)
    assert command("report", *arguments)[0] == 0
    assert found == [(labels, source, (4,), (0.0, 1.0))]


def test_an_error_in_the_middle_still_writes_what_was_finished(command, options, tmp_path, monkeypatch):
    from specworkbench.errors import InputError

    decode, calls = Bench._decode, []

    def failing(self, cell, stop):
        calls.append(cell)
        if len(calls) == 6:
            raise InputError("the target's probabilities are not numbers")
        return decode(self, cell, stop)

    monkeypatch.setattr(Bench, "_decode", failing)
    code, _, err = command(*options)
    saved = strict_json((tmp_path / "out" / "report.json").read_text())
    assert code == 2 and "not numbers" in err
    assert saved["environment"]["interrupted"] and saved["environment"]["runs"]["finished"] == 5


def test_an_interrupt_before_anything_is_finished_leaves_an_older_report_alone(command, options, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text("old")

    def interrupt(self, stop):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Bench, "warm_up", interrupt)
    code, out, err = command(*options, "--json")
    assert (code, out) == (130, "") and "before anything was finished" in err
    assert (tmp_path / "out" / "report.json").read_text() == "old"


def test_ctrl_c_in_the_middle_keeps_the_finished_and_exits_with_130(options, tmp_path):
    """A real process and a real signal, sent once some cells are on disk."""
    write_prompts(tmp_path / "prompts.jsonl", PROMPTS + tuple(Prompt(f"p{i}", "letters", "abc") for i in range(80)))
    arguments = [sys.executable, "-m", "specworkbench", *map(str, options), "--max-new-tokens", "40", "--json"]
    arguments += ["--temperature", "1"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(arguments, cwd=tmp_path, env=environment, **pipes)
    try:
        while len(list((tmp_path / "out").rglob("*.trace"))) < 5 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err and "interrupted after" in err
    saved = strict_json((tmp_path / "out" / "report.json").read_text())
    assert saved == strict_json(out) and saved["rows"] and saved["environment"]["interrupted"]
    files = [tmp_path / "out" / name for name in saved["environment"]["traces"]]
    assert sorted(files) == sorted((tmp_path / "out").rglob("*.trace")) and len(files) >= 5
    assert all(load_trace(path).sequences[0]["stop_reason"] == "length" for path in files)
    assert not list((tmp_path / "out").rglob("*.tmp")) and "Ended early" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    "more, said",
    [
        (("--gamma", "0"), "gamma is 0"),
        (("--gamma", "2,-1"), "gamma is -1"),
        (("--gamma", "two"), "gamma is 'two'"),
        (("--gamma", ""), "gamma is ''"),
        (("--gamma", "160"), "past the context"),
        (("--temperature", "hot"), "temperature is 'hot'"),
        (("--temperature", "-1"), "temperature is -1"),
        (("--prompts", "/no/such/file.jsonl"), "no prompt file"),
        (("--target", "nobody/nothing-of-the-kind"), "cannot load the model"),
        (("--target", "/no/such/folder"), "no model folder"),
        (("--proposer", "crystal_ball"), "no proposer 'crystal_ball'"),
        (("--proposer", "ngram,min_n=5"), "min 5 and max 4"),
        (("--proposer", "none"), "part of every report"),
        (("--proposer", "draft_model"), "needs a draft"),
        (("--proposer", "draft_model:embedded/draft-xxl"), "no weights 'embedded/draft-xxl'"),
        (("--chat",), "no chat template"),
        (("--max-new-tokens", "0"), "max_new_tokens is 0"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(refused, options, tmp_path, more, said):
    assert said in refused(*options, *more)
    assert not (tmp_path / "out").exists()


def test_a_draft_of_another_vocabulary_is_refused(refused, options, toys):
    assert "another vocabulary" in refused(*options, "--draft", toys / "other")


def test_a_prompt_longer_than_the_context_is_named(refused, options, tmp_path):
    write_prompts(tmp_path / "prompts.jsonl", (*PROMPTS, Prompt("long", "letters", "ab" * 100)))
    assert "prompt 'long'" in refused(*options)


def test_an_empty_prompt_in_the_file_is_refused(refused, options, tmp_path):
    (tmp_path / "prompts.jsonl").write_text('{"id": "a", "bucket": "b", "prompt": " "}')
    assert "empty prompt" in refused(*options)


def test_a_folder_that_cannot_be_written_is_refused(refused, options, tmp_path):
    (tmp_path / "out").write_text("a file")
    assert "no folder that you may write to" in refused(*options)
