"""From options to what is measured."""

from types import SimpleNamespace

from benchmarks import settings
from benchmarks.settings import SETTINGS, ours, parser, setting_of
from specworkbench.workloads import Prompt


def test_what_is_given_replaces_what_the_setting_says_and_nothing_else():
    given = setting_of(parser("").parse_args("--setting smollm2 --temperature 0.5 --runs 7 --no-chat".split()))
    assert (given.temperatures, given.runs, given.chat) == ((0.5,), 7, False)
    assert (given.target, given.buckets) == (SETTINGS["smollm2"].target, ("coding",))


def test_every_setting_has_prompts():
    assert all(len(setting.load_prompts()) >= 2 for setting in SETTINGS.values())


def test_the_engine_that_is_named_reaches_the_loader(monkeypatch):
    seen = []
    monkeypatch.setattr(settings, "load_model", lambda name, engine, **more: seen.append(engine))
    SETTINGS["embedded"].load("embedded")
    setting_of(parser("").parse_args(["--engine", "compiled"])).load("embedded")
    SETTINGS["embedded"].load("embedded", "compiled")
    assert seen == ["eager", "compiled", "compiled"]


def test_what_a_recorder_puts_off_is_done_before_the_clock_stops(monkeypatch):
    done = []

    class Decoder:
        recorder = SimpleNamespace(flush=lambda: done.append("flush"))

        def __init__(self, target, proposer, **options):
            self.options = options

        def run(self, text):
            done.append((text, self.options["seed"], self.options["capture"], self.options["chat"]))
            return SimpleNamespace(token_ids=[1, 2, 3])

    monkeypatch.setattr(settings, "Decoder", Decoder)
    assert ours(None, None, SETTINGS["embedded"].decoding(1.0), "none", chat=True)(Prompt("a", "code", "text"), 5) == 3
    assert done == [("text", 5, "none", True), "flush"]
