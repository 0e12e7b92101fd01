"""What all benchmarks share: interleaved runs, medians and their ratios with intervals, what is printed and kept.

Every pair of prompt and seed is decoded by every contender in turn, the first place rotating, so that a drift of the
machine hits all alike and each stands in each place equally often.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from specworkbench.analysis.estimate import LEVEL, RESAMPLES, SEED, Estimate
from specworkbench.cli.screen import quiet_transformers
from specworkbench.errors import InputError
from specworkbench.experiments.files import to_json, write_whole
from specworkbench.workloads import Prompt

WIDTH = 120
"""Columns of what is printed, whether a terminal reads it or a file."""

Contender = Callable[[Prompt, int], int]
"""Decodes a prompt with a seed, from start to end, and gives the number of new tokens."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two contenders' medians, and what it says."""

    what: str
    over: str
    under: str


@dataclass(frozen=True)
class Times:
    """How long each contender took.

    pairs: (prompt id, seed), in order; tokens: how many each run gave; seconds: {name: (pairs,)}; warm_up: {name:
    (runs,) seconds of the runs before, which count nowhere; the first holds what is done once, such as compiling}.
    """

    pairs: list[tuple[str, int]]
    tokens: int
    seconds: dict[str, np.ndarray]
    warm_up: dict[str, np.ndarray]

    def median(self, name: str) -> float:
        """ms per token."""
        return float(np.median(self.seconds[name])) * 1e3 / self.tokens

    def fastest(self, name: str) -> float:
        """ms per token of the fastest run: far below the median where the machine was shared."""
        return float(np.min(self.seconds[name])) * 1e3 / self.tokens

    def ratio(self, over: str, under: str) -> Estimate:
        """Median of one over that of the other; both are resampled by the same pairs."""
        return ratio_of_medians(self.seconds[over], self.seconds[under])


def ratio_of_medians(over: np.ndarray, under: np.ndarray) -> Estimate:
    """median(over) / median(under), each (pairs,), with a bootstrap interval over pairs; none for fewer than two."""
    size, low, high = len(over), None, None
    if size > 1:
        drawn = np.random.default_rng([SEED, size]).integers(size, size=(RESAMPLES, size))
        ratios = np.median(over[drawn], axis=1) / np.median(under[drawn], axis=1)
        low, high = (float(end) for end in np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return Estimate(float(np.median(over) / np.median(under)), low, high, size)


def measure(
    contenders: dict[str, Contender],
    prompts: Sequence[Prompt],
    runs: int,
    tokens: int,
    warm_up: Sequence[Prompt] | None = None,
) -> Times:
    """Time every contender on every prompt with the seeds 0 to runs - 1.

    Before, each decodes the prompts of `warm_up`, the first prompt when not given. Raises `InputError` for a contender
    that does not give `tokens` new tokens: times of unequal work say nothing.
    """

    def seconds_of(name: str, prompt: Prompt, seed: int) -> float:
        started = perf_counter()
        given = contenders[name](prompt, seed)
        taken = perf_counter() - started
        if given != tokens:
            raise InputError(
                f"{name} gave {given} new tokens for the prompt {prompt.id!r}, not {tokens} as all were asked for; "
                "choose prompts and a number of new tokens that fit into its context"
            )
        return taken

    names = list(contenders)
    before: dict[str, list[float]] = {name: [] for name in names}
    for prompt in prompts[:1] if warm_up is None else warm_up:
        for name in names:
            before[name].append(seconds_of(name, prompt, 0))
    cells = [(prompt, seed) for seed in range(runs) for prompt in prompts]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn, (prompt, seed) in enumerate(tqdm(cells, unit="turn", dynamic_ncols=True)):
        for name in rotated(names, turn):
            seconds[name].append(seconds_of(name, prompt, seed))
    pairs = [(prompt.id, seed) for prompt, seed in cells]
    as_arrays = ({name: np.array(values) for name, values in taken.items()} for taken in (seconds, before))
    return Times(pairs, tokens, *as_arrays)


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """The order of a turn."""
    start = turn % len(names)
    return [*names[start:], *names[:start]]


class Results:
    """What a command measured: printed as it comes and, where a file is given, written whole after each part."""

    def __init__(self, environment: dict[str, Any], settings: dict[str, Any], file: str | None = None):
        self.file = None if file is None else Path(file)
        self.content: dict[str, Any] = {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "environment": environment,
            "settings": settings,
            "parts": [],
        }
        self._console = Console(highlight=False, width=WIDTH, soft_wrap=True)

    def add(self, title: str, times: Times, ratios: Sequence[Ratio]) -> None:
        """One table of medians and the ratios below it."""
        rows = [{"what": ratio.what, **_figures(times.ratio(ratio.over, ratio.under))} for ratio in ratios]
        self._show(title, times, rows)
        self.content["parts"].append(
            {
                "title": title,
                "tokens": times.tokens,
                "pairs": times.pairs,
                "seconds": {name: values.tolist() for name, values in times.seconds.items()},
                "warm_up_seconds": {name: values.tolist() for name, values in times.warm_up.items()},
                "median_ms_per_token": {name: times.median(name) for name in times.seconds},
                "ratios": rows,
            }
        )
        self._write()

    def note(self, name: str, value: Any, sentence: str) -> None:
        """A figure beside the times."""
        self._console.print(sentence)
        self.content.setdefault("notes", {})[name] = value
        self._write()

    def close(self) -> None:
        """Print what the figures depend on."""
        self.content["peak_memory"] = peak_memory()
        environment = ", ".join(f"{name} {value}" for name, value in self.content["environment"].items())
        peaks = ", ".join(f"{name} {size / 2**30:.2f} GiB" for name, size in self.content["peak_memory"].items())
        self._console.print(f"{environment}\npeak memory of this process, all contenders in it together: {peaks}")
        self._write()

    def _show(self, title: str, times: Times, rows: list[dict[str, Any]]) -> None:
        self._console.print(title)
        table = Table("contender", "ms per token (median)", "fastest", "tokens/s", "first run (s)")
        for name in times.seconds:
            median, fastest = times.median(name), times.fastest(name)
            table.add_row(
                name, f"{median:.2f}", f"{fastest:.2f}", f"{1e3 / median:.1f}", f"{times.warm_up[name][0]:.1f}"
            )
        self._console.print(table)
        for row in rows:
            ends = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
            self._console.print(f"{row['what']}: {row['value']:.2f}{ends}, {row['pairs']} pairs")

    def _write(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, to_json(self.content, indent=1) + "\n")


def _figures(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "pairs": estimate.n}


def peak_memory() -> dict[str, int]:
    """Most bytes held by this process so far: resident, and those of torch on the GPU where there is one."""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["cuda"] = torch.cuda.max_memory_allocated()
    return peak


def start(main: Callable[[], None]) -> None:
    """Run a command; bad input becomes a sentence on standard error."""
    quiet_transformers()
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
