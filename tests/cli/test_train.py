"""`specworkbench train`: what it prints, what an interrupt leaves, and bad input in one sentence."""

import pytest

pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")

from specworkbench.cli import run
from specworkbench.training import recipe as recipes
from specworkbench.training.structured import document
from specworkbench.training.trainer import Trainer

SMALL = "--minutes 0.02 --windows 8 --length 64 --batch-tokens 128 --guesses 2 --layers 3,-1".split()


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "NEW_TOKENS", 8)
    monkeypatch.setattr(recipes.heldout_traces, "__defaults__", (2,))
    text = tmp_path / "text"
    text.mkdir()
    for i in range(40):
        (text / f"{i:02d}.txt").write_text(document("train", i)[1])
    folders = ["--data", str(text), "--out", str(tmp_path / "head"), "--work", str(tmp_path / "work")]
    return ["train", "eagle", *folders, *SMALL]


def test_acceptance_by_position_is_printed_for_both_temperatures(command, tmp_path, capsys):
    assert run(command) == 0
    captured = capsys.readouterr()
    lines = [line.split() for line in captured.out.splitlines()]
    assert lines[0][:3] == ["temperature", "alpha", "E[N]"] and [line[0] for line in lines[1:]] == ["0", "1"]
    assert all(len(line) == 5 for line in lines[1:])
    assert f"written to {tmp_path / 'head'}" in captured.err
    written = sorted(path.name for path in (tmp_path / "head").iterdir())
    assert written == ["config.json", "model.safetensors", "training.json"]


def test_an_interrupt_keeps_what_was_done_and_the_same_command_goes_on(command, tmp_path, capsys, monkeypatch):
    command[command.index("--minutes") + 1] = "0.1"
    step, steps = Trainer._step, []

    def interrupted(self):
        if len(steps) == 2:
            raise KeyboardInterrupt
        steps.append(self.progress.step)
        return step(self)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    assert run(command) == 130
    said = capsys.readouterr().err
    assert "interrupted" in said and "goes on" in said
    assert not (tmp_path / "head").exists() or not list((tmp_path / "head").iterdir())
    monkeypatch.setattr(Trainer, "_step", lambda self: steps.append(self.progress.step) or step(self))
    assert run(command) == 0
    assert steps[:3] == [0, 1, 2]


@pytest.mark.parametrize(
    "changed, said",
    [
        (["train", "lstm"], "choose one of draft, eagle, medusa, mtp"),
        (["train", "eagle", "--data", "nowhere"], "cannot read the text 'nowhere'"),
        (["train", "eagle", "--layers", "two"], "layers is 'two'"),
        (["train", "eagle", "--minutes", "0"], "minutes is 0"),
        (["train", "eagle", "--target", "./nothing"], "no model folder './nothing'"),
    ],
)
def test_bad_input_gets_a_sentence(changed, said, tmp_path, capsys):
    assert run([*changed, "--out", str(tmp_path / "head"), "--work", str(tmp_path / "work")]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and "Traceback" not in captured.err and not captured.out
