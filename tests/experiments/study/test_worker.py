"""A worker: its cells are interleaved and repeatable, one target is loaded at a time, and what fails is a row."""

import json

import pytest
import torch

from specworkbench.engine import Decoder
from specworkbench.errors import InputError
from specworkbench.experiments.files import to_json
from specworkbench.experiments.study import worker as module
from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.worker import FAILED, FINISHED, Worker
from specworkbench.trace import load_trace
from tests.experiments.study.cases import tasks_of, toy_study


@pytest.fixture
def loads(monkeypatch):
    """The targets that were loaded."""
    seen, load = [], module.target_of
    monkeypatch.setattr(module, "target_of", lambda task: seen.append(task.cell.target) or load(task))
    return seen


def traces_of(outcome, folder):
    found = {}
    for name, content in outcome.traces.items():
        (folder / name).write_bytes(content)
        found[name] = load_trace(folder / name)
    return found


def test_a_cell_has_its_own_baseline_of_the_same_prompts(toys, tmp_path):
    task = tasks_of(toy_study(toys))[0]
    outcome = Worker().decode(task)
    traces = traces_of(outcome, tmp_path)
    assert set(traces) == {"plain.trace", "speculative.trace"}
    for trace in traces.values():
        assert [sequence["id"] for sequence in trace.sequences] == [prompt.id for prompt in task.prompts]
        assert all(len(sequence["token_ids"]) == 8 for sequence in trace.sequences)
    row = json.loads(to_json(outcome.row))
    assert row["id"] == outcome.id == task.id and row["status"] == FINISHED and row["lossless"]
    assert set(row["figures"]) == {*MEASURES, *(end for pair in INTERVALS.values() for end in pair)}
    figures = row["figures"]
    assert figures["speedup_low"] <= figures["speedup_measured"] <= figures["speedup_high"]
    plain, speculative = (figures[f"{side}_ms_per_token"] for side in ("plain", "speculative"))
    assert figures["speedup_measured"] == pytest.approx(plain / speculative)
    assert row["axes"]["gamma"] == 1 and row["environment"]["threads"] == torch.get_num_threads()


def test_both_sides_take_turns_and_who_comes_first_alternates(toys, monkeypatch):
    turns, run = [], Decoder.run

    def watched(self, prompt, **options):
        turns.append((options.get("id"), self.proposer.name))
        return run(self, prompt, **options)

    monkeypatch.setattr(Decoder, "run", watched)
    Worker().decode(tasks_of(toy_study(toys, proposer="ngram"))[0])
    turns = [(prompt, name) for prompt, name in turns if prompt]  # the warm-up has no id
    assert [prompt for prompt, _ in turns] == ["one/1", "one/1", "one-1", "one-1", "two", "two"]
    assert [name for _, name in turns] == ["none", "ngram", "ngram", "none", "none", "ngram"]


def test_the_same_cell_gives_the_same_tokens_in_any_worker_and_after_any_other(toys, tmp_path):
    first, *others = tasks_of(toy_study(toys, temperature=1.0))
    one, other = Worker(), Worker()
    other.decode(others[-1])
    outputs = [traces_of(each.decode(first), tmp_path)["speculative.trace"] for each in (one, other)]
    assert outputs[0].output(2)["token"].tolist() == outputs[1].output(2)["token"].tolist()


def test_models_stay_loaded_until_another_target_is_wanted(toys, loads):
    targets = [str(toys / "target"), str(toys / "draft")]
    worker = Worker()
    for task in tasks_of(toy_study(toys, target=targets, proposer=["ngram", "suffix"])):
        assert worker.decode(task).row["status"] == FINISHED
    assert loads == targets
    assert worker._models.target.name == targets[1]


def test_a_stop_leaves_nothing(toys):
    answers = iter([False] * 9)
    assert Worker().decode(tasks_of(toy_study(toys))[0], lambda: next(answers, True)) is None


def test_what_is_refused_or_too_large_is_a_failed_row_and_the_next_cell_is_decoded(toys, monkeypatch):
    tasks, worker = tasks_of(toy_study(toys, proposer="ngram", traces=False)), Worker()
    faults = iter([InputError("the weights are damaged"), torch.OutOfMemoryError("CUDA out of memory.\nmore")])
    decoders = module.decoders

    def failing(*arguments):
        for fault in faults:
            raise fault
        return decoders(*arguments)

    monkeypatch.setattr(module, "decoders", failing)
    rows = [worker.decode(task).row for task in (tasks[0], tasks[0], tasks[1])]
    assert [row["status"] for row in rows] == [FAILED, FAILED, FINISHED]
    assert rows[0]["error"] == "the weights are damaged" and "too little memory" in rows[1]["error"]
    assert rows[0]["axes"] == rows[1]["axes"] and "figures" not in rows[0]


def test_traces_are_left_out_where_nobody_wants_them(toys):
    outcome = Worker().decode(tasks_of(toy_study(toys, traces=False))[0])
    assert outcome.row["status"] == FINISHED and outcome.traces == {}


def test_a_probe_times_plain_tokens(toys):
    assert 0 < Worker().seconds_per_token(tasks_of(toy_study(toys))[0], 4) < 10
