"""Prompt lookup: guess that what followed the last occurrence of the current n-gram follows again.

After Saxena 2023 (prompt lookup decoding) and vLLM's `ngram`.
"""

from __future__ import annotations

import torch

from specworkbench.engine.contracts import Context, Proposal, Proposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError


class NgramProposer(Proposer):
    """The longest suffix of prompt and output, of max_n down to min_n tokens, that occurred before; its continuation.

    The latest earlier occurrence wins. A continuation that reaches the end of the context goes on into the guesses
    themselves, as a repetition does. No match gives an empty proposal. The guess is certain: q is one-hot.
    Raises `InputError` unless 1 <= min_n <= max_n.
    """

    name = "ngram"
    summary = "prompt lookup: what followed the last occurrence of the current n-gram"
    paper = "Saxena 2023"
    deterministic = True

    def __init__(self, min_n: int = 1, max_n: int = 4):
        if not 1 <= min_n <= max_n:
            raise InputError(f"n-gram lengths are min {min_n} and max {max_n}; they must satisfy 1 <= min <= max")
        self.min_n, self.max_n = min_n, max_n
        self.reset()

    def reset(self) -> None:
        self._follows: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        tokens = context.tokens
        self._index(tokens)
        for n in range(min(self.max_n, len(tokens) - 1), self.min_n - 1, -1):
            start = self._follows.get(tuple(tokens[-n:]))
            if start is not None:
                guesses = list(tokens[start : start + gamma])
                while len(guesses) < gamma:
                    guesses.append(guesses[len(guesses) - (len(tokens) - start)])
                return Proposal(torch.tensor(guesses, dtype=torch.int64, device=context.device))
        return nothing(context)

    def _index(self, tokens: list[int]) -> None:
        """Enter every n-gram that has a token after it; the latest occurrence overwrites."""
        for end in range(max(self._indexed, 1), len(tokens)):
            for n in range(self.min_n, min(self.max_n, end) + 1):
                self._follows[tuple(tokens[end - n : end])] = end
        self._indexed = len(tokens)
