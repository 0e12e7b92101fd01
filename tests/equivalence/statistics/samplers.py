"""Single positions of a speculative sampler, right and wrong, on random rows p and q."""

from dataclasses import dataclass, replace

import numpy as np

from tests.equivalence.statistics.rows import evidence_from_rows

SLOTS = 4
"""gamma + 1; the last slot is the bonus and has no row q."""


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def normalised(rows):
    return rows / rows.sum(axis=1, keepdims=True)


def random_pairs(rows=200, vocab=50, seed=0, spread=2.0, difference=0.8):
    """p, q: (rows, vocab). Logits normal with `spread`; those of q moved by a normal `difference`."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (rows, vocab))
    return softmax(logits), softmax(logits + rng.normal(0, difference, (rows, vocab)))


def top_k(rows, k):
    return normalised(np.where(rows >= np.sort(rows, axis=1)[:, [-k]], rows, 0.0))


def draw(rows, rng):
    """One token of each row."""
    below = rng.random((len(rows), 1)) >= np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
    return below.sum(axis=1)


@dataclass(frozen=True)
class Sampler:
    """The ratio rule at one position, with its faults as settings.

    drawn: what of q the guess is drawn from; factor: of the ratio; rejected: the row for a rejected token; bonus: the
    row where there is no guess.
    """

    drawn: object = lambda q: q
    factor: float = 1.0
    rejected: object = lambda p, q: np.maximum(p - q, 0.0)
    bonus: object = lambda p, q: p

    def accepted(self, p, q):
        """(rows, vocab) probability that the token is guessed and accepted."""
        return self.drawn(q) * np.minimum(1.0, self.factor * p / q)

    def law(self, p, q, guided):
        """(rows, vocab) law of the token."""
        accepted, corrected = self.accepted(p, q), self.rejected(p, q)
        whole = accepted + (1 - accepted.sum(axis=1, keepdims=True)) * normalised(corrected)
        return np.where(guided[:, None], whole, self.bonus(p, q))


RIGHT = Sampler()
WRONG = {
    "resample from p": Sampler(rejected=lambda p, q: p),
    "raw q after top-k": Sampler(drawn=lambda q: top_k(q, 20)),
    "bonus from q": Sampler(bonus=lambda p, q: q),
    "ratio x1.1": Sampler(factor=1.1),
    "ratio x1.25": Sampler(factor=1.25),
    "ratio /1.1": Sampler(factor=1 / 1.1),
    "residual |p - q|": Sampler(rejected=lambda p, q: np.abs(p - q)),
    "residual q - p": Sampler(rejected=lambda p, q: np.maximum(q - p, 0.0)),
    "accept always": Sampler(factor=np.inf),
    "temperature on the bonus": Sampler(bonus=lambda p, q: normalised(p**1.4)),
    "top-k on the bonus": Sampler(bonus=lambda p, q: top_k(p, 10)),
}


class Bench:
    """Rows p and q, each with a slot of its own, and the evidence of every token of every row, ready to be picked."""

    def __init__(self, p, q):
        rows, vocab = p.shape
        self.p, self.q = p, q
        self.slots = np.arange(rows) % SLOTS + 1
        self.guided = self.slots < SLOTS
        before = np.where(self.slots[:, None] > 1, np.roll(p, 1, axis=0), np.nan)
        every = np.repeat(np.arange(rows), vocab)
        expected = np.where(self.guided, np.minimum(p, q).sum(axis=1), np.nan)
        self.table = evidence_from_rows(
            p[every], q[every], np.tile(np.arange(vocab), rows), self.slots[every], self.guided[every],
            row_before=before[every], expected=expected[every],
        )  # fmt: skip
        self._laws = {}

    def law(self, sampler):
        """(rows * vocab,) probability of each row of the table, and that its token was then an accepted guess."""
        if id(sampler) not in self._laws:
            law = sampler.law(self.p, self.q, self.guided)
            accepted = np.divide(sampler.accepted(self.p, self.q), law, out=np.zeros_like(law), where=law > 0)
            self._laws[id(sampler)] = law.ravel() / len(law), np.where(self.guided[:, None], accepted, np.nan).ravel()
        return self._laws[id(sampler)]

    def evidence(self, sampler, n, rng):
        """`Evidence` of n tokens of random rows."""
        law, accepted = self.law(sampler)
        drawn = np.minimum(np.searchsorted(np.cumsum(law), rng.random(n), side="right"), len(law) - 1)
        flags = np.where(np.isnan(accepted[drawn]), np.nan, rng.random(n) < accepted[drawn])
        return replace(self.table[drawn], accepted=flags)

    def tv(self, sampler, partition):
        """The mean bias over a partition, exactly: half the L1 distance of the shares of its cells."""
        excess = self.law(sampler)[0] - self.law(RIGHT)[0]
        if partition == "cells":
            return np.abs(np.bincount(self.table.cell, excess)).sum() / 2
        guided = self.table.guided
        return abs(np.sum(excess[guided] * self.table.in_overweight[guided])) / self.guided.mean()
