"""Our own decoding, drawn from as any other engine is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import make_proposer
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.setup import Setup, run


class OurDecoding:
    """Draws outputs by the decode loop: plainly, or with a proposer and the rule for it.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup()
    >>> engine = OurDecoding(setup.target, setup.settings, setup.proposer)
    >>> engine.draw(setup.prompt, 3, seed=1)
    [(0, 1, 3), (3, 1, 4), (3, 4, 0)]
    >>> engine.draw(setup.prompt, 1, seed=1, first=2)
    [(3, 4, 0)]
    """

    def __init__(
        self,
        target: LanguageModel,
        settings: DecodeSettings | None = None,
        proposer: Proposer | None = None,
        rule: Verifier | None = None,
    ):
        self.target, self.settings = target, settings or DecodeSettings()
        self.proposer = proposer or make_proposer("none")
        self.rule = rule or make_verifier(None, self.settings.sampling, self.proposer)

    def draw(
        self,
        prompt_ids: Sequence[int],
        count: int,
        *,
        seed: int = 0,
        first: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[tuple[int, ...]]:
        """`count` outputs; output i depends on the seed, the prompt and first + i alone. progress: (drawn, count)."""
        setup = Setup(self.target, tuple(prompt_ids), self.settings, self.proposer, self.rule)
        own = np.random.SeedSequence((seed, *prompt_ids)).generate_state(1, np.uint64)
        streams = setup.streams(int(own[0]))
        drawn = []
        for index in range(first, first + count):
            drawn.append(run(setup, streams, index))
            if progress is not None:
                progress(len(drawn), count)
        return drawn
