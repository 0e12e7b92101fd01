"""What sampling settings do to one row of logits, written a second time: row by row, in numpy, by sorting once.

The engine's `Sampler` is what is being checked, so nothing here is shared with it but the settings themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from specworkbench.engine.sampling import SamplingSettings


def penalised(logits: np.ndarray, before: Iterable[int], settings: SamplingSettings) -> np.ndarray:
    """(vocab,) float64 scores: the logits, with the repetition penalty on every token of `before`.

    >>> penalised(np.array([2.0, -2.0, 1.0]), [0, 1], SamplingSettings(repetition_penalty=2.0))
    array([ 1., -4.,  1.])
    """
    scores = np.array(logits, dtype=np.float64)
    seen = np.unique(np.fromiter(before, dtype=np.int64))
    factor = settings.repetition_penalty
    scores[seen] = np.where(scores[seen] < 0, scores[seen] * factor, scores[seen] / factor)
    return scores


def processed(logits: np.ndarray, before: Iterable[int], settings: SamplingSettings) -> np.ndarray:
    """(vocab,) probabilities of the row after the tokens `before` (prompt, output, and those inside the block).

    >>> processed(np.log([0.5, 0.3, 0.2]), [], SamplingSettings(top_k=2))
    array([0.625, 0.375, 0.   ])
    """
    scores = penalised(logits, before, settings)
    if settings.greedy:
        return np.eye(1, len(scores), int(np.argmax(scores)))[0]
    scores /= settings.temperature
    falling = np.argsort(-scores, kind="stable")
    if 0 < settings.top_k < len(scores):
        scores[scores < scores[falling[settings.top_k - 1]]] = -np.inf
    if settings.top_p < 1.0:
        mass = _softmax(scores)[falling]
        scores[falling[np.cumsum(mass) - mass >= settings.top_p]] = -np.inf
    probs = _softmax(scores)
    probs[probs < settings.min_p * probs.max()] = 0.0
    return probs / probs.sum()


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()
