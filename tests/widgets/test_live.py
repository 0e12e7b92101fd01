"""The live panel: runs, stops, keeps what was decoded, saves it, and tells errors as sentences."""

from types import SimpleNamespace

import pytest

from specworkbench.errors import InputError
from specworkbench.trace import load_trace
from specworkbench.widgets import LiveDecode
from tests.widgets.traces import spoken

TRACE = spoken(buckets=("live",), per_bucket=1)


def decoder(rounds=5, seen=None, gate=None):
    """Stands in for the engine: so many rounds of two tokens, unless stopped."""

    def decode(settings, on_round):
        if seen is not None:
            seen.append(settings)
        for index in range(rounds):
            if on_round(SimpleNamespace(index=index, emitted=[1, 2])) is False:
                return SimpleNamespace(text="", stop_reason="stopped", trace=TRACE)
            if gate is not None:
                gate()
        return SimpleNamespace(text="", stop_reason="length", trace=TRACE)

    return decode


def ran(live):
    live.run_button.click()
    live.wait()
    return live


def test_run_takes_the_settings_of_the_controls_and_shows_the_trace():
    seen = []
    live = LiveDecode(decode=decoder(seen=seen))
    live.prompt.value, live.gamma.value, live.seed.value = "hello", 7, 3
    live.proposer.value = ("ngram", None)
    ran(live)
    (settings,) = seen
    assert (settings.prompt, settings.proposer, settings.draft) == ("hello", "ngram", None)
    assert (settings.gamma, settings.seed, settings.temperature, settings.max_new_tokens) == (7, 3, 1.0, 64)
    assert live.trace is TRACE and live.explorer.trace is TRACE and live.explorer.strip.tokens
    assert "stopped by length" in live.status.value and live.explorer.layout.display is None
    assert not live.run_button.disabled and live.stop_button.disabled


@pytest.mark.parametrize("there", [(), ("draft-s",), ("draft-m", "draft-s", "eagle", "medusa", "mtp")])
def test_the_proposers_offered_are_those_whose_weights_are_there(tmp_path, monkeypatch, there):
    for name in there:
        (tmp_path / "models" / "embedded" / name).mkdir(parents=True)
        (tmp_path / "models" / "embedded" / name / "config.json").write_text("{}")
    monkeypatch.setattr("specworkbench.paths.data_dir", lambda: tmp_path)
    offered = list(LiveDecode(decode=decoder()).proposer.options.values())
    assert {weights for _, weights in offered if weights} == {f"embedded/{name}" for name in there}
    assert [name for name, weights in offered if weights is None] == ["layer_skip", "ngram", "suffix", "none"]


def test_nothing_is_shown_before_the_first_run():
    live = LiveDecode(decode=decoder())
    assert live.trace is None and live.explorer.layout.display == "none" and live.stop_button.disabled


def test_stop_ends_after_the_running_round_and_keeps_what_was_decoded():
    live = LiveDecode(decode=decoder(rounds=1000, gate=lambda: live.stop_button.click()))
    ran(live)
    assert "stopped on request" in live.status.value and live.progress.value < live.progress.max and live.trace is TRACE
    assert not live.run_button.disabled


def test_beginning_and_end_are_told_and_not_every_round():
    live, told = LiveDecode(decode=decoder(rounds=30)), []
    live.voice.observe(lambda change: told.append(change["new"]), "value")
    ran(live)
    assert len(told) == 2 and told[0].startswith("loading") and "stopped by length" in told[1]


def test_run_after_stop_runs_to_the_end():
    live = LiveDecode(decode=decoder(rounds=3))
    live.stop()
    assert "stopped by length" in ran(live).status.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("the prompt is empty; give at least one word"), "The prompt is empty; give at least one word."),
        (ModuleNotFoundError("specworkbench.engine needs torch: pip install"), "Specworkbench.engine needs torch"),
        (RuntimeError("<b>out of memory</b>"), "RuntimeError: &lt;b&gt;out of memory"),
    ],
)
def test_errors_are_sentences_and_the_panel_stays_usable(error, words):
    def fail(settings, on_round):
        raise error

    live = ran(LiveDecode(decode=fail))
    assert words in live.message.value and 'role="alert"' in live.message.value
    assert not live.run_button.disabled and live.stop_button.disabled
    live._decode = decoder()
    assert ran(live).message.value == "" and live.trace is TRACE


def test_the_trace_is_saved_and_no_file_is_overwritten(tmp_path):
    live = LiveDecode(decode=decoder())
    live.file_name.value = str(tmp_path / "mine.trace")
    live.save()
    assert "There is no trace yet" in live.message.value
    ran(live).save()
    assert len(load_trace(tmp_path / "mine.trace").rounds) == len(TRACE.rounds)
    assert "saved as" in live.status.value
    live.save()
    assert "choose another name" in live.message.value


def test_the_engine_itself_decodes_from_the_panel():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    from specworkbench.paths import embedded_dir

    if not (embedded_dir() / "draft-s" / "config.json").exists():
        pytest.skip("the embedded models are not there")
    live = LiveDecode()
    live.proposer.value = ("draft_model", "embedded/draft-s")
    live.max_new_tokens.value = 8
    ran(live)
    assert live.message.value == "" and live.trace.rounds["emitted"].sum() <= 8
    assert live.trace.manifest["proposer"]["draft"]["name"] == "embedded/draft-s"
    models = live.loaded.models("embedded")
    first, made = live.trace.positions, list(models._kept.values())
    ran(live)
    assert live.trace.positions.equals(first) and len(made) == 1
    assert live.loaded.models("embedded") is models and list(models._kept.values()) == made, "made once, and reset"
