"""Strip and inspector move together; what goes wrong is a sentence in the widget."""

from html import escape

import ipywidgets
import pytest
from IPython.core.formatters import DisplayFormatter

from specworkbench.widgets import Explorer, Inspector, explore
from specworkbench.widgets import inspector as inspector_module
from specworkbench.widgets.chart import distribution_svg
from specworkbench.widgets.decision import decision_svg, describe
from specworkbench.widgets.inspector import EMPTY, NO_DISTRIBUTIONS
from specworkbench.widgets.sentences import Decision
from specworkbench.widgets.tables import distribution_table, strip_rows
from specworkbench.widgets.text import number
from tests.widgets.traces import first, spoken

TRACE = spoken()


def shown(explorer):
    return explorer.inspector.card.value


def test_explorer_opens_on_a_rejected_token():
    explorer = explore(TRACE)
    assert explorer.strip.tokens[explorer.selected]["outcome"] == "rejected"
    assert "so it was rejected" in shown(explorer)


@pytest.mark.parametrize("mover", [lambda e: e, lambda e: e.strip, lambda e: e.inspector])
def test_one_selection_drives_every_part(mover):
    explorer = explore(TRACE)
    _, index, _ = first(TRACE, "bonus")
    mover(explorer).selected = index
    assert explorer.selected == explorer.strip.selected == explorer.inspector.selected == index
    assert "one token more" in shown(explorer) and "No decision here" in shown(explorer)


def test_the_inspector_tells_what_its_buttons_lead_to_and_nothing_that_others_select():
    explorer = explore(TRACE)
    inspector, told = explorer.inspector, []
    inspector.voice.observe(lambda change: told.append(change["new"]), "value")
    explorer.strip.selected = 0
    assert told == []
    inspector.next_button.click()
    assert told == [escape(explorer.strip.sentence)] and explorer.strip.selected == 1
    explorer.strip.selected = 3
    assert told[1:] == [""]


def test_the_strip_knows_of_a_selection_before_its_sentence_comes():
    explorer, heard = explore(TRACE), []
    explorer.strip.observe(lambda change: heard.append(change["name"]), ["selected", "sentence"])
    explorer.inspector.step(1)
    assert heard == ["selected", "sentence"]


def test_another_sequence_is_chosen_and_replaces_everything():
    explorer = explore(TRACE)
    assert [label for label, _ in explorer.chooser.options][:2] == ["code-0 · code", "code-1 · code"]
    explorer.chooser.value = 2
    assert explorer.sequence == explorer.inspector.sequence == 2
    assert len(explorer.strip.tokens) == len(strip_rows(TRACE, 2))
    assert explorer.strip.title.startswith("code-2 · code: 40 tokens")
    explorer.sequence = 1
    assert explorer.chooser.value == 1 and explorer.strip.title.startswith("code-1")


def test_a_single_sequence_offers_no_choice():
    assert explore(spoken(buckets=("code",), per_bucket=1)).chooser.layout.display == "none"
    assert explore(TRACE).chooser.layout.display is None


def test_a_trace_shown_later_replaces_the_first():
    explorer = Explorer()
    assert not explorer.strip.tokens and EMPTY in shown(explorer)
    explorer.show(TRACE, 1)
    assert explorer.sequence == 1 and explorer.strip.tokens
    explorer.trace = None
    assert not explorer.strip.tokens and explorer.selected == -1


def test_text_of_the_trace_is_escaped_everywhere():
    trace = spoken()
    trace.sequences[0]["prompt"] = "<script>prompt</script>"
    explorer = explore(trace)
    pages = [explorer.to_html()]
    for index in range(len(explorer.strip.tokens)):
        explorer.selected = index
        pages.append(shown(explorer))
    assert not any("<script>" in page for page in pages)
    assert "&lt;script&gt;alert(1)" in pages[1]


def test_the_chart_shows_the_selected_position():
    explorer = explore(TRACE)
    _, index, row = first(TRACE, "rejected")
    explorer.selected = index
    assert distribution_svg(distribution_table(TRACE, row)).split("</defs>")[1].split("<rect")[0] in shown(explorer)
    assert f"overlap {number(row['overlap'])}, residual {number(row['residual_mass'])}" in shown(explorer)
    explorer.selected = first(TRACE, "bonus")[1]
    assert "Target p, highest first" in shown(explorer) and "q (draft)" not in shown(explorer)


def test_without_distributions_the_scalars_remain_and_a_sentence_says_how_to_record_them():
    explorer = explore(spoken(capture="none"))
    assert "so it was rejected" in shown(explorer) and "residual mass" in shown(explorer)
    assert NO_DISTRIBUTIONS.split(":")[0] in shown(explorer)
    assert "swb-chart" not in shown(explorer).split("</style>")[1]


def test_a_file_that_is_no_trace_is_told_in_the_widget(tmp_path):
    (tmp_path / "no.trace").write_text("nothing")
    for name in ("no.trace", "missing.trace"):
        explorer = explore(tmp_path / name)
        assert 'role="alert"' in explorer.message.value and name in explorer.message.value
        assert isinstance(explorer, ipywidgets.VBox)


def test_an_unknown_sequence_is_told_in_the_widget_and_can_be_left():
    explorer = explore(TRACE, 77)
    assert "There is no sequence 77" in explorer.message.value and not explorer.strip.tokens
    explorer.chooser.value = 0
    assert explorer.message.value == "" and explorer.strip.tokens


def test_inspector_alone_says_what_to_do():
    assert EMPTY in Inspector().to_html() and Inspector(TRACE).row is None


def test_corrected_token_shows_the_decision_that_led_to_it():
    sequence, index, _ = first(TRACE, "corrected")
    inspector = Inspector(TRACE, sequence)
    inspector.selected = index
    assert "The decision that led here" in inspector.card.value and "<svg" in inspector.card.value


@pytest.mark.parametrize(("accept_prob", "u"), [(0.56, 0.71), (1.0, 0.2), (0.0, 0.9), (0.5, 0.5), (0.999, 0.001)])
def test_decision_bar_keeps_its_labels_inside_and_speaks(accept_prob, u):
    decision = Decision(accept_prob, u, u < accept_prob, greedy=False)
    svg = decision_svg(decision)
    assert 'role="img"' in svg and describe(decision) in svg
    assert ("accepted" if u < accept_prob else "rejected") in describe(decision)
    places = [float(part.split('"')[0]) for part in svg.split('<text x="')[1:]]
    assert all(0 <= place <= 600 for place in places)


def test_greedy_decision_shows_no_uniform():
    svg = decision_svg(Decision(1.0, 0.3, True, greedy=True))
    assert "draws no u" in svg and "<circle" not in svg and "u 0.30" not in svg


def test_panels_share_a_selection_and_move_together():
    first_one = Explorer(TRACE, 1)
    second = Explorer(selection=first_one.selection)
    assert second.trace is TRACE and second.sequence == 1 and second.selected == first_one.selected
    second.sequence = 2
    assert first_one.sequence == first_one.selection.sequence == 2 and first_one.chooser.value == 2
    assert first_one.strip.tokens == second.strip.tokens and "code-2" in first_one.strip.title
    first_one.selection.at(1, 1)
    assert second.selected == second.inspector.selected == first_one.selection.selected
    assert shown(first_one).split("swb-hatch")[0] == shown(second).split("swb-hatch")[0]


def test_another_trace_of_the_selection_is_followed_whole():
    explorer, other = explore(TRACE), spoken(seed=5)
    other.sequences[3]["prompt"] = "another prompt"
    explorer.selection.show(other, 3, selected=0)
    assert (explorer.trace, explorer.sequence, explorer.selected) == (other, 3, 0)
    assert "another prompt" in explorer.prompt.value and "prose-0" in explorer.strip.title
    assert explorer.inspector.trace is other


def test_what_cannot_be_shown_empties_all_panels_and_the_next_fills_them():
    explorer = explore(TRACE)
    explorer.sequence = 77
    assert "There is no sequence 77" in explorer.message.value
    assert explorer.trace is TRACE and not explorer.strip.tokens and EMPTY in shown(explorer)
    explorer.selection.show(TRACE, 1)
    assert explorer.message.value == "" and explorer.sequence == 1 and explorer.strip.tokens


def test_a_selection_beyond_the_tokens_is_the_last_one():
    explorer = explore(TRACE)
    last = len(explorer.strip.tokens) - 1
    explorer.selected = 10**6
    assert explorer.selected == explorer.selection.selected == explorer.strip.selected == last
    explorer.inspector.selected = 10**6
    assert explorer.inspector.selected == last


def test_the_inspectors_buttons_go_through_the_tokens_and_end_at_the_ends():
    inspector = Inspector(TRACE)
    back, on = inspector.previous_button, inspector.next_button
    assert back.disabled and not on.disabled and inspector.place == ""
    seen = []
    while not on.disabled:
        on.click()
        seen.append(inspector.selected)
    assert seen == list(range(len(inspector.selection.rows)))
    back.click()
    assert inspector.selected == seen[-2] and not on.disabled
    assert Inspector().steps.layout.display == "none"


def test_the_inspector_says_where_the_token_stands():
    sequence, index, row = first(TRACE, "corrected")
    inspector = Inspector(TRACE, sequence, selected=index)
    positions = TRACE.round_positions(sequence, row["round"])["position"]
    assert inspector.place == (
        f"position {row['position']} of {positions.max()} in round {row['round']}, "
        f"token {index + 1} of {len(strip_rows(TRACE, sequence))}"
    )
    assert inspector.place in inspector.place_line.value


def test_enter_in_the_strip_leads_to_the_inspector(monkeypatch):
    explorer, focused = explore(TRACE), []
    monkeypatch.setattr(ipywidgets.Button, "focus", lambda button: focused.append(button.description))
    explorer.strip.opened += 1
    explorer.selected = len(explorer.strip.tokens) - 1
    explorer.strip.opened += 1
    assert focused == ["next", "previous"]


def test_the_inspector_draws_once_a_change(monkeypatch):
    explorer, drawn = explore(TRACE), []
    real = inspector_module.card_html
    monkeypatch.setattr(inspector_module, "card_html", lambda *args: drawn.append(args) or real(*args))
    explorer.strip.selected = 3
    assert len(drawn) == 1
    explorer.show(spoken(seed=5), 2)
    assert len(drawn) == 2
    explorer.selection.show(TRACE, 0)
    assert len(drawn) == 3


def test_a_notebook_saved_without_widget_state_still_shows_strip_and_inspector():
    explorer = explore(TRACE)
    strip, card = 'class="swb swb-strip swb-twin"', 'class="swb-sentence"'
    for widget, parts in ((explorer, (strip, card)), (explorer.strip, (strip,)), (explorer.inspector, (card,))):
        data, _ = DisplayFormatter().format(widget)
        assert "application/vnd.jupyter.widget-view+json" in data
        assert all(part in data["text/html"] for part in parts) and "<script" not in data["text/html"]
