"""Sentences of findings have the digits that a reader needs: few, and enough to see what differs."""

import numpy as np
import pytest

from specworkbench.trace.view import worded


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.1234567890123456, "0.123"),
        (np.float32(0.1), "0.1"),
        (1234.56789, "1235"),
        (3e-9, "3e-09"),
        (7, "7"),
        (12.0, "12"),
        (np.nan, "null"),
        (np.inf, "inf"),
    ],
)
def test_a_number_has_three_digits_a_whole_one_all_of_its(value, shown):
    assert worded("it is {}", value) == f"it is {shown}"


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-9, 1e-14, 1e-16])
@pytest.mark.parametrize("value", [0.1234567890123456, 0.9999999, 1.0, 0.5])
def test_numbers_that_differ_look_different_and_nothing_but_1_looks_like_1(value, apart):
    first, second, other = worded("{} {} {}", value, value - apart, 0.333333333).split()
    assert (first == second) == (value == value - apart)
    assert (first == "1") == (value == 1.0) and (second == "1") == (value - apart == 1.0)
    assert other == "0.333"


def test_numbers_that_are_equal_look_equal():
    assert worded("{} {}", 0.3333333333, 0.3333333333) == "0.333 0.333"
