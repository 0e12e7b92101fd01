"""What cannot be is found without weights, with its reason; what can be is not refused."""

import torch

from specworkbench.experiments.study.outline import outline
from specworkbench.experiments.study.worker import FINISHED, Worker
from tests.experiments.study.cases import tasks_of, toy_study


def reasons(study):
    tasks = tasks_of(study)
    found = outline(tasks)
    return {task.name: found.left_out.get(task.id) for task in tasks}, found


def test_combinations_that_cannot_be_are_told_with_their_reason(toys):
    study = toy_study(
        toys, proposer=[f"draft_model:{toys / name}" for name in ("draft", "other", "missing")],
        rule=["default", "tree"], gamma=[1, 200], prompt_length=[0, 159, 400],
    )  # fmt: skip
    named, _ = reasons(study)
    said = {why for why in named.values() if why}
    for words in ("another vocabulary", "no weights", "past the context", "400 tokens"):
        assert any(words in why for why in said), words
    fine = [name for name, why in named.items() if why is None]
    assert fine and all("gamma 1" in name and "/draft," in name and "length 400" not in name for name in fine)


def test_whatever_is_not_refused_can_be_decoded_and_nothing_is_loaded(toys, monkeypatch):
    study = toy_study(toys, proposer=["ngram", "draft_tree", f"draft_tree:{toys / 'draft'}"], rule=["default", "block"])
    tasks = tasks_of(study)
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Module, "load_state_dict", lambda *_: (_ for _ in ()).throw(AssertionError("loaded")))
        found = outline(tasks)
    worker = Worker()
    for task in tasks:
        decoded = worker.decode(task).row["status"] == FINISHED
        assert decoded == (task.id not in found.left_out), task.name
    assert 0 < len(found.left_out) < len(tasks)


def test_a_target_that_is_not_there_leaves_its_cells_out_and_no_others(toys):
    target = str(toys / "target")
    named, found = reasons(toy_study(toys, target=[target, "/no/such/folder"], proposer="ngram", gamma=1))
    assert {name.split()[1] for name, why in named.items() if why} == {"/no/such/folder"}
    assert list(found.parameters) == [target] and found.parameters[target] > 0
