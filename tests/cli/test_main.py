"""The entry point: light to import, a version, a help, one sentence for a wrong word."""

import subprocess
import sys
from pathlib import Path

import pytest

import specworkbench

REPOSITORY = Path(__file__).parents[2]


def test_the_command_line_loads_nothing_heavy():
    code = "import sys, specworkbench.cli as cli; cli.run(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "transformers", "numpy", "pandas", "pyarrow", "plotly", "scipy"}


def test_the_version(command):
    assert command("--version") == (0, f"specworkbench {specworkbench.__version__}\n", "")


def test_no_command_shows_the_help(command):
    code, out, _ = command()
    names = ("decode", "models", "proposers", "rules", "report", "costs", "check", "lab")
    assert code == 0 and all(name in out for name in names)


@pytest.mark.parametrize(
    "name, said",
    [
        ("decode", "[default: greedy at temperature 0, token otherwise]"),
        ("report", "NAME[:WEIGHTS][,SETTING=VALUE...]"),
        ("report", "[default: all that work on this target without being told more]"),
    ],
)
def test_the_help_shows_what_stands_in_brackets(command, name, said):
    code, out, _ = command(name, "--help")
    assert code == 0 and said in " ".join(out.replace("│", " ").split())


def test_an_unknown_command_is_refused(refused):
    assert "nonsense" in refused("nonsense") and "--help" in refused("nonsense")


def test_a_missing_argument_is_refused(refused):
    assert "specworkbench decode --help" in refused("decode")


def test_without_torch_a_sentence_says_what_to_install(refused, monkeypatch):
    monkeypatch.delitem(sys.modules, "specworkbench.engine", raising=False)
    monkeypatch.delattr(specworkbench, "engine", raising=False)

    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("specworkbench.engine"):
                raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    assert "specworkbench[engine]" in refused("decode", "abc")
