"""How long the forms of a product take: timed in turn on weights that are not in the processor's cache.

A model's weights are not in the cache either when their turn comes. The least time of a form counts: other work
on the machine can only add to it. A form whose result differs from the plain one by more than rounding is not timed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import cycle
from time import perf_counter, thread_time

import torch
from torch.nn import functional

from specworkbench.engine.products import BLOCKS_PER_THREAD, FORMS, ROWS, Form

Shape = tuple[int, int]
"""(out, in) of a weight."""
Times = dict[int, dict[str, float]]
"""{rows: {form: microseconds}}, for each of ROWS; forms that cannot compute the shape are missing."""
Clock = Callable[[], float]
"""Seconds."""

COLD_BYTES, LAYERS = 3 * 2**24, 16
"""Forms are timed on so many bytes of weights, at least two of them, shortened to half of that, and at most LAYERS."""
TURNS, LEAST_TURNS, SECONDS = 5, 3, 0.005
"""How often a form is timed, and how often at least where that takes longer than SECONDS for a number of rows."""
HOPELESS = 2.5
"""A form that takes so many times as long as the fastest is timed only once."""
LEAST_WORKED = 0.9
"""Where this thread is running for a smaller share of the time, the machine is busy and its times say little."""
ROUNDING = 8.0
"""Roundings of the product of the two rows' norms by which a form may differ from the plain product."""


@torch.inference_mode()
def measured(
    shape: Shape, dtype: torch.dtype, threads: int, forms: Mapping[str, Form] = FORMS,
    clock: Clock = perf_counter, working: Clock = thread_time,
) -> Times | None:  # fmt: skip
    """Time the forms on random weights of a shape, on so many threads; None on a machine that is too busy.

    clock: time passed; working: that in which this thread was running. A single thread is timed by the latter, which
    can be told on a busy machine too.
    """
    with _on_threads(threads):
        return _measured(shape, dtype, forms, clock if threads > 1 else working, working)


def _measured(
    shape: Shape, dtype: torch.dtype, forms: Mapping[str, Form], clock: Clock, working: Clock
) -> Times | None:
    weights = cold_weights(shape, dtype)
    operands = {name: prepared for name, form in forms.items() if (prepared := _prepared(form, weights))}
    next_weight = cycle([*range(1, len(weights)), 0])  # the first has just been compared
    times, started, before = {}, clock(), working()
    for rows in ROWS:
        x = _random(rows * shape[1], dtype, seed=1).view(rows, shape[1])
        agrees = _comparison(x, weights[0])
        right = [name for name in operands if agrees(forms[name], operands[name][0])]
        runs = {name: partial(_seconds, forms[name], x, operands[name], clock) for name in right}
        times[rows] = {name: _microseconds(least) for name, least in _race(runs, next_weight, clock).items()}
        if working() - before < LEAST_WORKED * (clock() - started):
            return None
    return times


@contextlib.contextmanager
def _on_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    if threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def forget_weights() -> None:
    """Give back the memory of the random weights."""
    _pool.cache_clear()


def cold_weights(shape: Shape, dtype: torch.dtype) -> list[torch.Tensor]:
    """Random weights (out, in), 2 to LAYERS, of COLD_BYTES together where so many come to that.

    A larger weight has fewer rows, but can be divided into the same blocks.
    """
    out, width = shape
    pool, step = _pool(dtype), BLOCKS_PER_THREAD * torch.get_num_threads()
    excess = out - pool.numel() // 2 // width
    if excess > 0:
        out -= min(math.ceil(excess / step), (out - 1) // step) * step
    apart = math.ceil(out * width / 1024) * 1024
    count = min(pool.numel() // apart, LAYERS)
    if count < 2:
        return [_random(out * width, dtype).view(out, width) for _ in range(2)]
    return [pool[start : start + out * width].view(out, width) for start in range(0, count * apart, apart)]


@lru_cache(maxsize=1)
def _pool(dtype: torch.dtype) -> torch.Tensor:
    return _random(COLD_BYTES // dtype.itemsize, dtype)


def _random(count: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """(count,) normal entries, from a generator of their own; after 2**20 they repeat."""
    drawn = torch.randn(min(count, 2**20), generator=torch.Generator().manual_seed(seed)).to(dtype)
    return drawn.repeat(math.ceil(count / len(drawn)))[:count]


def _prepared(form: Form, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Empty where the form does not take such weights."""
    try:
        return [form.prepare(weight) for weight in weights]
    except (RuntimeError, ValueError, AttributeError):
        return []


def _comparison(x: torch.Tensor, weight: torch.Tensor) -> Callable[[Form, torch.Tensor], bool]:
    """Tells whether a form computes at all, and gives the plain product up to the rounding of its sums."""
    plain = functional.linear(x, weight)
    bound = ROUNDING * torch.finfo(x.dtype).eps * x.norm(dim=1).unsqueeze(1) * weight.norm(dim=1)

    def agrees(form: Form, operand: torch.Tensor) -> bool:
        try:
            given = form.compute(x, operand, None)
        except (RuntimeError, AttributeError):
            return False
        return given.shape == plain.shape and bool(((given - plain).abs() <= bound).all())

    return agrees


def _seconds(form: Form, x: torch.Tensor, operands: Sequence[torch.Tensor], clock: Clock, number: int) -> float:
    operand, begun = operands[number], clock()
    form.compute(x, operand, None)
    return clock() - begun


def _microseconds(seconds: float) -> float:
    return max(round(seconds * 1e6, 2), 0.01)


def _race(runs: Mapping[str, Callable[[int], float]], next_weight: Iterator[int], clock: Clock) -> dict[str, float]:
    """The least seconds of each form; they run in turn, each on the next weight."""
    least, started = dict.fromkeys(runs, math.inf), clock()
    for turn in range(1, TURNS + 1):
        limit = HOPELESS * min(least.values()) if turn > 1 else math.inf
        for name, run in runs.items():
            if least[name] <= limit:
                least[name] = min(least[name], run(next(next_weight)))
        if turn >= LEAST_TURNS and clock() - started > SECONDS:
            break
    return least
