"""What is no level is refused with its name and value, wherever a test takes one."""

import pytest

from specworkbench.equivalence.judge import check_numbers
from specworkbench.equivalence.statistics import EProcess, check_level, detectable_tv, holm, tv_bound
from specworkbench.errors import InputError


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 2.0, float("nan")])
@pytest.mark.parametrize(
    "takes",
    [
        check_level,
        lambda level: EProcess(level, 3),
        lambda level: tv_bound(0.1, 100, level),
        lambda level: holm({"one": 0.5}, level),
        lambda level: detectable_tv(100, 8, level),
        lambda level: check_numbers(100, level, 0.05),
    ],
)
def test_a_level_is_above_0_and_below_1(takes, level):
    with pytest.raises(InputError, match=f"level is {level:g}; it must be above 0 and below 1"):
        takes(level)


def test_a_margin_is_called_a_margin():
    with pytest.raises(InputError, match="margin is 1; it must be"):
        check_numbers(100, 0.001, 1.0)
