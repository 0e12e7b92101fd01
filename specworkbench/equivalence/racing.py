"""`racing`: decode and judge at once, for whoever wants to watch the evidence grow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from specworkbench.engine.loop import decode_rounds
from specworkbench.equivalence.monitor import Monitor, RowsOf
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.statistics import EProcess
from specworkbench.errors import InputError

ROUNDS = 4
"""Rounds that are judged at once."""


def racing(
    setup: Setup,
    prompts: Sequence[Sequence[int]] | None = None,
    *,
    level: float = 1e-3,
    seed: int = 0,
    rows: RowsOf | None = None,
) -> Iterator[EProcess]:
    """Decode again and again, each time with other draws, and judge the tokens as they come, without end.

    Yields the same e-process after every few rounds. prompts: token ids, taken in turn; by default the setup's own.
    rows: what to judge by, see `Monitor`. Whoever lets several of these take turns gives each a proposer of its own.
    Raises `InputError` for no prompt at all.

    >>> from itertools import islice
    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> right = table_setup()
    >>> for setup in (right, MUTANTS[0].apply(right)):  # the second accepts every guess
    ...     *_, process = islice(racing(setup), 100)
    ...     print(process.rejected, process.decided_at)
    False None
    True 53
    """
    prompts = [setup.prompt] if prompts is None else [tuple(prompt) for prompt in prompts]
    if not prompts:
        raise InputError("there is no prompt; give at least one to decode")
    streams = setup.streams(seed)
    process, monitor = EProcess(level, setup.settings.gamma + 1), Monitor(setup.verifier.name, rows)
    for index in count():
        sequence = setup.but(prompt=prompts[index % len(prompts)]).start(streams, index)
        for number, step in enumerate(decode_rounds(sequence), 1):
            monitor(step)
            if number % ROUNDS == 0 or step.stop_reason is not None:
                process.update(monitor.take())
                yield process
