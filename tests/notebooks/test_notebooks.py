"""Every notebook runs from top to bottom, offline, and its own assertions hold; none is committed with outputs."""

import json
import os
from pathlib import Path

import nbformat
import pytest

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
LINE = 110
"""Characters that a narrow page has room for; it breaks a longer line within a word."""
CELL_SECONDS = 300
"""A limit that only a hanging cell reaches; how fast a notebook is, is measured on a quiet machine."""


def named(path: Path) -> str:
    return path.name


def test_there_is_a_first_notebook():
    assert NOTEBOOKS and NOTEBOOKS[0].name == "00_quickstart.ipynb"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_notebook_is_stored_without_outputs_and_with_its_kernel(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3" and "widgets" not in notebook["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_notebook_begins_with_words_and_opens_what_is_shipped_before_any_model(path):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    first = next(cell.source for cell in cells if cell.cell_type == "code")
    assert ("load_trace" in first or "claims_dir" in first) and "engine" not in first


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_notebook_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (the extras 'lab' and 'dev')")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (the extra 'lab')")
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=CELL_SECONDS, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not any(output.output_type == "error" for output in shown)
    printed = "".join(output.text for output in shown if output.output_type == "stream")
    assert "\r" not in printed  # Voila shows every state of a bar that is printed
    assert [line for line in printed.splitlines() if len(line) > LINE] == []
    kinds = {kind for output in shown for kind in output.get("data", ())}
    assert {"application/vnd.jupyter.widget-view+json", "text/html"} <= kinds
