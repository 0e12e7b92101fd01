"""Forced uniforms: what comes out where a uniform is 0, or the largest number below 1, which chance never brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from specworkbench.engine.rng import STREAMS, RoundUniforms, UniformChooser, work_dtype
from specworkbench.equivalence.choosers import WiredStreams
from specworkbench.equivalence.law import product_law
from specworkbench.equivalence.setup import Setup, run

EDGES = (0.0, float(np.nextafter(1.0, 0.0)))


class ForcedStreams(WiredStreams):
    """Streams of one value each. values: {stream: uniform}; parts: as of `WiredStreams`, after the seed."""

    def __init__(self, values: Mapping[str, float], *parts: Any):
        super().__init__(0, *parts)
        self.values = values

    def for_proposer(self, sequence: int, round_index: int, most: int) -> tuple[UniformChooser, RoundUniforms]:
        """See `Streams.for_proposer`."""
        draft = self._to_device(np.full(most, self.values["draft"]))
        return UniformChooser(None, draft), RoundUniforms(draft)

    def _values(self, sequence: int, round_index: int, cells: Sequence[tuple[str, int]]) -> np.ndarray:
        return np.array([self.values[stream] for stream, _ in cells])


def outside_support(setup: Setup) -> list[tuple[int, ...]]:
    """Outputs that the target never gives, of those that come where every stream holds one of `EDGES`.

    All such pairings of streams and edges, after the prompt and after those that differ from it in the last token.
    """
    found = []
    for last in range(setup.target.vocab_size):
        tried = replace(setup, prompt=(*setup.prompt[:-1], last))
        law = product_law(tried.target, tried.prompt, tried.settings)
        for edges in product(EDGES, repeat=len(STREAMS)):
            values = dict(zip(STREAMS, edges, strict=True))
            device = tried.target.device
            output = run(tried, ForcedStreams(values, device, work_dtype(device), tried.wiring, tried.chooser))
            found += [output] if output not in law else []
    return found
