"""How contenders are measured, on made-up contenders and a made-up clock."""

import json
from collections import Counter

import numpy as np
import pytest

from benchmarks import common
from benchmarks.common import Ratio, Results, Times, measure, ratio_of_medians
from specworkbench.errors import InputError
from specworkbench.workloads import Prompt

PROMPTS = [Prompt("a", "code", "x"), Prompt("b", "code", "y")]
TOKENS = 10


class Contenders:
    """Made-up contenders that take the seconds of `takes`; calls: who was asked what, in order."""

    def __init__(self, monkeypatch, **takes):
        self.now, self.calls = 0.0, []
        monkeypatch.setattr(common, "perf_counter", lambda: self.now)
        self.contenders = {name: self._contender(name, seconds) for name, seconds in takes.items()}

    def _contender(self, name, seconds):
        def run(prompt, seed):
            self.calls.append((name, prompt.id, seed))
            self.now += seconds(prompt, seed) if callable(seconds) else seconds
            return TOKENS

        return run


def test_every_contender_stands_in_each_place_equally_often(monkeypatch):
    made = Contenders(monkeypatch, one=1.0, two=1.0, three=1.0)
    measure(made.contenders, PROMPTS, runs=3, tokens=TOKENS)
    turns = [made.calls[i : i + 3] for i in range(3, len(made.calls), 3)]
    places = Counter((place, name) for turn in turns for place, (name, _, _) in enumerate(turn))
    assert places == {(place, name): 2 for place in range(3) for name in made.contenders}


def test_every_contender_decodes_every_pair_once_and_the_pairs_are_those_of_its_times(monkeypatch):
    made = Contenders(monkeypatch, one=lambda prompt, seed: seed + 1 + 10 * (prompt.id == "b"), two=1.0)
    times = measure(made.contenders, PROMPTS, runs=2, tokens=TOKENS)
    counted = made.calls[2:]
    assert sorted(counted) == sorted((name, id, seed) for name in ("one", "two") for id in "ab" for seed in (0, 1))
    assert dict(zip(times.pairs, times.seconds["one"], strict=True)) == {
        ("a", 0): 1, ("b", 0): 11, ("a", 1): 2, ("b", 1): 12,
    }  # fmt: skip


def test_what_is_done_once_is_kept_apart(monkeypatch):
    waiting = iter([50.0, 5.0, 1.0, 1.0])
    made = Contenders(monkeypatch, slow=lambda prompt, seed: next(waiting), quick=1.0)
    times = measure(made.contenders, PROMPTS, runs=1, tokens=TOKENS, warm_up=PROMPTS[:1] * 2)
    assert times.warm_up["slow"].tolist() == [50.0, 5.0] and times.warm_up["quick"].tolist() == [1.0, 1.0]
    assert times.seconds["slow"].tolist() == [1.0, 1.0]


def test_a_median_is_ms_per_token(monkeypatch):
    made = Contenders(monkeypatch, one=lambda prompt, seed: (1.0, 2.0, 30.0)[seed])
    assert measure(made.contenders, PROMPTS[:1], runs=3, tokens=TOKENS).median("one") == pytest.approx(200.0)


def test_a_contender_that_gives_another_number_of_tokens_is_noticed(monkeypatch):
    made = Contenders(monkeypatch, good=1.0, short=1.0)
    made.contenders["short"] = lambda prompt, seed: TOKENS - (prompt.id == "b")
    with pytest.raises(InputError, match=r"short gave 9 new tokens for the prompt 'b', not 10"):
        measure(made.contenders, PROMPTS, runs=1, tokens=TOKENS)


def test_contenders_are_resampled_by_the_same_pairs():
    under = np.array([1.0, 5.0, 2.0, 40.0, 3.0])
    assert tuple(ratio_of_medians(2 * under, under)) == (2.0, 2.0, 2.0)


def test_the_interval_holds_what_resampling_two_pairs_can_give():
    estimate = ratio_of_medians(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (2.0, 1.0, 3.0, 2)


def test_one_pair_has_no_interval():
    assert tuple(ratio_of_medians(np.array([3.0]), np.array([2.0]))) == (1.5, None, None)


def test_the_file_holds_every_time_and_what_it_depends_on(tmp_path, capsys):
    file = tmp_path / "results" / "x.json"
    results = Results({"cpu": "made up"}, {"gamma": 4}, str(file))
    times = Times([("a", 0), ("b", 0)], TOKENS, {"theirs": np.array([2.0, 4.0]), "ours": np.array([1.0, 2.0])}, {
        "theirs": np.array([9.0]), "ours": np.array([8.0]),
    })  # fmt: skip
    results.add("a title", times, [Ratio("theirs / ours", "theirs", "ours")])
    results.note("start", 3.0, "it took 3 s to start")
    results.close()
    written = json.loads(file.read_text())
    (part,) = written["parts"]
    assert part["seconds"] == {"theirs": [2.0, 4.0], "ours": [1.0, 2.0]}
    assert part["ratios"] == [{"what": "theirs / ours", "value": 2.0, "low": 2.0, "high": 2.0, "pairs": 2}]
    assert (part["warm_up_seconds"]["ours"], part["median_ms_per_token"]["ours"]) == ([8.0], 150.0)
    assert (written["environment"], written["settings"]) == ({"cpu": "made up"}, {"gamma": 4})
    assert written["notes"] == {"start": 3.0} and written["peak_memory"]["resident"] > 2**20
    said = capsys.readouterr().out
    assert "theirs / ours: 2.00 (2.00 to 2.00), 2 pairs" in said and "it took 3 s to start" in said
