"""Real rounds are timed at their context, as often as all else, and give the parts that a round is made of."""

from contextlib import closing

import numpy as np
import pytest

from specworkbench.engine import make_proposer
from specworkbench.engine.loop import Sequence
from specworkbench.errors import InputError
from specworkbench.experiments.costs import rounds
from specworkbench.experiments.costs.measure import Costs
from specworkbench.experiments.costs.rounds import ROUNDS, text_ids, timed_round
from specworkbench.experiments.costs.settings import WARM_UP, CostSettings
from tests.engine.proposer_cases import CASES
from tests.engine.toys import toy_model

SETTINGS = CostSettings(contexts=(6, 20), rows=(2,), runs=6, gamma=3)
FIGURES = "c overhead ms_propose ms_step ms_rollback ms_loop ms_prefill ms_draft_prefill".split()


@pytest.fixture(scope="module")
def target():
    return toy_model(6, context=128)


def measured(target, settings=SETTINGS, **proposers):
    found = Costs(target, settings, proposers)
    assert sum(1 for _ in found.run()) == found.planned
    return found


@pytest.fixture(scope="module")
def found(target):
    draft = make_proposer("draft_model", target=target, draft=toy_model(6, seed=1, layers=1, context=128))
    return measured(target, draft=draft, ngram=make_proposer("ngram"))


def test_steps_of_one_row_and_of_a_verification_are_always_among_them(found):
    rows = found.rounds.step_rows()
    assert [(row["context"], row["rows"], row["runs"]) for row in rows] == [
        (c, n, 6) for c in (6, 20) for n in (1, 2, 4)
    ]
    for row in rows:
        plain = next(other for other in rows if (other["context"], other["rows"]) == (row["context"], 1))
        assert 0 < row["ms_low"] <= row["ms"] <= row["ms_high"] and row["ms_rollback"] > 0 and row["ms_loop"] > 0
        assert row["verify_cost"] == pytest.approx(row["ms"] / plain["ms"])


def test_every_proposer_is_timed_at_every_context_beside_plain_decoding(found):
    rows = found.rounds.run_rows()
    labels = ("none", "draft", "ngram")
    assert [(row["context"], row["proposer"]) for row in rows] == [(c, label) for c in (6, 20) for label in labels]
    for row in rows:
        plain = row["proposer"] == "none"
        assert row["gamma"] == (None if plain else 3) and row["runs"] == 6 and row["ms_prefill"] > 0
        assert (row["c"] is None) == (row["ms_propose"] is None) == (row["proposed"] == 0)
        assert {name: row[name] is None for name in FIGURES if name not in ("c", "ms_propose")} == dict.fromkeys(
            [name for name in FIGURES if name not in ("c", "ms_propose")], False
        )
        assert (row["draft_cache_bytes"] > 0) == (row["proposer"] == "draft")


def test_c_and_o_are_in_steps_of_one_row(found):
    steps = {(row["context"], row["rows"]): row["ms"] for row in found.rounds.step_rows()}
    for row in found.rounds.run_rows():
        if row["c"] is not None:
            assert row["c"] == pytest.approx(row["ms_propose"] / steps[row["context"], 1])
        run = next(r for r in found.rounds.runs if (r.label, r.context) == (row["proposer"], row["context"]))
        rest = np.median(np.add(run.samples["rollback"], run.samples["loop"]))
        assert row["overhead"] == pytest.approx(rest / steps[row["context"], 1])


def test_every_step_is_at_its_context_and_every_run_begins_there(target, monkeypatch):
    seen, played = [], Sequence.round

    def watched(self):
        seen.append((self.proposer.name, self.settings.gamma, len(self.context.tokens), self.cache.length))
        return played(self)

    monkeypatch.setattr(Sequence, "round", watched)
    measured(target, CostSettings(contexts=(5, 9), rows=(1, 3), runs=2, gamma=2), ngram=make_proposer("ngram"))
    steps = [call for call in seen if call[0] == "random"]
    assert {(gamma, tokens) for _, gamma, tokens, _ in steps} == {(2, 6), (2, 10)}
    assert all(tokens == held + 1 for *_, tokens, held in seen)
    assert len(steps) == 2 * (WARM_UP + 2)
    runs = [tokens for name, _, tokens, _ in seen if name == "ngram"]
    assert len(runs) == 2 * (WARM_UP + 2) * ROUNDS and {*runs[::ROUNDS]} == {6, 10}


def test_the_parts_of_a_round_are_its_phases_and_all_that_is_left_of_the_call(target, monkeypatch):
    sequence = Costs(target, SETTINGS, {}).rounds.runs[0].decoder.start([1, 2, 3])
    sequence.prefill()
    clock = iter([1.0, 3.0])
    monkeypatch.setattr(rounds, "perf_counter", lambda: next(clock))
    played, steps = sequence.round, []
    monkeypatch.setattr(sequence, "round", lambda: steps.append(played()) or steps[0])
    parts = timed_round(sequence)
    assert np.isnan(parts["propose"]) and parts["proposed"] == 0
    assert parts["step"] + parts["rollback"] + parts["loop"] + steps[0].times["propose"] == pytest.approx(2000)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_proposer_can_be_timed(case):
    target = case.target(context=64)
    settings = CostSettings(contexts=(6,), rows=(1,), runs=1, gamma=2)
    table = measured(target, settings, it=case.build(target)).table()
    rows = table.proposers
    assert table.memory["proposers"]["it"]["weight_bytes"] >= 0
    assert [row["proposer"] for row in rows] == ["none", "it"]
    if case.name in ("dial", "oracle"):
        assert rows[1]["c_set"] and rows[1]["c"] == case.settings.get("c", 0.0)
    elif rows[1]["proposed"]:
        assert not rows[1]["c_set"] and rows[1]["c"] > 0


def test_without_proposers_there_are_no_rounds(target):
    table = Costs(target, SETTINGS).table()
    assert table.steps == table.proposers == [] and table.memory["proposers"] == {}


def test_what_was_measured_before_a_stop_is_kept(target):
    found = Costs(target, CostSettings(contexts=(6,), rows=(1,), runs=5, gamma=2), {})
    jobs = found.planned // (WARM_UP + 5)
    with closing(found.run()) as timings:
        for _ in range(jobs * WARM_UP):
            next(timings)
        assert found.table().steps == found.table().proposers == found.table().forwards == []
        for _ in range(jobs + 1):
            next(timings)
    table = found.table(interrupted=True)
    rows = [*table.forwards, *table.steps, *table.proposers]
    assert sorted(row["runs"] for row in rows) == [1] * (jobs - 1) + [2] and table.interrupted


def test_the_text_is_the_shipped_prompts_again_and_again(target):
    ids = text_ids(target, 500)
    assert len(ids) == 500 and all(0 <= token < target.vocab_size for token in ids)


def test_rounds_past_the_context_are_refused(target):
    with pytest.raises(InputError, match="5 rounds of up to 9 tokens after it need 145, and toy-0 takes 128 at most"):
        Costs(target, CostSettings(contexts=(90,), rows=(2,), gamma=8), {})
    with pytest.raises(InputError, match="gamma is 0; a proposer is asked for at least 1 token"):
        CostSettings(gamma=0)
