"""The lab of proposers: asks what its controls say, compares, goes on where one fails, stops, saves, tells errors."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.experiments.traces import read_report
from specworkbench.trace import load_trace
from specworkbench.widgets import ProposerLab
from tests.widgets.traces import spoken

PLAIN = spoken(proposer="none", per_bucket=2)
SLOW, FAST = (spoken(per_bucket=2, ms_draft=ms) for ms in (4.0, 0.1))


def decoder(traces=None, failing=None, seen=None, rounds=3):
    """Stands in for the engine: so many rounds of two tokens each, then the traces; of what fails there is none."""
    traces = {"none": PLAIN, "ngram": SLOW, "suffix": FAST} if traces is None else traces
    failing = failing or {}

    def decode(asked, watch):
        if seen is not None:
            seen.append(asked)
        for label, error in failing.items():
            watch.failed(label, error)
        for label in traces:
            for index in range(rounds):
                if watch.stopped():
                    return {}
                watch.round(label, SimpleNamespace(index=index, emitted=[1, 2]))
            watch.decoded(label, len(asked.prompts))
        return traces

    return decode


def made(proposers=("ngram", "suffix"), **options):
    return ProposerLab(proposers=proposers, prompts=["code-01", "prose-01"], **{"decode": decoder(), **options})


def ran(lab):
    lab.run_button.click()
    lab.wait(60)
    return lab


def test_run_asks_for_what_the_controls_say():
    seen = []
    lab = made(decode=decoder(seen=seen))
    controls = lab.controls
    controls.rule.value, controls.rule_settings.value = "lenient", "leniency=0.5"
    controls.controller.value, controls.controller_settings.value = "optimal", "keep=0.8"
    controls.gamma.value, controls.temperature.value, controls.top_k.value = 7, 0.7, 40
    controls.top_p.value, controls.min_p.value, controls.seed.value = 0.9, 0.05, 3
    controls.max_new_tokens.value, controls.record.value, controls.engine.value = 16, True, "compiled"
    controls.more.value = "layer_skip,layers=2\n\n ngram \n"
    ran(lab)
    (asked,) = seen
    assert asked.proposers == ("ngram", "suffix", "layer_skip,layers=2") and asked.target == "embedded"
    assert [prompt.id for prompt in asked.prompts] == ["code-01", "prose-01"]
    assert (asked.rule, asked.controller) == ("lenient,leniency=0.5", "optimal,keep=0.8")
    assert (asked.gamma, asked.temperature, asked.top_k, asked.top_p, asked.min_p) == (7, 0.7, 40, 0.9, 0.05)
    assert (asked.seed, asked.max_new_tokens, asked.capture, asked.engine) == (3, 16, "top-k", "compiled")
    controls.rule.value, controls.rule_settings.value = "", ""
    assert lab.asked.rule is None


def test_a_row_a_proposer_with_the_figures_of_analysis_and_the_fastest_is_looked_at():
    lab = ran(made())
    assert [row["proposer"] for row in lab.rows] == ["none", "ngram", "suffix"] and lab.chosen == "suffix"
    fast = lab.rows[2]
    assert fast["speedup_measured"] == analysis.measured_speedup(PLAIN, FAST).value > lab.rows[1]["speedup_measured"]
    assert (fast["tokens"], fast["rounds"]) == (int(FAST.rounds["emitted"].sum()), len(FAST.rounds))
    assert fast["block_efficiency_low"] == analysis.block_efficiency(FAST).low
    assert f"▲ {fast['speedup_measured']:.2f}" in lab.table.value and lab.table.value.count("<tbody") == 3
    assert len(lab.figure.data[0].x) == 3 and lab.figure.data[0].y[0] == "plain decoding"
    assert analysis.gap(PLAIN, FAST).sentence[:40] in lab.words.value
    assert lab.results.layout.display is None and "done" in lab.status.value


def test_one_selection_drives_the_tokens_of_the_row_that_is_looked_at():
    lab = ran(made())
    assert lab.selection.trace is FAST is lab.explorer.trace
    lab.chooser.value = "ngram"
    assert lab.chosen == "ngram" and lab.selection.trace is SLOW is lab.explorer.trace is lab.trace
    lab.selection.selected = 4
    assert lab.explorer.selected == 4
    lab.explorer.selected = 2
    assert lab.selection.selected == 2
    lab.explorer.sequence = 1
    assert lab.selection.sequence == 1 and lab.selection.trace is SLOW
    lab.selection.show(SLOW, 2)
    assert lab.explorer.sequence == 2
    lab.chosen = "none"
    assert lab.chooser.value == "none" and lab.explorer.trace is PLAIN and "measured against" in lab.words.value


def test_before_a_run_the_table_says_how_to_get_one_and_nothing_else_is_shown():
    lab = made()
    assert "press Run" in lab.table.value and lab.results.layout.display == "none" and lab.trace is None
    assert lab.stop_button.disabled and not lab.lanes.children


def test_a_proposer_that_fails_says_so_in_its_row_and_the_others_run_on():
    errors = {"nope": InputError("there is no proposer <nope>"), "eagle": RuntimeError("out of memory")}
    lab = ran(made(["nope", "eagle", "ngram"], decode=decoder({"none": PLAIN, "ngram": SLOW}, errors)))
    assert [row["proposer"] for row in lab.rows] == ["none", "ngram"] and lab.chosen == "ngram"
    assert lab.failures == {"nope": "There is no proposer <nope>.", "eagle": "RuntimeError: Out of memory."}
    assert "There is no proposer &lt;nope&gt;." in lab.table.value and 'role="alert"' in lab.table.value
    assert lab.lanes.bars["nope"].bar_style == "danger" and "&lt;nope&gt;" in lab.lanes.words["nope"].value
    assert lab.message.value == "" and not lab.run_button.disabled


def test_the_bars_tell_each_proposers_tokens():
    lab = made()
    lab.controls.max_new_tokens.value = 8
    ran(lab)
    assert list(lab.lanes.bars) == ["none", "ngram", "suffix"]
    assert all(bar.value == bar.max == 16 for bar in lab.lanes.bars.values())
    assert all("6 tokens" in words.value for words in lab.lanes.words.values())
    assert all(bar.description and bar.tooltip for bar in lab.lanes.bars.values())


def test_stop_is_heard_between_rounds_and_run_works_again():
    lab = made()
    decode = lab._decode

    def stopped_at_once(asked, watch):
        lab.stop_button.click()
        return decode(asked, watch)

    lab._decode = stopped_at_once
    ran(lab)
    assert lab.traces == {} and "stopped" in lab.status.value and not lab.run_button.disabled
    lab._decode = decode
    assert list(ran(lab).traces) == ["none", "ngram", "suffix"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lab: lab.controls.choose([]), "No proposer is chosen"),
        (lambda lab: setattr(lab.controls.prompt_picker.chosen, "value", ()), "No prompt is chosen"),
        (lambda lab: setattr(lab, "_decode", fail), "&lt;b&gt;cannot load"),
    ],
)
def test_what_nobody_can_decode_with_is_a_sentence_in_the_panel(change, words):
    lab = made()
    change(lab)
    ran(lab)
    assert words in lab.message.value and 'role="alert"' in lab.message.value and not lab.run_button.disabled


def fail(asked, watch):
    raise InputError("<b>cannot load the model")


def test_a_typed_prompt_is_taken_as_it_is_and_an_empty_one_is_refused():
    lab = made(text="  x = 1\n")
    lab.controls.prompt_picker.source.value = "typed text"
    assert [prompt.text for prompt in lab.asked.prompts] == ["  x = 1\n"]
    lab.controls.prompt_picker.text.value = " \n"
    assert "is empty; give at least one word" in ran(lab).message.value


def test_a_lossy_rule_is_said_to_be_lossy_where_it_is_chosen_and_in_the_row():
    from tests.trace.rules import trace_of

    lab = made()
    words = dict((name, text) for text, name in lab.controls.rule.options)
    assert "lossy" in words["typical"] and "lossless" in words["block"]
    assert "lossy" not in ran(lab).table.value
    lab._decode = decoder({"none": PLAIN, "ngram": trace_of("typical")})
    table = ran(lab).table.value
    assert "ngram (lossy)" in table and "The rule typical is lossy" in table and "plain decoding (lossy)" not in table


def test_traces_are_saved_one_or_all_and_nothing_is_overwritten(tmp_path):
    lab = made()
    lab.file_name.value, lab.folder_name.value = str(tmp_path / "mine.trace"), str(tmp_path / "lab")
    for save in (lab.save, lab.save_all):
        save()
        assert "There is no trace yet" in lab.message.value
    ran(lab)
    lab.save()
    assert load_trace(tmp_path / "mine.trace").positions.equals(FAST.positions) and "saved as" in lab.status.value
    lab.save_all()
    assert len(list((tmp_path / "lab").rglob("*.trace"))) == 3 and lab.message.value == ""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.trace")}
    lab.save()
    assert "choose another name" in lab.message.value
    lab.save_all()
    assert "choose another folder" in lab.message.value
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.trace")} == before
    compared = read_report(tmp_path / "lab")
    assert len(compared) == 2 and all(analysis.gap(pair.plain, pair.speculative) for pair in compared)


def test_every_control_has_a_label():
    controls, todo = [], [made()]
    while todo:
        widget = todo.pop()
        todo += getattr(widget, "children", ())
        controls += [widget] if hasattr(widget, "description") and type(widget).__name__ != "HTML" else []
    assert len(controls) > 25 and all(control.description for control in controls)


def test_the_export_needs_no_kernel_and_shows_the_tokens_as_text():
    html = ran(made()).to_html()
    assert "<script" not in html and "&lt;script&gt;" in html and "suffix" in html


def test_no_torch_is_loaded_before_something_is_decoded():
    code = (
        "import sys; from specworkbench.widgets import ProposerLab; lab = ProposerLab(proposers=['ngram']); lab.asked;"
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_engine_itself_compares_and_one_that_does_not_suit_is_told():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    from specworkbench.paths import embedded_dir

    if not (embedded_dir() / "draft-s" / "config.json").exists():
        pytest.skip("the embedded models are not there")
    wrong = ["nope", "ngram,foo=1", "draft_model:./none-such", "none"]
    lab = ProposerLab(proposers=["draft_model:embedded/draft-s", "ngram", *wrong], prompts=["code-01", "structured-01"])
    lab.controls.max_new_tokens.value = 8
    ran(lab)
    assert lab.message.value == "" and list(lab.traces) == ["none", "draft_model:embedded/draft-s", "ngram"]
    assert list(lab.failures) == wrong[:3], "plain decoding is part of it anyway"
    assert "has no setting 'foo'" in lab.failures["ngram,foo=1"] and "no weights" in lab.failures[wrong[2]]
    assert all(len(trace.sequences) == 2 for trace in lab.traces.values())
    assert all(row["speedup_measured"] and row["tokens"] for row in lab.rows)
    lab.controls.choose(["draft_tree:embedded/draft-s", "ngram"])
    lab.controls.rule.value = "block"
    ran(lab)
    assert "choose the rule tree" in lab.failures["draft_tree:embedded/draft-s"]
    assert list(lab.traces) == ["none", "ngram"]
