"""Eager beside compiled."""

import sys

import numpy as np
import pytest

from benchmarks.common import Times
from benchmarks.engines import compile_seconds, main
from specworkbench.errors import InputError


def test_what_compiling_took_is_what_the_runs_before_took_beyond_later_ones():
    warm_up = {"compiled": np.array([9.0, 2.0, 4.0])}
    times = Times([("a", 0), ("b", 0), ("c", 0)], 10, {"compiled": np.array([2.0, 1.0, 50.0])}, warm_up)
    assert compile_seconds(times, "compiled") == 9.0


def test_one_engine_cannot_be_chosen_where_both_are_measured(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["engines", "--engine", "eager"])
    with pytest.raises(InputError, match="leave --engine eager out"):
        main()
