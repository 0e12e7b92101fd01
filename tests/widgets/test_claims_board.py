"""The board of claims: a verdict for each, the figure of the chosen one, text taken literally."""

from dataclasses import replace

import pytest

from specworkbench.experiments.claims import CLAIMS
from specworkbench.plots import palette
from specworkbench.widgets.claims_board import ClaimsBoard, finding_html, table_html


@pytest.fixture
def board(tmp_path):
    """Of a folder in which nothing has been measured."""
    return ClaimsBoard(tmp_path)


def test_a_folder_without_studies_shows_every_claim_as_not_measured(board):
    assert board.table.value.count("not measured yet") == len(CLAIMS)
    assert len(board.figure.data) == 0 and "has not been run" in board.words.value


def test_choosing_a_claim_shows_its_words(board):
    board.show("retrieval")
    (retrieval,) = (claim for claim in CLAIMS if claim.name == "retrieval")
    assert retrieval.experiment in board.words.value
    assert board.figure.layout.title.text == retrieval.statement
    assert board.figure.get_state()["_widget_layout"]["title"]["text"] == retrieval.statement  # of a page opened later


def test_every_verdict_is_shown_with_its_glyph_and_its_numbers(board):
    finding = replace(
        board.findings["retrieval"], verdict="holds here", effect=1.234, low=1.1, high=1.3, n=12, level=0.99
    )
    (claim,) = (claim for claim in CLAIMS if claim.name == "retrieval")
    html = table_html([claim], {"retrieval": finding})
    assert palette.VERDICTS["holds here"].glyph in html and "1.23" in html and "1.10 to 1.30" in html


def test_text_is_escaped(board):
    finding = replace(board.findings["retrieval"], sentence="<script>")
    assert "<script>" not in finding_html(CLAIMS[0], finding)
