"""`controllers`: everything that is registered; `decode --controller`: the one asked for, or a sentence."""

from specworkbench.engine.controllers import CONTROLLERS
from specworkbench.trace import load_trace
from tests.experiments.toys import strict_json


def test_json_lists_everything_that_is_registered_in_its_order(command):
    code, out, _ = command("controllers", "--json")
    listed = strict_json(out)["controllers"]
    assert code == 0 and [entry["name"] for entry in listed] == list(CONTROLLERS)
    for entry, kind in zip(listed, CONTROLLERS.values(), strict=True):
        assert entry["summary"] == kind.summary and entry["uses_times"] == kind.uses_times
        assert entry["settings"] == {
            name: list(value) if isinstance(value, tuple) else value for name, value in kind.settings().items()
        }


def test_the_table_says_it_in_words(command):
    code, out, _ = command("controllers")
    assert code == 0 and all(name in out for name in CONTROLLERS)
    assert "threshold=0.4" in out and "sizes=1,4,16" in out and "measured times" in out and "--gamma is the most" in out


def test_decode_takes_a_controller_and_says_so_in_the_trace(command, tmp_path):
    path = tmp_path / "a.trace"
    code, *_ = command(
        "decode", "def f(x):", "--max-new-tokens", "24", "--gamma", "6", "--controller", "heuristic,start=2",
        "--trace", str(path), "--json",
    )  # fmt: skip
    trace = load_trace(path)
    assert code == 0 and trace.manifest["controller"]["settings"] == {"start": 2, "up": 2, "down": 1}
    assert trace.rounds["gamma"].iloc[0] == 2 and trace.rounds["gamma"].nunique() > 1


def test_an_unknown_controller_is_refused_before_anything_is_loaded(refused, monkeypatch):
    monkeypatch.setattr("specworkbench.engine.load_model", lambda *_, **__: 1 / 0)
    assert "choose one of constant, heuristic" in refused("decode", "abc", "--controller", "fast")
