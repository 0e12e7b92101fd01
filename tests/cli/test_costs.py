"""`costs`: figures that follow from each other; what was measured survives Ctrl-C."""

import signal

import pytest

from specworkbench.engine import loading
from specworkbench.experiments import machine
from specworkbench.experiments.costs.forwards import Forwards
from specworkbench.experiments.costs.settings import WARM_UP
from specworkbench.experiments.costs.table import read_costs
from tests.experiments.toys import strict_json

TIMED = "context rows runs ms ms_low ms_high verify_cost verify_cost_low verify_cost_high".split()
FLOOR = (
    "weight_bytes cache_bytes operations ms_memory ms_arithmetic ms_floor bandwidth_share floor_share"
).split()  # fmt: skip
TABLE = set("kind version target forwards limit steps proposers memory environment runs interrupted".split())
LIMIT = "memory weights products bandwidth peak cache_bytes note".split()


def test_the_shares_of_the_embedded_target_follow_from_the_figures_printed(command):
    code, out, _ = command("costs", "--limit", "--rows", "1,5", "--runs", 6, "--device", "cpu", "--json")
    shown = strict_json(out)
    limit = shown["limit"]
    assert code == 0 and set(shown) == TABLE and shown["steps"] == shown["proposers"] == []
    assert list(limit) == LIMIT and shown["target"]["name"] == "embedded" and not shown["interrupted"]
    for name in ("memory", "weights", "products"):
        assert 0 < limit[name]["median"] <= limit[name]["best"] and limit[name]["runs"] == 6
    assert [(row["context"], row["rows"], row["runs"]) for row in shown["forwards"]] == [(64, 1, 6), (64, 5, 6)]
    for row in shown["forwards"]:
        assert list(row) == TIMED + FLOOR
        bytes_read = row["weight_bytes"] + row["cache_bytes"]
        assert row["ms_memory"] == pytest.approx(bytes_read / limit["bandwidth"] * 1e3)
        assert row["ms_arithmetic"] == pytest.approx(row["operations"] / limit["peak"] * 1e3)
        assert row["ms_floor"] == max(row["ms_memory"], row["ms_arithmetic"])
        assert row["bandwidth_share"] == pytest.approx(bytes_read / (row["ms"] / 1e3) / limit["bandwidth"])
        assert row["floor_share"] == pytest.approx(row["ms_floor"] / row["ms"])
        assert 0 < row["bandwidth_share"] <= row["floor_share"] < 3
        assert row["verify_cost"] == pytest.approx(row["ms"] / shown["forwards"][0]["ms"])
        assert row["cache_bytes"] == 8 * 2 * 2 * 64 * 4 * (64 + row["rows"]), "layers, k and v, heads, width, float32"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(machine, "SECONDS", 1e-5)
    monkeypatch.setattr(machine, "LEAST_BUFFER", 2**20)
    monkeypatch.setattr(machine, "last_level_cache", lambda device: None)


@pytest.fixture
def options(toys, quick):
    return ("costs", "--target", toys / "target", "--context", "8,16", "--rows", "1,3", "--device", "cpu")


def test_without_the_limit_the_times_alone_are_shown(command, options):
    code, out, _ = command(*options, "--runs", 6, "--json")
    shown = strict_json(out)
    assert code == 0 and shown["limit"] is None and shown["runs"] == 6
    assert [list(row) for row in shown["forwards"]] == [TIMED] * 4
    code, out, _ = command(*options, "--runs", 6)
    assert code == 0 and "T(n) ms" in out and "median of 6 runs" in out and "bandwidth" not in out


def test_the_table_and_sentences_say_what_was_measured(command, options):
    code, out, _ = command(*options, "--runs", 6, "--limit")
    said = " ".join(out.split())
    assert code == 0 and all(name in said for name in ("weights MB", "of bandwidth", "of floor", "v(n)"))
    assert "Memory is read at" in said and "a buffer of 1.0 MiB" in said and "as large as they are" in said
    assert "A step after 8 tokens reads" in said and "A verification of 3 rows after 8 tokens reads" in said


def test_few_runs_have_no_intervals(command, options):
    code, out, _ = command(*options, "--runs", 2, "--json")
    assert code == 0 and {row["ms_low"] for row in strict_json(out)["forwards"]} == {None}
    code, out, _ = command(*options, "--runs", 2)
    assert code == 0 and "–" in out


def interrupt_after(number, monkeypatch):
    calls, timed = [], Forwards._timed

    def interrupting(self, cell, cache):
        calls.append(cell)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return timed(self, cell, cache)

    monkeypatch.setattr(Forwards, "_timed", interrupting)


@pytest.mark.parametrize("limit", [(), ("--limit",)])
def test_ctrl_c_shows_what_was_measured_and_exits_with_130(command, options, monkeypatch, limit):
    extra = len(limit) * (WARM_UP + 1)
    interrupt_after(4 * (WARM_UP + 1) + 2 + extra, monkeypatch)
    code, out, err = command(*options, "--json", *limit)
    shown = strict_json(out)
    assert code == 130 and "interrupted; what was measured is shown" in err and "Traceback" not in err
    assert shown["interrupted"] and sorted(row["runs"] for row in shown["forwards"]) == [1, 1, 2, 2]
    assert (shown["limit"] is not None) == bool(limit)


def test_ctrl_c_before_anything_was_measured_says_so(command, options, monkeypatch):
    interrupt_after(2, monkeypatch)
    code, out, err = command(*options)
    assert (code, out) == (130, "") and "nothing was measured" in err


@pytest.mark.parametrize(
    "more, said",
    [
        (("--rows", "0"), "rows is 0; a forward has at least 1 row"),
        (("--rows", "5,-1"), "rows is -1"),
        (("--rows", "two"), "rows is 'two'"),
        (("--rows", ""), "rows is ''"),
        (("--context", "0"), "context is 0; a step has at least 1 token before it"),
        (("--context", "64,x"), "context is '64,x'"),
        (("--context", "160"), "a forward of 3 rows are 163 tokens"),
        (("--context", "64,158"), "takes 160 at most; give a shorter context"),
        (("--rows", "153", "--context", "8"), "a context of 8 tokens and a forward of 153 rows"),
        (("--runs", "0"), "runs is 0"),
        (("--target", "/no/such/folder"), "no model folder"),
        (("--dtype", "float12"), "dtype 'float12' is not known"),
    ],
)
def test_what_cannot_be_timed_is_refused_in_a_sentence(refused, options, more, said):
    assert said in refused(*options, *more)


def test_a_calibration_is_asked_for_and_comes_before_the_load(command, options, monkeypatch):
    done = []
    monkeypatch.setattr("specworkbench.engine.calibration.forget_times", lambda: done.append("forgotten"))
    load = loading.load_model
    monkeypatch.setattr("specworkbench.engine.load_model", lambda *a, **k: done.append("loaded") or load(*a, **k))
    assert command(*options, "--runs", 6)[0] == 0 and done == ["loaded"]
    assert command(*options, "--runs", 6, "--calibrate")[0] == 0 and done[1:] == ["forgotten", "loaded"]


def test_a_proposer_brings_rounds_that_are_saved_and_shown_again(command, options, toys, tmp_path):
    own = ("--proposer", f"draft_model:{toys / 'draft'}", "--proposer", "none", "--gamma", 3)
    code, out, err = command(*options, *own, "--runs", 6, "--out", tmp_path / "costs.json")
    assert code == 0 and "costs written to" in err
    assert all(said in out for said in ("Rounds of proposers", "Prefill of the context", "Weights: target"))
    found = read_costs(tmp_path / "costs.json")
    assert found.labels == ["none", f"draft_model:{toys / 'draft'}"] and found.contexts == [8, 16]
    assert found.c("draft_model") > 0 and found.v(4) > 0 and found.gamma("draft_model") == 3
    assert command("costs", "--from", tmp_path / "costs.json") == (0, out, "")
    code, out, _ = command("costs", "--from", tmp_path / "costs.json", "--json")
    assert code == 0 and strict_json(out) == strict_json((tmp_path / "costs.json").read_text())


@pytest.mark.parametrize(
    "more, said",
    [
        (("--proposer", "crystal_ball"), "no proposer 'crystal_ball'"),
        (("--proposer", "draft_model"), "needs a draft"),
        (("--proposer", "ngram", "--gamma", 0), "gamma is 0; a proposer is asked for"),
        (("--proposer", "ngram", "--gamma", 40), "5 rounds of up to 41 tokens after it need"),
        (("--out", "/dev/null/costs.json"), "cannot write the costs"),
        (("--from", "/no/such/file"), "cannot read the costs in /no/such/file"),
        (("--from", "/no/such/file", "--out", "x"), "leave --out and --proposer out"),
    ],
)
def test_what_cannot_be_timed_with_a_proposer_saved_or_shown_is_refused(refused, options, more, said):
    assert said in refused(*options, *more)
