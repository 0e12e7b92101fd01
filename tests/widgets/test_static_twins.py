"""What is left of every widget in a saved notebook: GitHub's sanitiser drops styles, scripts and drawings, not what is
said."""

import re
from base64 import b64decode
from xml.etree import ElementTree

import ipywidgets
import pytest

from specworkbench import widgets
from specworkbench.experiments.claims import CLAIMS
from specworkbench.paths import claims_dir
from specworkbench.plots import palette
from specworkbench.widgets import (
    AcceptanceMap,
    ClaimsBoard,
    EquivalenceRace,
    Explorer,
    Inspector,
    LiveDecode,
    OverlapPlayground,
    ProposerLab,
    RoundPlayer,
    SpeedupExplorer,
    StudyBrowser,
    TokenStrip,
    live,
    tokens_of,
)
from specworkbench.widgets.chart import numbers_html
from specworkbench.widgets.lab_words import EMPTY
from specworkbench.widgets.page_style import PRINT
from specworkbench.widgets.picture import pictures
from specworkbench.widgets.sentences import sentence
from specworkbench.widgets.tables import distribution_table, is_cut
from specworkbench.widgets.text import number, visible
from tests.widgets.drawn import unpacked
from tests.widgets.github import parsed, read, sanitised, saved
from tests.widgets.traces import first, spoken

TRACE = spoken()
SEQUENCE, INDEX, ROW = first(TRACE, "rejected")
LONGEST_TEXT = 130


def race():
    shown = EquivalenceRace()
    shown.show("mine", [(0, 0.0), (100, 2.0), (200, 8.0)])
    return shown


def explorer():
    shown = Explorer(TRACE, SEQUENCE)
    shown.selected = INDEX
    return shown


CASES = {
    AcceptanceMap: (lambda: AcceptanceMap(TRACE, bins=3), "how many positions were examined"),
    ClaimsBoard: (lambda: ClaimsBoard(claims_dir() / "embedded"), CLAIMS[-1].statement),
    EquivalenceRace: (race, "mine: rejected after 200 tokens"),
    Explorer: (explorer, sentence(TRACE, ROW)),
    Inspector: (lambda: Inspector(TRACE, SEQUENCE, selected=INDEX), sentence(TRACE, ROW)),
    LiveDecode: (LiveDecode, "gamma 4, temperature 1, seed 0, at most 64 new tokens."),
    OverlapPlayground: (OverlapPlayground, "What comes out is p."),
    ProposerLab: (lambda: ProposerLab(proposers=["ngram"], prompts=["code-01"]), EMPTY),
    RoundPlayer: (lambda: RoundPlayer(TRACE, SEQUENCE), "verify: one forward of the target"),
    SpeedupExplorer: (SpeedupExplorer, "speedup 1.73. The best gamma here is 3"),
    StudyBrowser: (lambda: StudyBrowser(claims_dir() / "embedded" / "temperature"), "8 cells shown"),
    TokenStrip: (lambda: TokenStrip.of(TRACE, SEQUENCE, selected=INDEX), "✗ rejected"),
}
"""By class: one to show, and words that a page must keep of it."""


@pytest.fixture(params=CASES, ids=lambda kind: kind.__name__, scope="module")
def shown(request):
    """What a notebook keeps of a widget, and the words that must be read in it."""
    make, words = CASES[request.param]
    return saved(make()), words


def test_every_widget_is_a_case():
    public = [getattr(widgets, name) for name in widgets.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, ipywidgets.Widget)}
    assert kinds == set(CASES)


def test_what_is_saved_is_the_widget_its_twin_and_a_short_text(shown):
    data, _ = shown
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} == set(data)
    assert len(data["text/plain"]) <= LONGEST_TEXT


def test_the_twin_says_the_same_without_style_script_and_drawing(shown):
    data, words = shown
    assert words in read(sanitised(data["text/html"]))


def test_no_word_of_a_drawing_is_spilled_where_only_its_tags_are_dropped(shown):
    data, _ = shown
    assert "<text" not in data["text/html"] and "<title" not in data["text/html"]


def test_the_sanitiser_keeps_tables_and_text_alone():
    page = '<style>p {}</style><script>x</script><svg><text>t</text></svg><p class="a" style="b">&lt;i&gt; '
    assert sanitised(f"{page}<u>kept</u></p>") == "<p>&lt;i&gt; kept</p>"
    assert sanitised('<img alt="a" src="data:image/png;base64,x"><td align="right">1</td>').startswith('<img alt="a"')
    assert "data:" not in sanitised('<img alt="a" src="data:image/png;base64,x">')


# ---------------------------------------------------------------- strip


def glyph_of(token):
    cut = palette.CUT.glyph if is_cut(token["outcome"], token["emitted"]) else ""
    return palette.OUTCOMES[token["outcome"]].glyph + cut


@pytest.mark.parametrize("sequence", range(len(TRACE.sequences)))
def test_every_token_has_its_glyph_and_text_in_its_round_and_refused_ones_are_struck_through(sequence):
    page, found = parsed(sanitised(TokenStrip.of(TRACE, sequence).to_html())), []
    for code in page.find_all("code"):
        line = read(str(code.find_parent("div")))
        glyph, text = code.find_parent("span").get_text().split(" ", 1)
        found.append((int(re.match(r"round (\d+): ", line)[1]), glyph, text, code.find_parent("s") is not None))
    expected = [
        (token["round"], glyph_of(token), token["text"], token["outcome"] == "rejected")
        for token in tokens_of(TRACE, sequence)
    ]
    assert found == expected


def test_whitespace_of_tokens_is_seen_and_the_selected_one_stands_out():
    html = sanitised(TokenStrip.of(TRACE, SEQUENCE, selected=INDEX).to_html())
    (selected,) = re.findall(r"▸ </span><strong>(.*?)</strong>", html)
    assert read(selected) == f"✗ {visible(TRACE.token_text(ROW['token']))}"
    assert "·x⏎" in html or "→b" in html


# ---------------------------------------------------------------- inspector


def test_the_chart_is_a_table_of_the_same_numbers():
    table = distribution_table(TRACE, ROW)
    html = sanitised(Inspector(TRACE, SEQUENCE, selected=INDEX).to_html())
    rows = [[read(str(cell)) for cell in row.find_all(["th", "td"])] for row in parsed(html).find_all("tr")]
    assert rows[0] == ["", "p", "q", "overlap", "residual"]
    for cells, (_, row) in zip(rows[1:], table.iterrows(), strict=True):
        glyph = f"{palette.OUTCOMES[row['mark']].glyph} " if row["mark"] else ""
        assert cells == [glyph + row["label"], *(number(row[name]) for name in ("p", "q", "overlap", "residual"))]


def test_where_nothing_was_proposed_the_table_has_p_alone():
    plain = spoken(proposer="none")
    _, _, row = first(plain, "plain")
    assert "residual" not in numbers_html(distribution_table(plain, row))


def test_the_panel_on_the_page_draws_in_the_page_s_ink_and_has_no_second_table():
    inspector = Inspector(TRACE, SEQUENCE, selected=INDEX)
    assert "<table" not in inspector.card.value and "currentColor" in inspector.card.value


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("kind", [Inspector, OverlapPlayground, SpeedupExplorer])
def test_a_picture_is_sound_has_white_ground_and_says_what_it_shows(kind):
    html = CASES[kind][0]().to_html()
    found = re.findall(r'<img alt="([^"]+)"[^>]*base64,([^"]+)"', html)
    assert len(found) == (2 if kind is Inspector else 3)
    for label, content in found:
        drawing = ElementTree.fromstring(b64decode(content))
        assert "background: #ffffff" in drawing[0].text and label
        assert not drawing.findall(".//{*}script")


def test_text_of_a_trace_stays_text_in_a_picture():
    html = Inspector(TRACE, SEQUENCE, selected=INDEX).to_html()
    assert "&lt;script&gt;" in unpacked(html) and "<script" not in unpacked(html)


def test_what_has_no_name_stays_as_it_is():
    key = '<svg viewBox="0 0 9 9"><path d="M0 0"/></svg>'
    assert pictures(f"<p>{key}</p>") == f"<p>{key}</p>"


# ---------------------------------------------------------------- numbers in place of figures


def test_the_speedup_s_surface_is_told_with_the_place_and_the_best_gamma():
    explorer = SpeedupExplorer([{"alpha": 0.6, "gamma": 4, "label": "a <b>", "speedup_measured": 1.32}], alpha=0.65)
    html = sanitised(explorer.to_html())
    (here,) = re.findall(r"<strong>(\d\.\d\d)</strong>", html)
    assert here == f"{explorer.speedup:.2f}" and html.count("★ ") == 1 and "alpha 0.65" in html
    assert "a &lt;b&gt;</th><td" in html and ">1.32</td>" in html


def test_what_is_still_to_be_guessed_is_not_in_the_twin():
    points = [{"alpha": 0.6, "gamma": 4, "label": "hidden", "speedup_measured": 1.32}]
    assert "1.32" not in SpeedupExplorer(points, predict=True).to_html()


def test_the_chosen_claim_has_its_parts():
    board = ClaimsBoard(claims_dir() / "embedded")
    board.show("retrieval")
    text = read(sanitised(board.to_html()))
    parts = board.findings["retrieval"].parts
    assert parts and all(part.name in text and f"{part.low:.2f} to {part.high:.2f}" in text for part in parts)


def test_a_trace_that_was_decoded_or_opened_is_in_the_twin(tmp_path):
    panel = LiveDecode()
    panel.trace = TRACE
    panel.explorer.show(TRACE)
    assert "round 0:" in read(sanitised(panel.to_html())) and live.EMPTY not in panel.to_html()


# ---------------------------------------------------------------- paper


def styles(widget):
    """The style sheets that a widget brings to the page, its own and its children's."""
    own = [str(getattr(widget, name, "")) for name in ("_css", "value")]
    return [*own, *(style for child in getattr(widget, "children", ()) for style in styles(child))]


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_on_paper_every_widget_has_dark_ink_on_white(kind):
    assert any(PRINT in style for style in styles(CASES[kind][0]()))
