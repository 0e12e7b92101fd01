"""`decode`: one JSON object, or text and a table; the trace saved; bad input in a sentence."""

import io
import signal
import sys

import pytest

from specworkbench.cli.decode import packed_bytes
from specworkbench.engine.recording import TraceRecorder
from specworkbench.trace import load_trace
from specworkbench.trace.rule import LOSSY
from tests.experiments.toys import strict_json

KEYS = (
    "text token_ids stop_reason rule rounds proposed examined accepted emitted alpha_counts alpha_overlap "
    "block_efficiency survival_by_position acceptance_by_position ms_prefill ms_propose ms_verify ms_accept "
    "ms_rollback ms_total target_forwards draft_forwards"
).split()


def test_json_is_one_object_with_just_the_keys(command, pair):
    code, out, _ = command("decode", "abc", *pair, "--max-new-tokens", 12, "--json")
    printed = strict_json(out)
    assert code == 0 and list(printed) == KEYS and out.count("\n") == 1
    assert len(printed["token_ids"]) == printed["emitted"] == 12 and printed["stop_reason"] == "length"
    assert printed["target_forwards"] == printed["rounds"] and printed["draft_forwards"] > 0


def test_plain_decoding_has_nulls_where_nothing_was_examined(command, pair):
    code, out, _ = command("decode", "abc", *pair[:2], "--proposer", "none", "--max-new-tokens", 5, "--json")
    printed = strict_json(out)
    assert code == 0 and printed["alpha_counts"] is printed["alpha_overlap"] is None
    assert printed["acceptance_by_position"] == [None] * 4 and printed["draft_forwards"] == printed["proposed"] == 0


@pytest.mark.parametrize("rule, lossy", [("block", False), ("lenient,leniency=0.5", True), ("typical", True)])
def test_a_lossy_rule_is_said_to_be_lossy_first_in_the_figures_and_in_the_trace(command, pair, tmp_path, rule, lossy):
    asked = ("decode", "abc", *pair, "--rule", rule, "--max-new-tokens", 8)
    _, out, err = command(*asked, "--json", "--trace", tmp_path / "t.trace")
    printed, name = strict_json(out)["rule"], rule.partition(",")[0]
    assert printed == load_trace(tmp_path / "t.trace").manifest["rule"]
    assert (printed["name"], printed["lossless"]) == (name, not lossy)
    assert (f"the rule {name} is {LOSSY}" in err) == lossy
    _, out, err = command(*asked)
    (line,) = [line for line in out.splitlines() if line.startswith("rule ")]
    assert rule in line and (LOSSY in line) == (LOSSY in err) == lossy


def test_a_library_that_prints_does_not_reach_standard_output(command, pair, monkeypatch):
    flush = TraceRecorder.flush
    monkeypatch.setattr(TraceRecorder, "flush", lambda self: print("hello from a library") or flush(self))
    _, out, err = command("decode", "abc", *pair, "--max-new-tokens", 3, "--json")
    assert "hello" in err and list(strict_json(out)) == KEYS


def test_without_json_the_text_comes_first_and_a_table_follows(command, pair):
    code, out, _ = command("decode", "abc", *pair, "--max-new-tokens", 12)
    _, as_json, _ = command("decode", "abc", *pair, "--max-new-tokens", 12, "--json")
    text, *table = out.splitlines()
    assert code == 0 and text == strict_json(as_json)["text"]
    assert any("block efficiency" in line for line in table)


def test_the_same_seed_gives_the_same_text_and_another_one_another(command, pair):
    texts = [command("decode", "abc", *pair, "--seed", seed, "--max-new-tokens", 20, "--json")[1] for seed in (1, 1, 2)]
    texts = [strict_json(text)["text"] for text in texts]
    assert texts[0] == texts[1] != texts[2]


def test_every_setting_reaches_the_trace(command, pair, tmp_path):
    path = tmp_path / "new" / "t.trace"
    settings = (
        "--gamma 3 --temperature 0.9 --top-k 20 --top-p 0.95 --min-p 0.01 --repetition-penalty 1.1 --seed 7 "
        "--draft-temperature 0.5 --rule token --max-new-tokens 9 --stop zz --stop yy --ignore-eos --dtype float64 "
        "--device cpu --capture full"
    ).split()
    code, _, _ = command("decode", "abc", *pair, *settings, "--trace", path, "--json")
    manifest = load_trace(path).manifest
    sampling = {"temperature": 0.9, "top_k": 20, "top_p": 0.95, "min_p": 0.01, "repetition_penalty": 1.1}
    assert code == 0 and manifest["sampling"] == sampling
    assert manifest["draft_sampling"] == sampling | {"temperature": 0.5}
    expected = {"gamma": 3, "seed": 7, "stop": ["zz", "yy"], "max_new_tokens": 9, "eos_ids": [], "capture": "full"}
    assert {name: manifest[name] for name in expected} == expected
    assert manifest["rule"]["name"] == "token" and manifest["target"]["dtype"] == "float64"
    assert not manifest["generation_config_applied"]


@pytest.mark.parametrize(
    "name, given, changed",
    [
        ("ngram", ("min_n=2", "max_n=3"), {"min_n": 2, "max_n": 3}),
        ("suffix", ("corpus=true", "min_prob=0"), {"corpus": True, "min_prob": 0.0}),
    ],
)
def test_set_reaches_the_proposer_and_leaves_the_rest_at_its_default(command, pair, tmp_path, name, given, changed):
    from specworkbench.engine import PROPOSERS

    path = tmp_path / "t.trace"
    options = [part for setting in given for part in ("--set", setting)]
    code, *_ = command(
        "decode", "abcabc", *pair[:2], "--proposer", name, *options, "--max-new-tokens", 6, "--trace", path
    )
    assert code == 0
    assert load_trace(path).manifest["proposer"]["settings"] == PROPOSERS[name].settings() | changed


def test_a_draft_for_a_proposer_that_takes_none_is_told_of_and_not_loaded(command, pair):
    code, out, err = command(
        "decode", "abc", *pair[:2], "--proposer", "ngram", "--draft", "/no/such/x", "--max-new-tokens", 3, "--json"
    )
    assert code == 0 and strict_json(out)["emitted"] == 3
    assert "--draft /no/such/x is not used: the proposer ngram takes no draft" in err


@pytest.mark.parametrize("kind", ["weights", "target"])
def test_any_proposer_of_the_registry_gets_what_it_says_it_takes(command, pair, tmp_path, monkeypatch, kind):
    """A proposer that this command has never heard of: its weights by name and revision, or just the target."""
    from specworkbench.engine.proposers import PROPOSERS, NgramProposer

    class Toy(NgramProposer):
        name, weights, needs_target = "toy", "a word" if kind == "weights" else "", kind == "target"

        def __init__(self, given="", strength: float = 1.0):
            super().__init__()
            self.given, self.strength = given, strength

        @classmethod
        def load(cls, weights, target, revision=None):
            return f"{weights} at {revision} for {target.name}"

        @classmethod
        def build(cls, target, draft, **settings):
            return cls(draft or f"built on {target.name}", **settings)

    monkeypatch.setitem(PROPOSERS, "toy", Toy)
    named = ("--draft", "word", "--draft-revision", "v2") if kind == "weights" else ()
    options = (*pair[:2], "--proposer", "toy", *named, "--set", "strength=0.5", "--max-new-tokens", 3)
    code, *_ = command("decode", "abc", *options, "--trace", tmp_path / "t.trace")
    said = {"weights": f"word at v2 for {pair[1]}", "target": f"built on {pair[1]}"}[kind]
    settings = load_trace(tmp_path / "t.trace").manifest["proposer"]["settings"]
    assert code == 0 and settings == {"given": said, "strength": 0.5}


@pytest.mark.parametrize("given, expected", [((), 0.0), (("--temperature", 0.7), 0.7)])
def test_the_models_own_sampling_applies_when_asked_and_options_win(
    command, pair, tmp_path, monkeypatch, given, expected
):
    from specworkbench.engine import LanguageModel

    monkeypatch.setattr(LanguageModel, "generation_sampling", lambda self: {"temperature": 0.0, "top_k": 5})
    path = tmp_path / "t.trace"
    code, *_ = command(
        "decode", "abc", *pair, "--generation-config", *given, "--max-new-tokens", 4, "--trace", path, "--json"
    )
    manifest = load_trace(path).manifest
    assert code == 0 and manifest["generation_config_applied"]
    assert manifest["sampling"]["temperature"] == expected and manifest["sampling"]["top_k"] == 5


def test_a_trace_carries_distributions_unless_told_otherwise(command, pair, tmp_path):
    for capture, present in (((), True), (("--capture", "none"), False)):
        command("decode", "abc", *pair, "--max-new-tokens", 4, "--trace", tmp_path / "t.trace", *capture)
        assert (load_trace(tmp_path / "t.trace").distributions is not None) == present


def test_a_dash_reads_standard_input_as_it_is(command, pair, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc\n")))
    command("decode", "-", *pair, "--max-new-tokens", 2, "--trace", tmp_path / "t.trace")
    assert load_trace(tmp_path / "t.trace").sequences[0]["prompt"] == "abc\n"


@pytest.mark.parametrize("mode", [(), ("--json",)])
def test_an_interrupt_saves_what_was_decoded_and_exits_with_130(command, pair, tmp_path, monkeypatch, mode):
    record, before = TraceRecorder.record, signal.getsignal(signal.SIGINT)

    def interrupted(self, step):
        record(self, step)
        if step.index == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TraceRecorder, "record", interrupted)
    code, out, err = command("decode", "abc", *pair, "--max-new-tokens", 90, "--trace", tmp_path / "t.trace", *mode)
    trace = load_trace(tmp_path / "t.trace")
    assert code == 130 and "interrupted after" in err
    assert len(trace.rounds) == 4 and trace.sequences[0]["stop_reason"] == "stopped"
    if mode:
        assert strict_json(out)["rounds"] == 4
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_in_the_middle_of_a_round_still_leaves_a_sound_trace(command, pair, tmp_path, monkeypatch):
    from specworkbench.engine.loop import Sequence

    round_ = Sequence.round

    def interrupted(self):
        step = round_(self)
        if step.index == 3:
            raise KeyboardInterrupt
        return step

    monkeypatch.setattr(Sequence, "round", interrupted)
    code, *_ = command("decode", "abc", *pair, "--max-new-tokens", 90, "--trace", tmp_path / "t.trace")
    assert code == 130 and len(load_trace(tmp_path / "t.trace").rounds) == 3


def test_an_interrupt_before_the_first_round_is_one_too(command, pair, tmp_path, monkeypatch):
    from specworkbench.engine.loop import Sequence

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Sequence, "prefill", interrupted)
    code, out, _ = command("decode", "abc", *pair, "--trace", tmp_path / "t.trace", "--json")
    assert code == 130 and strict_json(out)["rounds"] == 0


def test_rows_of_nan_are_refused_and_what_came_before_is_saved(command, pair, tmp_path, monkeypatch):
    import torch

    from specworkbench.engine import LanguageModel

    forward, calls = LanguageModel.forward, []

    def damaged(self, ids, cache, **options):
        result = forward(self, ids, cache, **options)
        calls.append(self.name)
        if calls.count(str(pair[1])) > 3:
            result.logits.fill_(torch.nan)
        return result

    monkeypatch.setattr(LanguageModel, "forward", damaged)
    code, out, err = command("decode", "abc", *pair, "--trace", tmp_path / "t.trace", "--json")
    assert (code, out) == (2, "") and "not numbers (NaN)" in err
    assert len(load_trace(tmp_path / "t.trace").rounds) == 2


def test_the_embedded_family_decodes_without_naming_a_model(command, tmp_path):
    code, out, _ = command("decode", "import os\n", "--max-new-tokens", 8, "--trace", tmp_path / "t.trace", "--json")
    manifest = load_trace(tmp_path / "t.trace").manifest
    assert code == 0 and strict_json(out)["emitted"] <= 8
    assert (manifest["target"]["name"], manifest["proposer"]["draft"]["name"]) == ("embedded", "embedded/draft-s")


def test_a_minimum_length_is_in_the_trace_and_refused_above_the_maximum(command, refused, pair, tmp_path):
    code, *_ = command(
        "decode", "abc", *pair, "--max-new-tokens", 6, "--min-new-tokens", 4, "--trace", tmp_path / "t.trace"
    )
    assert code == 0 and load_trace(tmp_path / "t.trace").manifest["min_new_tokens"] == 4
    sentence = refused("decode", "abc", *pair, "--max-new-tokens", 6, "--min-new-tokens", 7)
    assert "min_new_tokens is 7" in sentence and "which is 6" in sentence


@pytest.mark.parametrize("switches, forward, products", [
    ((), "fused", True), (("--no-fused",), "transformers", True), (("--no-products",), "fused", False),
    (("--no-fused", "--no-products"), "transformers", False),
])  # fmt: skip
def test_switches_choose_the_forward_and_the_products_of_target_and_draft(
    command, tmp_path, switches, forward, products
):
    path = tmp_path / "t.trace"
    command("decode", "def f(", "--device", "cpu", "--max-new-tokens", 4, "--trace", path, *switches)
    manifest = load_trace(path).manifest
    for model in (manifest["target"], manifest["proposer"]["draft"]):
        assert model["forward"] == forward and (model["products"] is not None) == products


def test_the_memory_that_packed_copies_add_is_told():
    product = {"products": {"packed_bytes": 3 * 2**20}}
    off, older = {"products": None}, {}
    for target, draft, packed in ((product, product, 6), (product, None, 3), (off, product, 3), (older, off, 0)):
        assert packed_bytes({"target": target, "proposer": {"draft": draft}}) == packed * 2**20
