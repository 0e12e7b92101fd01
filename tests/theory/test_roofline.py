"""The least time of a piece of work: its bytes at the bandwidth, its operations at the peak, whichever takes longer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError

amounts, rates = st.floats(0, 1e15), st.floats(1e3, 1e15)


def test_a_model_of_538_mb_takes_38_ms_at_14_gb_per_second():
    assert theory.memory_time(538e6, 14e9) == pytest.approx(38.43e-3, abs=1e-5)
    assert theory.arithmetic_time(2 * 134.5e6 * 5, 100e9) == pytest.approx(13.45e-3)


@given(st.floats(1, 1e15), rates, st.floats(1, 1e15), rates)
def test_it_is_the_roofline_of_williams_written_as_a_time(bytes_read, bandwidth, operations, peak):
    attainable = min(peak, bandwidth * operations / bytes_read)
    assert theory.least_time(bytes_read, bandwidth, operations, peak) == pytest.approx(operations / attainable)


@given(amounts, rates, amounts, rates)
def test_no_bound_is_left_out_and_nothing_is_added(bytes_read, bandwidth, operations, peak):
    bounds = theory.memory_time(bytes_read, bandwidth), theory.arithmetic_time(operations, peak)
    assert theory.least_time(bytes_read, bandwidth, operations, peak) == max(bounds)


def test_more_rows_are_bound_by_memory_first_and_by_arithmetic_later():
    rows = np.array([1, 2, 4, 8, 16])
    times = theory.least_time(4e6, 1e9, 2e6 * rows, 4e9)
    assert times.tolist() == pytest.approx([4e-3, 4e-3, 4e-3, 4e-3, 8e-3])


def test_arguments_broadcast_and_scalars_give_a_scalar():
    assert theory.memory_time([[1e9], [2e9]], [1e9, 2e9]).tolist() == [[1, 0.5], [2, 1]]
    assert isinstance(theory.least_time(1, 1, 1, 1), float)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.memory_time(-1, 1e9), "bytes_read is -1; it is an amount of work"),
        (lambda: theory.memory_time(1, 0), "bandwidth is 0; it is an amount of work per second, more than 0"),
        (lambda: theory.arithmetic_time(1, np.nan), "peak is nan"),
        (lambda: theory.least_time(1, 1, np.inf, 1), "operations is inf"),
    ],
)
def test_what_is_no_amount_or_rate_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
