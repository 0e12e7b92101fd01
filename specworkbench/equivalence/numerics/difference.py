"""How far the rows a round used are from single-token rows, token by token, as an observer of rounds.

d_t = TV(row the round used, row of a fresh single-token forward). Beside it the floor: TV(row of a fresh forward of
gamma + 1 tokens at a time, the same single-token row), which is what the change of kernels alone does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from specworkbench.engine.loop import decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.round import Round
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.numerics.fresh import each_fresh_logits
from specworkbench.equivalence.numerics.settings import processed
from specworkbench.equivalence.numerics.verdict import RowVerdict, judge_rows
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError


class RowDifference:
    """Measures the rows of every k-th round; one observer for any number of sequences of one target and sampling.

    decoder.run(prompt, on_round=difference.on(target.encode(prompt)))

    The rows that led to emitted tokens are kept, (tokens, vocab) float64 a sequence, until the sequence ends or
    somebody asks; then its text goes forward twice with empty caches that only grow, token by token as plain decoding
    would, and gamma + 1 tokens at a time. Raises `InputError` for `every` below 1.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> fault = next(mutant for mutant in MUTANTS if mutant.name == "rejected_token_stays")
    >>> wrong = fault.apply(table_setup(length=24))
    >>> difference = watch(wrong, RowDifference(wrong.target))
    >>> difference.verdict().kind
    'cache'
    >>> difference.table("rejections")[["rejections", "tokens", "d_mean"]].round(3).head(3)
       rejections  tokens  d_mean
    0           0       8   0.000
    1           1       4   0.451
    2           2       1   0.627
    """

    def __init__(self, target: LanguageModel, sampling: SamplingSettings | None = None, every: int = 1):
        if every < 1:
            raise InputError(f"every is {every}; it must be at least 1 (1 measures every round)")
        self.target, self.sampling, self.every = target, sampling or SamplingSettings(), every
        self._watched: list[_Watched] = []
        self._rows: list[dict[str, float]] = []

    def on(self, prompt: Sequence[int]) -> Callable[[Round], None]:
        """What to call after each round of the sequence that begins with these tokens."""
        watched = _Watched(list(prompt), len(prompt))
        number = len(self._watched)
        self._watched.append(watched)

        def observe(step: Round) -> None:
            watched.take(step, number, keep=step.index % self.every == 0)
            if step.stop_reason is not None:
                self._settle(watched)

        return observe

    @property
    def lengths(self) -> list[int]:
        """Tokens emitted by each sequence, measured or not."""
        return [len(watched.tokens) - watched.prompt for watched in self._watched]

    def frame(self) -> pd.DataFrame:
        """One row a token that was measured, in the order of the output.

        sequence; round; rejections (before the round); index (in the output); slot (position in the round, from 1);
        since (tokens since the last rejection: 1 right after the corrected token, 0 where there was no rejection yet);
        d and floor (TV); noise and floor_noise: standard deviation over the vocabulary of the differences of logits,
        taken from the log probabilities; NaN where settings leave one token.
        """
        for watched in self._watched:
            self._settle(watched)
        return pd.DataFrame(self._rows, columns=COLUMNS)

    def table(self, by: str | Sequence[str] = ("slot", "since")) -> pd.DataFrame:
        """Mean and largest d, the floor and the logit noise by slot and tokens since the last rejection (or as asked).

        Columns: tokens (counted), d_mean, d_max, floor_mean, floor_max, noise, floor_noise (root mean squares).
        """
        squares = {name: self.frame()[name] ** 2 for name in ("noise", "floor_noise")}
        table = self.frame().assign(**squares).groupby([by] if isinstance(by, str) else list(by)).agg(
            tokens=("d", "size"), d_mean=("d", "mean"), d_max=("d", "max"), floor_mean=("floor", "mean"),
            floor_max=("floor", "max"), noise=("noise", "mean"), floor_noise=("floor_noise", "mean"),
        )  # fmt: skip
        return table.assign(**{name: np.sqrt(table[name]) for name in squares}).reset_index()

    def verdict(self, level: float = 1e-3) -> RowVerdict:
        """Rounding, or a fault, and where it shows; see `judge_rows`."""
        return judge_rows(self.frame(), str(self.target.dtype).removeprefix("torch."), level)

    def _settle(self, watched: _Watched) -> None:
        """Measure what is kept of a sequence, and let it go."""
        if not watched.kept:
            return
        tokens, start, kept = watched.tokens, watched.prompt, dict(watched.kept)
        fresh = (
            each_fresh_logits(self.target, tokens[:-1], len(tokens) - start, shape, prefill=start - 1)
            for shape in ("single", watched.gamma + 1)
        )
        for at, (single, block) in enumerate(zip(*fresh, strict=True), start):
            if at in kept:
                keys, used = kept[at]
                alone, among = (processed(logits, tokens[:at], self.sampling) for logits in (single, block))
                self._rows.append(keys | {
                    "d": tv(used, alone), "floor": tv(among, alone),
                    "noise": self._noise(used, alone), "floor_noise": self._noise(among, alone),
                })  # fmt: skip
        watched.kept.clear()

    def _noise(self, one: np.ndarray, other: np.ndarray) -> float:
        both = (one > 0) & (other > 0)
        if both.sum() < 2:
            return float("nan")
        return self.sampling.temperature * float(np.std(np.log(one[both]) - np.log(other[both])))


COLUMNS = (
    "sequence", "round", "rejections", "index", "slot", "since", "d", "floor", "noise", "floor_noise",
)  # fmt: skip


@dataclass
class _Watched:
    """A sequence under observation. kept: (place in tokens, (its keys, the row that led to it)), not measured yet."""

    tokens: list[int]
    prompt: int
    gamma: int = 0
    rejections: int = 0
    rejected_at: int = 0
    kept: list[tuple[int, tuple[dict[str, Any], np.ndarray]]] = field(default_factory=list)

    def take(self, step: Round, sequence: int, keep: bool) -> None:
        """Learn of a round; keep the rows that led to its emitted tokens where asked."""
        decision, first, self.gamma = step.decision, len(self.tokens), step.gamma
        if keep:
            rows = step.target_probs[[0, *(node + 1 for node in decision.nodes)][: decision.emitted]]
            for j, row in enumerate(rows.double().cpu().numpy()):
                keys = {
                    "sequence": sequence, "round": step.index, "rejections": self.rejections,
                    "index": first + j - self.prompt, "slot": j + 1,
                    "since": first + j - self.rejected_at if self.rejections else 0,
                }  # fmt: skip
                self.kept.append((first + j, (keys, row)))
        self.tokens += step.emitted
        if decision.outcome == "corrected" and decision.emitted > decision.accepted:
            self.rejections, self.rejected_at = self.rejections + 1, len(self.tokens) - 1


def tv(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation of two rows of probabilities.

    >>> tv(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return float(np.abs(one - other).sum() / 2)


def watch(setup: Setup, difference: RowDifference, seed: int = 0, sequences: int = 1) -> RowDifference:
    """Decode so many sequences of a setup under the eyes of the observer, and give it back.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(length=12)
    >>> difference = watch(setup, RowDifference(setup.target), sequences=2)
    >>> difference.lengths, float(difference.frame()["d"].max().round(9))
    ([12, 12], 0.0)
    """
    streams = setup.streams(seed)
    for index in range(sequences):
        observe = difference.on(setup.prompt)
        for step in decode_rounds(setup.start(streams, index)):
            observe(step)
    return difference
