"""`Evidence`: what tests of the sampler need of every decided token, as columns; the rows themselves are not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

GUIDED_ONLY = (
    "to q 0.02", "to q 0.1", "to q 0.5",
    "from q 0.02", "from q 0.1", "from q 0.5",
    "to overlap 0.2", "to overlap 0.8",
)  # fmt: skip
"""The alternatives that need a row q."""

ALTERNATIVES = (
    *GUIDED_ONLY,
    "to argmax 0.02", "to argmax 0.1", "to argmax 0.5",
    "to row before 0.1", "to row before 0.5",
    "temperature 0.7", "temperature 0.9", "temperature 1.1", "temperature 1.5",
)  # fmt: skip
"""Rows r that a wrong sampler may follow in place of p: kind and amount.

to q w: (1 - w) p + w q. from q w: max((1 + w) p - w q, 0), normalised. to overlap w: (1 - w) p + w min(p, q) / sum
min(p, q), what comes of rejected tokens drawn anew from p; p itself where p and q have no token in common. to argmax w:
(1 - w) p + w on the most probable token, the lowest of equals. to row before w: (1 - w) p + w of the target's row one
position earlier. temperature T: p^(1/T), normalised. Where there is no q (bonus, plain rounds), or no row before (the
first position of a round), the row is p itself, so that the token says nothing for or against it.
"""

CELLS = tuple(f"{weight}, {ranks}" for weight in ("q > p", "q <= p") for ranks in ("rank 1", "2-4", "5-16", "17-"))
"""The partition of the vocabulary that every row declares before its token is drawn.

By rank in the target's row, and by whether the draft gives the token more than the target (q <= p where there is no q).
"""


@dataclass(frozen=True)
class Evidence:
    """One row a decided token, in the order in which they were decided; all arrays have n rows.

    sequence, round: (n,) int64; slot: (n,) int64, position in the round, 1..gamma + 1; guided: (n,) bool, whether there
    was a row q (not so at a bonus, which comes after all that was proposed); token: (n,) int64; p: (n,) float64, the
    target's probability of the token, 0 for one outside the support.

    log_ratios: (n, len(ALTERNATIVES)) float64, log r(token)/p(token); +inf where p is 0.
    overweight_p: (n,) float64, p(A) of the draft-overweight set A = {x: q(x) > p(x)}; in_overweight: (n,) float64, 1
    where the token lies in A; both NaN where not guided.
    expected_accept: (n,) float64, the probability, before it is drawn, that the rule accepts the position's first
    guess: sum min(p, q) under the ratio rules, sum p q under equality; accepted: (n,) float64, 1 where that guess was
    accepted; both NaN where not guided or where the rule has no such probability (block, lossy rules).
    cell: (n,) int64 index into CELLS; cell_probs: (n, len(CELLS)) float64, the target's mass of each.

    >>> from specworkbench.equivalence import table_setup
    >>> from specworkbench.equivalence.power import evidence_of
    >>> evidence = next(evidence_of(table_setup(length=8, gamma=2)))
    >>> evidence.slot.tolist(), len(evidence[evidence.guided])
    ([1, 2, 3, 1, 2, 3, 1, 2], 5)
    """

    sequence: np.ndarray
    round: np.ndarray
    slot: np.ndarray
    guided: np.ndarray
    token: np.ndarray
    p: np.ndarray
    log_ratios: np.ndarray
    overweight_p: np.ndarray
    in_overweight: np.ndarray
    expected_accept: np.ndarray
    accepted: np.ndarray
    cell: np.ndarray
    cell_probs: np.ndarray

    def __len__(self) -> int:
        return len(self.token)

    def __getitem__(self, rows: np.ndarray | slice) -> Evidence:
        """Some of the rows: a slice, a mask or indices."""
        return Evidence(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Evidence]) -> Evidence:
        """All rows of the parts, in this order. Raises `ValueError` where there are no parts."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))
