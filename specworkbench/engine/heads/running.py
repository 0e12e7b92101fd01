"""A feature head at work on one sequence: which entries its caches hold, and how they grow and shrink with the guesses.

Entry t of a module stands for position t: a token further on, and a feature of position t. With L tokens in the context
the target has given features of positions 0 .. L - 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specworkbench.engine.contracts import Context
from specworkbench.engine.heads.blocks import Angles
from specworkbench.engine.heads.feature import FeatureHead

if TYPE_CHECKING:
    from specworkbench.engine.proposers.trees import Frontier


class Recurrent:
    """One module that goes on from its own outputs. Entries made of guesses are always taken back: the target's true
    features replace its own.

    forwards, positions: work done so far, and rows over it.
    """

    def __init__(self, head: FeatureHead):
        self.head, self.cache = head, head.new_caches()[0]
        self.forwards = self.positions = 0
        self._features = self._headed = torch.empty(0)  # of the last step: what it gave
        self._true = 0

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def enter(self, context: Context) -> torch.Tensor | None:
        """Enter the positions whose features are new; (1, width) of what the head reads for the first guess.

        None where there is no feature yet.
        """
        rows, inputs = new_features(context, self.head, self._true)
        if inputs.shape[0]:
            features, headed = self._step(inputs, rows, self.head.rotary.span(self._true, inputs.shape[0], rows))
            self._features, self._headed = features[-1:], headed[-1:]
            self._true = self.cache.length
        return self._headed if self._true else None

    def advance(self, guess: torch.Tensor) -> torch.Tensor:
        """One step further: guess (1,) follows; (1, width) for the next guess."""
        angles = self.head.rotary.span(self.cache.length, 1, self._features)
        self._features, headed = self._step(guess, self._features, angles)
        return headed

    def branch(self, frontier: Frontier, depth: int) -> torch.Tensor:
        """One level further: a frontier's guesses follow, `depth` deep in the tree; (m, width) for their children."""
        m = frontier.tokens.shape[0]
        mask = torch.cat([frontier.visible.new_ones(m, self._true), frontier.visible], dim=-1)
        angles = self.head.rotary.span(self._true + depth - 1, 1, self._features)
        self._features, headed = self._step(frontier.tokens, self._features[frontier.parents], angles, mask)
        return headed

    def keep(self, accepted: int) -> None:
        """Take the guesses' entries back."""
        self.cache.keep(self._true)

    def _step(
        self, ids: torch.Tensor, features: torch.Tensor, angles: Angles, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """angles: of the positions, or of one position that all have."""
        self.forwards, self.positions = self.forwards + 1, self.positions + ids.shape[0]
        return self.head.stages[0](self.head.embedded(ids), features, angles, self.cache.attend(mask))


class Chained:
    """Several modules, one a guess: module k at position t reads token t + 1 + k and the output of module k - 1 there.

    So an entry that was made of a guess stays when the guess was accepted.
    """

    def __init__(self, head: FeatureHead):
        self.head = head
        self.caches = head.new_caches()
        self.forwards = self.positions = 0
        self._outputs = [torch.empty(0)] * len(head.stages)
        self._starts = [0] * len(head.stages)  # the position of each output's first row
        self._ids, self._headed, self._total, self._module = torch.empty(0), torch.empty(0), 0, 0

    @property
    def nbytes(self) -> int:
        return sum(cache.nbytes for cache in self.caches)

    def enter(self, context: Context) -> torch.Tensor | None:
        """See `Recurrent.enter`. The later modules follow when it is their turn."""
        rows, inputs = new_features(context, self.head, self._total)
        self._module = 0
        if inputs.shape[0]:
            self._total += inputs.shape[0]
            self._ids = context.ids()
            self._headed = self._run(0, rows)[-1:]
        return self._headed if self._total else None

    def catch_up(self) -> None:
        """Bring the later modules to what the context alone determines: before any guess, for a prompt."""
        for module in range(1, len(self.caches)):
            self._run(module, self._waiting(module)[: self._total - module - self.caches[module].length])

    def advance(self, guess: torch.Tensor) -> torch.Tensor:
        """The next module's turn: guess (1,) follows; (1, width) for the guess after it."""
        self._module += 1
        self._ids = torch.cat([self._ids, guess])
        return self._run(self._module, self._waiting(self._module))[-1:]

    def keep(self, accepted: int) -> None:
        """Drop the entries made of a guess that was not among the first `accepted`, and outputs no module waits for."""
        self._ids = self._ids[: self._total + 1 + accepted]
        for module, cache in enumerate(self.caches):
            cache.keep(max(0, self._total - module + accepted))
        for module, cache in enumerate(self.caches):
            following = self.caches[min(module + 1, len(self.caches) - 1)].length
            kept = self._outputs[module][following - self._starts[module] : cache.length - self._starts[module]]
            self._outputs[module], self._starts[module] = kept, following

    def _waiting(self, module: int) -> torch.Tensor:
        """Outputs of the module before that this one has not read, (m, width)."""
        return self._outputs[module - 1][self.caches[module].length - self._starts[module - 1] :]

    def _run(self, module: int, feature: torch.Tensor) -> torch.Tensor:
        """Enter the next positions into a module; (m, width) of what the head reads."""
        n, cache = feature.shape[0], self.caches[module]
        if n <= 0:
            return self._headed
        start = cache.length
        angles = self.head.rotary.span(start, n, feature)
        embedded = self.head.embedded(self._ids[start + 1 + module : start + n + 1 + module], module)
        output, headed = self.head.stages[module](embedded, feature, angles, cache.attend())
        waiting = self._outputs[module]
        self._outputs[module] = torch.cat([waiting, output]) if waiting.shape[0] else output
        if not waiting.shape[0]:
            self._starts[module] = start
        self.forwards, self.positions = self.forwards + 1, self.positions + n
        return headed


def new_features(context: Context, head: FeatureHead, entered: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (m, width) of the positions from `entered` on, and (m,) the token after each."""
    last = len(context.tokens) - 1
    m = last - entered
    given = next(iter(context.hidden.values())).shape[0] if context.hidden else 0
    if m == 0 or given < m:
        return torch.empty(0, device=context.device), context.ids(len(context.tokens))
    rows = head.features({layer: hidden[-m:] for layer, hidden in context.hidden.items()})
    return rows, context.ids(entered + 1)
