"""Randomness: named streams of uniforms, and the chooser through which every random decision goes.

A counter-based generator (Philox) is keyed by the seed; its counter holds sequence, round and position, and the four
words of one block of it are the four streams. So a draw depends on (seed, stream, sequence, round, position) alone: a
trace replays bit for bit, whatever else was drawn before, and no draw is used twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

_OWN = threading.local()
"""Each thread's generator: to place one anew takes a fraction of making one."""
AHEAD = 16
"""Rounds whose uniforms are made together."""
STREAMS = ("draft", "accept", "residual", "bonus")


class Chooser(Protocol):
    """The two random decisions there are, as tensor methods (no branch on a device value).

    The production chooser compares recorded uniforms; the exact test's chooser branches over all outcomes.
    """

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        """probs: (n,) acceptance probabilities. Returns (n,) bools."""

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        """probs: (rows, vocab) weights, normalised here. Returns (rows,) indices.

        `at`: (rows,) positions in the round, 0-based, whose uniforms to use; the next unused ones when not given.
        """


def uniforms(seed: int, sequence: int, round_index: int, count: int) -> np.ndarray:
    """(count, 4) float64 uniforms in [0, 1) of one round: a row for each position, a column for each of `STREAMS`."""
    if not hasattr(_OWN, "philox"):
        _OWN.philox = np.random.Philox(0)
        _OWN.generator = np.random.Generator(_OWN.philox)
        _OWN.state = _OWN.philox.state | {"buffer_pos": 4}  # of no block is anything left
    words = _OWN.state["state"]
    words["key"][:] = seed & 0xFFFFFFFFFFFFFFFF, 0
    words["counter"][:] = 0, 0, round_index, sequence
    _OWN.philox.state = _OWN.state
    return _OWN.generator.random((count, len(STREAMS)))


def inverse_cdf(probs: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Draw one index a row by inverse CDF: the first index whose cumulative weight exceeds u times the total.

    probs: (rows, vocab) non-negative weights, not necessarily normalised; u: (rows,) uniforms in [0, 1). Returns
    (rows,) int64. An entry of weight zero is never drawn, at u = 0 neither. Rows with NaN give an index in range.
    """
    cdf = probs.cumsum(-1)
    total = cdf[:, -1:]
    threshold = torch.minimum(u.unsqueeze(-1) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cdf, threshold, right=True).squeeze(-1).clamp(max=probs.shape[-1] - 1)


DrawRow = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Rows of weights and a uniform for each, to an index of each: what `inverse_cdf` computes."""


class UniformChooser:
    """The production chooser: one uniform an entry; accept iff u < prob, draw by inverse CDF.

    `accept_uniforms`: (n,) or None where nothing is to be accepted; `draw_uniforms`: (m,).
    """

    def __init__(
        self, accept_uniforms: torch.Tensor | None, draw_uniforms: torch.Tensor, draw_row: DrawRow = inverse_cdf
    ):
        self.accept_uniforms = accept_uniforms
        self.draw_uniforms = draw_uniforms
        self._draw_row = draw_row
        self._accepted = 0
        self._drawn = 0

    def accept(self, probs: torch.Tensor) -> torch.Tensor:
        start, self._accepted = self._accepted, self._accepted + probs.shape[0]
        return self.accept_uniforms[start : self._accepted] < probs

    def draw(self, probs: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        return self._draw_row(probs, self.next(probs.shape[0]) if at is None else self.draw_uniforms[at])

    def next(self, count: int) -> torch.Tensor:
        """(count,) uniforms to draw with that are unused; now they are used."""
        start, self._drawn = self._drawn, self._drawn + count
        return self.draw_uniforms[start : self._drawn]


@dataclass(frozen=True)
class RoundUniforms:
    """The uniforms of a round, on the device: draft (most,), accept (n,), drawn (n + 1,) (residual.., bonus).

    pool: (5, at least most + 1), all that the round may need before n, the number proposed, is known: a row for each of
    `STREAMS`, and last what is drawn with when as many are proposed as there is room for.
    """

    draft: torch.Tensor
    accept: torch.Tensor | None = None
    drawn: torch.Tensor | None = None
    pool: torch.Tensor | None = None


class Streams:
    """The source of choosers for real decoding: uniforms of the four streams, moved to the device some rounds ahead.

    draw_row: `inverse_cdf`, or the same in a compiled form.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype, draw_row: DrawRow = inverse_cdf):
        self.seed, self.device, self.dtype, self.draw_row = seed, device, dtype, draw_row
        self._ahead: tuple[int, int, torch.Tensor] | None = None  # a sequence, a round, the pools from that round on

    def for_proposer(self, sequence: int, round_index: int, most: int) -> tuple[Chooser, RoundUniforms]:
        """Chooser of the draft stream for a round of at most `most` guesses; the rule's uniforms come along."""
        pool = self._pool(sequence, round_index, most + 1)
        draft = pool[0, :most]
        return UniformChooser(None, draft, self.draw_row), RoundUniforms(draft, pool=pool)

    def for_verifier(
        self, sequence: int, round_index: int, proposed: int, drafted: RoundUniforms
    ) -> tuple[Chooser, RoundUniforms]:
        """Chooser of the accept stream (nodes 1..n), the residual stream (rows 1..n) and the bonus stream (n + 1)."""
        pool = drafted.pool
        full = proposed + 1 == pool.shape[1]
        drawn = pool[4] if full else torch.cat([pool[2, :proposed], pool[3, proposed : proposed + 1]])
        used = RoundUniforms(drafted.draft, pool[1, :proposed], drawn)
        return UniformChooser(used.accept, used.drawn, self.draw_row), used

    def _pool(self, sequence: int, round_index: int, count: int) -> torch.Tensor:
        """(5, at least count), see `RoundUniforms`."""
        if self._ahead is not None:
            of, first, pools = self._ahead
            if of == sequence and 0 <= round_index - first < AHEAD and pools.shape[-1] >= count:
                return pools[round_index - first]
        values = np.empty((AHEAD, len(STREAMS) + 1, count))
        for ahead in range(AHEAD):
            values[ahead, :4] = uniforms(self.seed, sequence, round_index + ahead, count).T
        values[:, 4, :-1], values[:, 4, -1] = values[:, 2, :-1], values[:, 3, -1]
        pools = self._to_device(values)
        self._ahead = sequence, round_index, pools
        return pools[0]

    def _to_device(self, values: np.ndarray) -> torch.Tensor:
        if self.dtype == torch.float32:  # rounding to float32 must not reach 1.0
            values = np.minimum(values.astype(np.float32), np.nextafter(np.float32(1), np.float32(0)))
        return torch.from_numpy(values).to(self.device, self.dtype, non_blocking=True)


def work_dtype(device: torch.device | str) -> torch.dtype:
    """dtype of all probabilities: float64, or float32 where the device lacks it (mps)."""
    return torch.float32 if torch.device(device).type == "mps" else torch.float64
