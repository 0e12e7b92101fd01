"""Decoding and judging at once is the same as judging afterwards; faults are found, right code is not."""

import math
from functools import partial
from itertools import takewhile

import pandas as pd
import pytest

from specworkbench.engine.loop import decode_rounds
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.mutants.rules import AcceptAlways, BonusFromWrongRow
from specworkbench.equivalence.racing import racing
from specworkbench.equivalence.statistics import EProcess
from specworkbench.equivalence.toys import table_setup
from specworkbench.errors import InputError

setup_of = partial(table_setup, vocab=6, length=12, gamma=3)


def until(setup, tokens, **options):
    """The e-process when it has rejected, or judged so many tokens."""
    for process in racing(setup, **options):
        if process.rejected or process.tokens >= tokens:
            return process
    raise AssertionError("it ended")


def test_it_is_what_judging_afterwards_gives():
    setup, prompts = setup_of(), [(0, 1), (2, 3, 4)]
    raced = until(setup, 60, prompts=prompts, seed=5)
    monitor, afterwards, streams = Monitor("token"), EProcess(1e-3, 4), setup.streams(5)
    for index in range(math.ceil(raced.tokens / 12)):
        for step in decode_rounds(setup.but(prompt=prompts[index % 2]).start(streams, index)):
            monitor(step)
    afterwards.update(monitor.take()[: raced.tokens])
    assert raced.log_e == pytest.approx(afterwards.log_e, rel=1e-12) and raced.tokens >= 60
    pd.testing.assert_frame_equal(raced.by_slot(), afterwards.by_slot(), rtol=1e-9)


@pytest.mark.parametrize(("fault", "slot"), [(AcceptAlways, None), (BonusFromWrongRow, 4)])
def test_a_fault_is_rejected_and_its_slot_named(fault, slot):
    process = until(setup_of(1).but(verifier=fault()), 3000)
    assert process.rejected
    most = process.by_slot().set_index("slot")["log_e"].idxmax()
    assert slot in (None, most)


def test_the_right_rule_is_not_rejected():
    assert not until(setup_of(1), 1500).rejected


def test_it_shows_its_progress_and_refuses_to_decode_nothing():
    seen = [process.tokens for process in takewhile(lambda process: process.tokens < 40, racing(setup_of()))]
    assert len(seen) > 3 and seen == sorted(seen)
    with pytest.raises(InputError, match="there is no prompt"):
        next(racing(setup_of(), []))
