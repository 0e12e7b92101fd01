"""While something is timed the collector leaves alone what was there before, and takes it back afterwards."""

import gc
import weakref

from specworkbench.experiments.collector import little_garbage


class Knot:
    """Garbage that only the collector can find."""

    def __init__(self):
        self.self = self


def test_only_what_is_made_within_is_looked_at():
    old = Knot()
    known = weakref.ref(old)
    before = gc.get_freeze_count()
    with little_garbage():
        assert gc.get_freeze_count() > before + 10_000
        del old
        new = weakref.ref(Knot())
        gc.collect()
        assert known() is not None and new() is None
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert known() is None


def test_it_ends_with_what_fails_within():
    try:
        with little_garbage():
            raise ValueError
    except ValueError:
        assert gc.get_freeze_count() == 0
