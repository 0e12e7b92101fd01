"""`lab`: JupyterLab on the index; a wheel's notebooks are copied and never overwritten."""

import sys
from importlib import import_module

import pytest

lab = import_module("specworkbench.cli.lab")  # the package's own `lab` is the command


@pytest.fixture
def launched(monkeypatch):
    commands = []
    monkeypatch.setattr(lab, "launch", commands.append)
    monkeypatch.setattr(lab, "find_spec", lambda name: object())
    return commands


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A package folder as in an installed wheel; the current folder is empty."""
    notebooks = tmp_path / "package" / "_data" / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / lab.FIRST).write_text("first")
    (notebooks / "helper.css").write_text("style")
    monkeypatch.setattr(lab, "PACKAGE", tmp_path / "package")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work" / lab.COPY


def test_a_checkout_opens_its_own_notebook_and_passes_arguments_on(command, launched, tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "PACKAGE", tmp_path / "package")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / lab.FIRST).touch()
    code, *_ = command("lab", "--no-browser", "--port", "8890", "--ServerApp.token=")
    assert code == 0
    expected = [sys.executable, "-m", "jupyterlab", str(tmp_path / "notebooks" / lab.FIRST)]
    assert launched == [[*expected, "--no-browser", "--port", "8890", "--ServerApp.token="]]


def test_a_wheel_copies_its_notebooks_and_keeps_what_was_changed(command, launched, wheel):
    assert command("lab")[0] == 0
    assert (wheel / lab.FIRST).read_text() == "first" and (wheel / "helper.css").exists()
    (wheel / lab.FIRST).write_text("my work")
    (wheel / "helper.css").unlink()
    command("lab")
    assert (wheel / lab.FIRST).read_text() == "my work" and (wheel / "helper.css").exists()
    assert launched[-1][3] == str(wheel / lab.FIRST)


def test_a_folder_that_cannot_be_written_gets_a_sentence(refused, launched, wheel):
    wheel.write_text("a file where the folder should be")
    assert "cannot copy the notebooks" in refused("lab")


def test_no_notebook_gets_a_sentence(refused, launched, tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "PACKAGE", tmp_path / "package")
    assert "there is no notebook" in refused("lab")


def test_no_jupyterlab_gets_a_sentence_with_the_remedy(refused, monkeypatch):
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    assert "specworkbench[lab]" in refused("lab")
