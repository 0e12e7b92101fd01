"""How long it takes: from what is most alike and finished, before that from a probe, by the size of the target."""

import pytest

from specworkbench.experiments.study import Study
from specworkbench.experiments.study.forecast import Forecast, duration
from specworkbench.experiments.study.task import task_of
from specworkbench.experiments.study.worker import failure
from tests.experiments.study.cases import toy_row

STUDY = Study(proposer=["ngram", "suffix"], target=["embedded", "embedded/draft-s"], max_new_tokens=50, per_bucket=1)
FIRST, SECOND, *SMALL = [task_of(STUDY, cell) for cell in STUDY.cells()]
SIZES = {"embedded": 1000, "embedded/draft-s": 100}


def test_nothing_is_known_at_first():
    forecast = Forecast(SIZES)
    assert forecast.seconds([FIRST]) is None and forecast.seconds([]) == 0
    forecast.learn(failure(FIRST, "no").row)
    assert forecast.seconds([FIRST]) is None and forecast.finished == 0


def test_a_probe_says_the_time_of_every_token_and_smaller_targets_take_less():
    forecast = Forecast(SIZES)
    forecast.probed(FIRST, 0.01)
    assert forecast.seconds([FIRST]) == pytest.approx(0.01 * FIRST.planned_tokens)
    assert forecast.seconds([FIRST, SMALL[0]]) == pytest.approx(0.01 * FIRST.planned_tokens * 1.1)
    assert forecast.seconds([FIRST, FIRST], places=2) == pytest.approx(forecast.seconds([FIRST]))
    assert forecast.basis == "16 plain tokens of embedded, 10.0 ms each"


def test_finished_cells_say_it_better_those_most_alike_first():
    rows = [toy_row(FIRST, seconds=3.0), toy_row(SECOND, seconds=9.0)]
    forecast = Forecast(SIZES, rows)
    assert forecast.seconds([FIRST]) == pytest.approx(3) and forecast.seconds([SECOND]) == pytest.approx(9)
    assert forecast.seconds([SMALL[0]]) == pytest.approx(0.6), "as fast as all, for its size"
    assert forecast.basis == "2 finished cells"


@pytest.mark.parametrize("seconds, said", [(0.2, "1 s"), (59, "59 s"), (200, "3 min"), (9000, "2.5 h")])
def test_a_duration_in_words(seconds, said):
    assert duration(seconds) == said
