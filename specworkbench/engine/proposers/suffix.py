"""Suffix decoding: guess what most often followed the end of the context, with a length that fits the match.

After Oliaro, Jia, Campos, Qiao 2024 (SuffixDecoding, arXiv 2411.04975) and vLLM's `suffix`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from specworkbench.engine.contracts import Context, Proposal, Proposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError


class _Node:
    """A string of tokens that occurred: how often, and what came after it."""

    __slots__ = ("children", "count")

    def __init__(self) -> None:
        self.count = 0
        self.children: dict[int, _Node] = {}


class SuffixTree:
    """How often every string of up to `depth` tokens occurred in the sequences read; the oldest tokens are forgotten.

    size: tokens remembered; memory is at most depth * size nodes.
    """

    def __init__(self, depth: int, size: int):
        self.depth, self.size = depth, size
        self._root = _Node()
        self._open: list[_Node] = []
        self._sequences: deque[deque[int]] = deque()
        self._held = 0

    def begin(self) -> None:
        """What is read from here on is another sequence: no string crosses the border."""
        self._open = []
        self._sequences.append(deque())

    def read(self, token: int) -> None:
        """Enter every string that ends in this token."""
        self._open = [_entered(node, token) for node in [self._root, *self._open[: self.depth - 1]]]
        self._sequences[-1].append(token)
        self._held += 1
        if self._held > self.size:
            self._forget()

    def find(self, string: Sequence[int]) -> _Node | None:
        """The node of a string, or None where it never occurred."""
        node: _Node | None = self._root
        for token in string:
            node = node.children.get(token)
            if node is None:
                return None
        return node

    def _forget(self) -> None:
        """Take out the strings that begin at the oldest token."""
        while not self._sequences[0]:
            self._sequences.popleft()
        oldest, node = self._sequences[0], self._root
        for token, _ in zip(oldest, range(self.depth), strict=False):
            child = node.children[token]
            child.count -= 1
            if child.count == 0:
                del node.children[token]
            node = child
        oldest.popleft()
        self._held -= 1


def _entered(node: _Node, token: int) -> _Node:
    """The child for this token, counted once more, and the most recent of its siblings."""
    child = node.children.pop(token, None) or _Node()
    node.children[token] = child
    child.count += 1
    return child


class SuffixProposer(Proposer):
    """Guesses by frequency: what followed the last tokens of the context most often in prompt, output and corpus.

    Every suffix of the context that occurred before, up to `max_match` tokens, offers a continuation: at each step the
    most frequent next token, with its share among the next tokens as probability. Among equals the most recent is
    taken; in greedy decoding, which repeats itself rather than the prompt, it counts once more than it occurred. The
    continuation whose probabilities promise the most accepted tokens is proposed, the longer match among equals. It
    ends where the product of its shares falls below `min_prob`, and after `factor` tokens for each token of the match.

    corpus: keep what earlier sequences said instead of forgetting it at the next prompt. size: tokens remembered.
    The guess is certain: q is one-hot. Raises `InputError` for settings out of range.
    """

    name = "suffix"
    summary = "suffix tree: what most often followed the end of the context, as long as it is likely"
    paper = "Oliaro et al. 2024"
    deterministic = True

    def __init__(
        self, max_match: int = 16, min_prob: float = 0.1, factor: float = 4.0, corpus: bool = False, size: int = 100_000
    ):
        limits = (
            (max_match >= 1, "max_match", max_match, "at least 1 token"),
            (0.0 <= min_prob <= 1.0, "min_prob", min_prob, "between 0 and 1"),
            (factor > 0.0, "factor", factor, "above 0"),
            (size > 2 * max_match, "size", size, f"more than twice max_match, {2 * max_match}"),
        )
        for holds, setting, value, limit in limits:
            if not holds:
                raise InputError(f"{setting} of the proposer suffix is {value!r}; it must be {limit}")
        self.max_match, self.min_prob, self.factor, self.corpus, self.size = max_match, min_prob, factor, corpus, size
        self._tree: SuffixTree | None = None
        self.reset()

    def reset(self) -> None:
        if self._tree is None or not self.corpus:
            self._tree = SuffixTree(2 * self.max_match, self.size)
        self._tree.begin()
        self._read = 0

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        for token in context.tokens[self._read :]:
            self._tree.read(token)
        self._read = len(context.tokens)
        best, promised = [], 0.0
        lead = 1 if context.sampler.settings.greedy else 0
        for length in range(min(self.max_match, self._read), 0, -1):
            guesses, promise = self._continuation(context.tokens[-length:], gamma, lead)
            if promise > promised:
                best, promised = guesses, promise
        if not best:
            return nothing(context)
        return Proposal(torch.tensor(best, dtype=torch.int64, device=context.device))

    def _continuation(self, suffix: list[int], gamma: int, lead: int) -> tuple[list[int], float]:
        """Guesses after a suffix of the context, and the number of them that its frequencies promise.

        lead: how much more than its occurrences the most recent follower counts.
        """
        limit = min(gamma, max(1, int(self.factor * len(suffix))))
        guesses: list[int] = []
        share, promise = 1.0, 0.0
        node = self._tree.find(suffix)
        followers = node.children if node is not None else {}
        while followers and len(guesses) < limit:
            latest = next(reversed(followers))
            token = max(reversed(followers), key=lambda each: followers[each].count + lead * (each == latest))
            node = followers[token]
            share *= node.count / sum(child.count for child in followers.values())
            if share < self.min_prob:
                break
            promise += share
            guesses.append(token)
            suffix = [*suffix, token][-self.max_match :]
            followers = self._followers(suffix)
        return guesses, promise

    def _followers(self, suffix: list[int]) -> dict[int, _Node]:
        """What came after the longest end of the suffix that was ever followed by anything."""
        for start in range(len(suffix)):
            node = self._tree.find(suffix[start:])
            if node is not None and node.children:
                return node.children
        return {}
