"""Evidence of real decoding on the toys, as an endless stream of sequences."""

from itertools import count

from specworkbench.engine.loop import decode_rounds
from specworkbench.equivalence.monitor import Monitor


def evidence_of(setup, seed=0, watched=None):
    """One `Evidence` a sequence, without end; watched: told the number of each."""
    monitor, streams = Monitor(setup.verifier.name), setup.streams(seed)
    for index in count():
        for step in decode_rounds(setup.start(streams, index)):
            monitor(step)
        if watched is not None:
            watched(index)
        yield monitor.take()
