"""A bench: what is finished is on disk, an interrupt loses nothing of it, and a cell can be decoded again alone."""

import pytest

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, load_model, make_proposer
from specworkbench.engine.proposers import PROPOSERS, DraftModelProposer
from specworkbench.errors import InputError
from specworkbench.experiments.bench import Bench
from specworkbench.experiments.plan import Plan, ProposerSpec
from specworkbench.experiments.report import report_of
from specworkbench.trace import load_trace
from specworkbench.workloads import Prompt
from tests.experiments.toys import PROMPTS, strict_json


@pytest.fixture
def plan(toys):
    def make(**options):
        specs = (ProposerSpec("draft_model", str(toys / "draft")), ProposerSpec("ngram"))
        given = {"target": str(toys / "target"), "proposers": specs, "prompts": PROMPTS, "max_new_tokens": 8}
        return Plan(**given | options)

    return make


def test_every_cell_is_saved_and_counted(plan, tmp_path):
    bench = Bench(plan(), tmp_path)
    bench.warm_up()
    assert bench.finished == 0 and not list(tmp_path.iterdir()), "the warm-up counts nowhere"
    seen = []
    assert bench.run(seen.append)
    assert len(seen) == bench.finished == bench.planned == 3 * 3 * 2
    assert sorted(bench.files) == sorted(tmp_path.rglob("*.trace"))
    for path in bench.files:
        assert len(load_trace(path).sequences) == 1


def test_a_cell_can_be_decoded_again_alone(plan, tmp_path, toys):
    bench = Bench(plan(temperatures=(1.0,), seed=5), tmp_path)
    bench.run()
    trace = next(decoded for found, decoded in bench.traces.items() if found.proposer.name == "draft_model")[2]
    target, draft = (load_model(str(toys / name)) for name in ("target", "draft"))
    settings = DecodeSettings(max_new_tokens=8, sampling=SamplingSettings())
    proposer = make_proposer("draft_model", target=target, draft=draft)
    again = Decoder(target, proposer, settings=settings, seed=5 + 2).run(PROMPTS[2].text)
    assert again.token_ids == trace.sequences[0]["token_ids"]


def interrupt_after(number):
    """A watcher of cells that interrupts once so many are finished."""
    seen = []

    def watch(cell):
        seen.append(cell)
        if len(seen) == number:
            raise KeyboardInterrupt

    return watch


def test_an_interrupt_keeps_what_was_finished(plan, tmp_path):
    bench = Bench(plan(), tmp_path)
    assert not bench.run(interrupt_after(5))
    assert bench.finished == len(list(tmp_path.rglob("*.trace"))) == 5
    report = report_of(bench, "test")
    report.save(tmp_path)
    saved = strict_json((tmp_path / "report.json").read_text())
    assert saved["rows"] and saved["environment"]["interrupted"]
    assert saved["environment"]["runs"] == {"planned": 18, "finished": 5, "per_cell": 1}
    assert [tmp_path / name for name in saved["environment"]["traces"]] == bench.files


def test_a_stop_leaves_the_cell_at_hand_out(plan, tmp_path):
    bench = Bench(plan(), tmp_path)
    answers = iter([False] * 12)
    assert not bench.run(stop=lambda: next(answers, True))
    assert 0 < bench.finished < 12
    for decoded in bench.traces.values():
        assert all(trace.sequences[0]["stop_reason"] == "length" for trace in decoded)


def test_settings_reach_the_proposers_and_their_traces(plan, tmp_path):
    texts = ("ngram,min_n=2", "ngram,min_n=2,max_n=3", "suffix,corpus=true")
    bench = Bench(plan(proposers=tuple(map(ProposerSpec.parse, texts)), temperatures=(1.0,)), tmp_path)
    assert bench.run() and bench.finished == 3 * 4
    for configuration, decoded in bench.traces.items():
        spec, found = configuration.proposer, decoded[0].manifest["proposer"]
        assert found == {**found, "name": spec.name, "settings": spec.kind.settings() | dict(spec.settings)}
    assert report_of(bench, "test").environment["proposers"] == ["none", *texts]
    assert len({path.parent for path in bench.files}) == 4, "a folder each"


def test_weights_are_loaded_once_for_all_settings_gammas_and_temperatures(plan, tmp_path, monkeypatch, toys):
    class Adjustable(DraftModelProposer):
        name = "adjustable"

        def __init__(self, draft, strength: float = 1.0):
            super().__init__(draft)
            self.strength = strength

    loads, load = [], Adjustable.load
    monkeypatch.setattr(Adjustable, "load", lambda name, target: loads.append(name) or load(name, target))
    monkeypatch.setitem(PROPOSERS, "adjustable", Adjustable)
    draft = str(toys / "draft")
    specs = tuple(ProposerSpec.parse(f"adjustable:{draft}{more}") for more in ("", ",strength=0.5"))
    bench = Bench(plan(proposers=specs, gammas=(1, 2)), tmp_path)
    made = [bench._proposers[found] for found in bench.traces if not found.plain]
    assert loads == [draft] and len(set(map(id, made))) == 8 and len({id(each.draft) for each in made}) == 1
    assert [each.strength for each in made] == [1.0, 1.0, 0.5, 0.5] * 2


def test_of_a_plan_that_nobody_chose_what_does_not_suit_the_target_is_left_out_with_its_reason(plan, toys, tmp_path):
    specs = tuple(ProposerSpec.parse(text) for text in (f"mtp:{toys}/target", "ngram"))
    with pytest.raises(InputError, match="holds no head"):
        Bench(plan(proposers=specs), tmp_path)
    bench = Bench(plan(proposers=specs, lenient=True), tmp_path)
    assert list(bench.left_out) == [specs[0].label] and "holds no head" in bench.left_out[specs[0].label]
    assert bench.run() and bench.finished == bench.planned
    assert {configuration.label for configuration in bench.traces} == {"none", "ngram"}


@pytest.mark.parametrize(
    "options, said",
    [
        ({"gammas": (0,)}, "gamma is 0"),
        ({"gammas": (4, -1)}, "gamma is -1"),
        ({"gammas": (160,)}, "'one/1'.*gamma is 160, past the context"),
        ({"temperatures": (-1.0,)}, "temperature is -1"),
        ({"temperatures": (float("nan"),)}, "temperature is nan"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"proposers": "draft_model:{toys}/other"}, "another vocabulary"),
        ({"proposers": "draft_model"}, "needs a draft"),
        ({"proposers": "draft_model:{toys}/missing"}, "no weights '.*/missing'"),
        ({"proposers": "ngram,min_n=5"}, "min 5 and max 4"),
        ({"prompts": (*PROMPTS, Prompt("long", "x", "ab" * 100))}, "prompt 'long'.*200 tokens"),
        ({"target": "/no/such/folder"}, "no model folder"),
    ],
)
def test_what_cannot_be_decoded_is_refused_before_anything_is(plan, toys, tmp_path, options, said):
    if "proposers" in options:
        options = {"proposers": (ProposerSpec.parse(options["proposers"].format(toys=toys)),)}
    with pytest.raises(InputError, match=said):
        Bench(plan(**options), tmp_path)
    assert not list(tmp_path.iterdir())
