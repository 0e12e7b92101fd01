"""The partition of outputs: exact on toys, complete, and a test that sees what it says it can see."""

from functools import lru_cache

import numpy as np
import pytest

from specworkbench.engine import DecodeSettings, SamplingSettings, load_model
from specworkbench.equivalence import product_law
from specworkbench.equivalence.others import sequence_cells, sequence_test
from specworkbench.equivalence.toys import TableModel
from specworkbench.errors import InputError

PROMPT = (0, 1, 0)
CASES = {
    "plain": (TableModel(5, seed=3), DecodeSettings(2, 4)),
    "EOS": (TableModel(5, seed=4, eos=(2,)), DecodeSettings(2, 4)),
    "EOS, not at once": (TableModel(5, seed=4, eos=(2,)), DecodeSettings(2, 4, min_new_tokens=2)),
    "EOS ignored": (TableModel(5, seed=4, eos=(2,)), DecodeSettings(2, 4, ignore_eos=True)),
    "top-k": (TableModel(6, seed=5), DecodeSettings(2, 4, SamplingSettings(top_k=3))),
    "penalty, padded": (TableModel(5, seed=6, rows=8), DecodeSettings(2, 4, SamplingSettings(repetition_penalty=2.0))),
    "sharp": (TableModel(5, seed=7, sharpness=4.0), DecodeSettings(2, 4)),
    "stop string": (TableModel(5, seed=8), DecodeSettings(2, 4, stop=("ab",))),
    "end of the context": (TableModel(5, seed=9, context=6), DecodeSettings(2, 4)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [30, 500, 20_000])
@pytest.mark.parametrize("depth", [1, 3, 8])
def test_every_output_lies_in_one_cell_and_the_masses_are_those_of_the_law(case, n, depth):
    target, settings = CASES[case]
    cells = sequence_cells(target, PROMPT, settings, n, depth)
    masses = np.zeros(len(cells.probs))
    for output, weight in product_law(target, PROMPT, settings).items():
        masses[cells.find(output)] += weight
    assert masses == pytest.approx(cells.probs, abs=1e-12)
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert (n * cells.probs[:-1] >= 5.0 - 1e-9).all() and cells.probs[cells.outside] == 0.0


def test_more_samples_make_more_cells_and_forwards_are_limited():
    target, settings = CASES["plain"]
    few, many = (sequence_cells(target, PROMPT, settings, n) for n in (100, 10_000))
    assert len(few.labels) < len(many.labels)
    assert sequence_cells(target, PROMPT, settings, 10_000, most_forwards=7).forwards == 7 < many.forwards


def test_what_the_target_cannot_say_lies_outside_the_support():
    target, settings = CASES["EOS"]
    cells = sequence_cells(target, PROMPT, settings, 1000)
    assert cells.find((0, 1, 3, 0)) != cells.outside != cells.find((0, 2))
    for impossible in ((0, 1, 3), (0, 1, 3, 0, 0), (0, 2, 1), (), (0, 1, 3, 5), (-1, 0, 0, 0)):
        assert cells.find(impossible) == cells.outside, impossible


def test_a_token_outside_top_k_is_outside_and_rejects_by_itself():
    target, settings = CASES["top-k"]
    cells = sequence_cells(target, PROMPT, settings, 400)
    samples = draws(target, settings, 400)
    assert not sequence_test(samples, cells).rejected
    (barred,) = np.flatnonzero(~cells.branches[()].support)[:1]
    outcome = sequence_test([*samples[1:], (int(barred), *samples[0][1:])], cells)
    assert (outcome.outside, outcome.p_value, outcome.rejected) == (1, 0.0, True)


@lru_cache
def law_of(target, settings):
    return product_law(target, PROMPT, settings)


def draws(target, settings, n, seed=0, mix=0.0):
    """Outputs of the law; with probability mix the most probable one instead."""
    law = law_of(target, settings)
    outputs, weights = list(law), np.array(list(law.values()))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(outputs), n, p=weights / weights.sum())
    chosen = np.where(rng.random(n) < mix, weights.argmax(), chosen)
    return [outputs[i] for i in chosen]


@pytest.mark.parametrize("statistic", ["chi-square", "G"])
def test_the_test_keeps_its_level_and_finds_what_it_calls_detectable(statistic):
    target, settings = CASES["plain"]
    n, level = 1000, 0.02
    cells = sequence_cells(target, PROMPT, settings, n, depth=2)
    law = law_of(target, settings)
    top = cells.probs[cells.find(max(law, key=law.get))]
    null = [sequence_test(draws(target, settings, n, seed), cells, statistic, level) for seed in range(300)]
    assert sum(outcome.rejected for outcome in null) <= 15  # 6 expected; more than 15 has probability 4e-4
    mix = null[0].detectable_tv / (1 - top)
    shifted = [sequence_test(draws(target, settings, n, seed, mix), cells, statistic, level) for seed in range(100)]
    assert sum(outcome.rejected for outcome in shifted) >= 85
    assert all(outcome.tv_bound >= null[0].detectable_tv * 0.95 for outcome in shifted)


def test_the_sentence_names_what_could_have_been_seen():
    target, settings = CASES["plain"]
    outcome = sequence_test(draws(target, settings, 500), sequence_cells(target, PROMPT, settings, 500))
    assert f"a TV of {outcome.detectable_tv:.3f} would have been seen" in outcome.sentence
    assert outcome.tv < outcome.tv_bound < 1.0


def test_a_real_vocabulary_takes_a_few_dozen_forwards():
    target = load_model("embedded", device="cpu")
    prompt = target.encode("def main(")
    cells = sequence_cells(target, prompt, DecodeSettings(4, 8), 1000)
    assert cells.forwards <= 64 and len(cells.labels) > 20
    assert cells.probs.sum() == pytest.approx(1.0, abs=1e-12) and (1000 * cells.probs[:-1] >= 5.0 - 1e-9).all()


def test_bad_input_is_told_in_a_sentence():
    target, settings = CASES["plain"]
    cells = sequence_cells(target, PROMPT, settings, 100)
    with pytest.raises(InputError, match="too few for two cells"):
        sequence_cells(target, PROMPT, settings, 6)
    with pytest.raises(InputError, match="declared for 100 outputs, there are 3"):
        sequence_test([(0, 1, 2, 3)] * 3, cells)
    with pytest.raises(InputError, match="choose one of chi-square, G"):
        sequence_test([(0, 1, 2, 3)] * 100, cells, "t")
