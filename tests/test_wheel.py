"""The wheel built from the repository carries its data and works from an empty folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed (the extra 'dev'), so no wheel can be built")
pytest.importorskip("build", reason="build is not installed (the extra 'dev'), so no wheel can be built")

REPOSITORY = Path(__file__).parents[1]
EMBEDDED = ("target", "draft-m", "draft-s")


def succeed(command: list[str], **kwargs) -> str:
    """Standard output of a command that must end with exit code 0."""
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder that holds the unpacked wheel and nothing else."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    succeed([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(REPOSITORY)])
    (wheel,) = wheels.glob("specworkbench-*.whl")
    succeed([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)])
    return site


@pytest.fixture
def python(installed, tmp_path):
    """Run a fresh Python in an empty folder, the installed wheel before anything else on its path."""
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return lambda *arguments: succeed([sys.executable, *arguments], cwd=tmp_path, env=env)


def test_the_data_lies_inside_the_package(python, installed):
    found = python("-c", "from specworkbench.paths import data_dir; print(data_dir())").strip()
    assert Path(found).resolve().is_relative_to((installed / "specworkbench").resolve())


def test_assets_and_type_marker_are_carried(installed):
    package = installed / "specworkbench"
    assert (package / "py.typed").exists()
    for suffix in ("*.js", "*.css"):
        assert list((package / "widgets").glob(suffix)), f"no {suffix} in specworkbench/widgets"
    notebooks = {path.name for path in (REPOSITORY / "notebooks").glob("*.ipynb")}
    assert notebooks == {path.name for path in (package / "_data/notebooks").glob("*.ipynb")} and len(notebooks) >= 2
    assert any((package / "_data/traces").iterdir())


def test_the_results_on_the_claims_are_carried_and_judged_without_the_engine(python):
    code = (
        "import sys; from specworkbench.experiments.claims import judge_folder; "
        "from specworkbench.paths import claims_dir; found = judge_folder(claims_dir() / 'embedded'); "
        "print(len(found), sum(finding.verdict == 'not measured yet' for finding in found), 'torch' in sys.modules)"
    )
    assert python("-c", code).split() == ["12", "0", "False"]


def test_the_embedded_models_are_carried_whole(python, installed):
    found = python("-c", "from specworkbench.paths import embedded_dir; print(embedded_dir())").strip()
    assert Path(found).resolve().is_relative_to((installed / "specworkbench").resolve())
    for model in EMBEDDED:
        for file in ("config.json", "tokenizer.json", "model.safetensors"):
            assert Path(found, model, file).stat().st_size > 0


def test_nothing_hidden_or_compiled_is_carried(installed):
    data = installed / "specworkbench/_data"
    carried = [path.relative_to(data) for path in data.rglob("*")]
    assert carried
    assert not [path for path in carried if any(part.startswith((".", "__pycache__")) for part in path.parts)]


def test_the_prompts_load(python):
    code = "from specworkbench.workloads import load_prompts; print(len(load_prompts('embedded')))"
    assert int(python("-c", code)) >= 36


def test_the_command_lists_the_embedded_models(python):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    listed = python("-m", "specworkbench", "models")
    for name in ("embedded", "embedded/draft-m", "embedded/draft-s"):
        assert name in listed


def test_it_decodes(python):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    printed = json.loads(python("-m", "specworkbench", "decode", "import ", "--max-new-tokens", "4", "--json"))
    assert 1 <= len(printed["token_ids"]) <= 4
