"""The index: it names every notebook and every widget, and no link between notebooks leads nowhere."""

import json
import re
from pathlib import Path

import pytest

from specworkbench import widgets

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NO_WIDGETS = {"acceptance_map_figure", "Selection", "tokens_of"}


def words(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def links(text: str) -> list[str]:
    """The files that a text links to."""
    return re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text)


def gallery(text: str) -> set[str]:
    """The names in the first column of the table of widgets."""
    rows = re.findall(r"^\| (`.*`) \|", text, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


INDEX = words(FOLDER / "index.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_link_of_a_notebook_leads_somewhere(path):
    assert [link for link in links(words(path)) if not (FOLDER / link).exists()] == []


def test_the_index_links_to_every_other_notebook_in_order():
    assert links(INDEX) == [path.name for path in NOTEBOOKS if path.name != "index.ipynb"]


def test_the_gallery_names_every_widget_and_nothing_else():
    assert gallery(INDEX) == set(widgets.__all__) - NO_WIDGETS
