"""How far the rows a round used are from single-token rows, token by token, as an observer of rounds.

d_t = TV(row the round used, row of a fresh single-token forward). Beside it the floor: TV(row of a fresh forward of
gamma + 1 tokens at a time, the same single-token row), which is what the change of kernels alone does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from specworkbench.engine.loop import Round, decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.numerics.fresh import fresh_rows
from specworkbench.equivalence.numerics.verdict import RowVerdict, judge_rows
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError

KEYS = ("slot", "since")


@dataclass
class RowDifference:
    """Measures the rows of every k-th round; one observer for any number of sequences of one target and sampling.

    decoder.run(prompt, on_round=difference.on(target.encode(prompt)))

    rows: a dict an emitted token of a measured round: sequence; round; rejections (before the round); slot (position in
    the round, from 1); since (tokens since the last rejection: 1 right after the corrected token, 0 where there was no
    rejection yet); d and floor (TV); noise and floor_noise (standard deviation over the vocabulary of the differences of log probabilities,
    times the temperature: that of the logits; NaN where one token is left). Raises `InputError` for `every` below 1.
    """

    target: LanguageModel
    sampling: SamplingSettings
    every: int = 1
    rows: list[dict[str, float]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"every is {self.every}; it must be at least 1 (1 measures every round)")

    def on(self, prompt: Sequence[int]) -> Callable[[Round], None]:
        """What to call after each round of the sequence that begins with these tokens."""
        tokens, number, rejected_at, rejections = list(prompt), len(self.lengths), 0, 0
        self.lengths.append(0)

        def observe(step: Round) -> None:
            nonlocal rejected_at, rejections
            if step.index % self.every == 0:
                keys = {"sequence": number, "round": step.index, "rejections": rejections}
                since = len(tokens) - rejected_at if rejections else 0
                self._measure(step, tokens, len(prompt), keys, since)
            tokens.extend(step.emitted)
            self.lengths[number] += len(step.emitted)
            if step.decision.outcome == "corrected" and step.decision.emitted > step.decision.accepted:
                rejected_at, rejections = len(tokens) - 1, rejections + 1

        return observe

    def _measure(self, step: Round, tokens: list[int], prompt: int, keys: dict[str, int], since: int) -> None:
        kept = step.decision.kept[: step.decision.emitted - 1]
        used = step.target_probs[[0, *(node + 1 for node in step.decision.nodes[: len(kept)])]]
        used = used.double().cpu().numpy()
        single, block = (
            fresh_rows(tokens, kept, self.target, self.sampling, shape=shape, prefill=prompt - 1)
            for shape in ("single", step.gamma + 1)
        )
        for j, (row, alone, among) in enumerate(zip(used, single, block, strict=True)):
            self.rows.append({
                **keys, "slot": j + 1, "since": since + j if since else 0,
                "d": tv(row, alone), "floor": tv(among, alone),
                "noise": self._noise(row, alone), "floor_noise": self._noise(among, alone),
            })  # fmt: skip

    def _noise(self, one: np.ndarray, other: np.ndarray) -> float:
        both = (one > 0) & (other > 0)
        if both.sum() < 2:
            return float("nan")
        return self.sampling.temperature * float(np.std(np.log(one[both]) - np.log(other[both])))

    def frame(self) -> pd.DataFrame:
        """One row an emitted token that was measured."""
        return pd.DataFrame(self.rows)

    def table(self, by: str | Sequence[str] = KEYS) -> pd.DataFrame:
        """Mean and largest d, the floor and the logit noise by slot and tokens since the last rejection (or as asked).

        Columns: tokens (counted), d_mean, d_max, floor_mean, floor_max, noise, floor_noise (root mean squares).
        """
        by = [by] if isinstance(by, str) else list(by)
        found = self.frame().assign(noise=lambda f: f["noise"] ** 2, floor_noise=lambda f: f["floor_noise"] ** 2)
        table = found.groupby(by).agg(
            tokens=("d", "size"), d_mean=("d", "mean"), d_max=("d", "max"), floor_mean=("floor", "mean"),
            floor_max=("floor", "max"), noise=("noise", "mean"), floor_noise=("floor_noise", "mean"),
        )  # fmt: skip
        return table.assign(noise=np.sqrt(table["noise"]), floor_noise=np.sqrt(table["floor_noise"])).reset_index()

    def verdict(self, level: float = 1e-3) -> RowVerdict:
        """Rounding, or a fault, and where it shows; see `judge_rows`."""
        return judge_rows(self.frame(), str(self.target.dtype).removeprefix("torch."), level)


def tv(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation of two rows of probabilities."""
    return float(np.abs(one - other).sum() / 2)


def watch(setup: Setup, difference: RowDifference, seed: int = 0, sequences: int = 1) -> RowDifference:
    """Decode so many sequences of a setup under the eyes of the observer, and give it back."""
    streams = setup.streams(seed)
    for index in range(sequences):
        observe = difference.on(setup.prompt)
        for step in decode_rounds(setup.start(streams, index)):
            observe(step)
    return difference
