"""From logits to what a token is really drawn from: penalty, minimum length, temperature, top-k, top-p, min-p.

The order and the tie rules are those of transformers' `generate`. Target and draft go through the same code, so that
p and q are always the rows that were drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial

import torch

from specworkbench.engine.rng import Chooser, UniformChooser, work_dtype
from specworkbench.errors import InputError


@dataclass(frozen=True)
class SamplingSettings:
    """How a row of logits becomes a distribution. Defaults leave the model's own distribution untouched.

    temperature: 0 is greedy (all mass on the largest logit, the lowest index among equals); top_k: 0 keeps all;
    top_p: smallest set of tokens with at least this mass, 1 keeps all; min_p: drops tokens below min_p times the
    largest probability, 0 keeps all; repetition_penalty: divides positive and multiplies negative logits of every
    token already in prompt, output or block, 1 changes nothing. Raises `InputError` for values out of range.

    >>> SamplingSettings(temperature=0.7, top_p=0.9).top_p
    0.9
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self):
        rules = (
            (0.0 <= self.temperature < float("inf"), "temperature", "a finite number of at least 0 (0 is greedy)"),
            (self.top_k >= 0 and self.top_k == int(self.top_k), "top_k", "a whole number of at least 0 (0 keeps all)"),
            (0.0 < self.top_p <= 1.0, "top_p", "above 0 and at most 1 (1 keeps all)"),
            (0.0 <= self.min_p <= 1.0, "min_p", "between 0 and 1 (0 keeps all)"),
            (0.0 < self.repetition_penalty < float("inf"), "repetition_penalty", "a finite number above 0 (1: none)"),
        )
        for holds, name, limit in rules:
            if not holds:
                raise InputError(f"{name} is {getattr(self, name)!r}; it must be {limit}")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def filtered(scores: torch.Tensor, settings: SamplingSettings) -> torch.Tensor:
    """Scores (rows, vocab) with everything outside top-k, top-p and min-p at -inf."""
    if 0 < settings.top_k < scores.shape[-1]:
        kth = scores.topk(settings.top_k, dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < kth, -torch.inf)
    if settings.top_p < 1.0:
        ascending, order = scores.sort(dim=-1)
        drop = ascending.softmax(-1).cumsum(-1) <= 1.0 - settings.top_p
        drop[:, -1] = False
        scores = scores.masked_fill(drop.scatter(-1, order, drop), -torch.inf)
    if settings.min_p > 0.0:
        probs = scores.softmax(-1)
        scores = scores.masked_fill(probs < settings.min_p * probs.amax(-1, keepdim=True), -torch.inf)
    return scores


def probabilities(scores: torch.Tensor, settings: SamplingSettings, dtype: torch.dtype) -> torch.Tensor:
    """Scores (rows, vocab), penalties applied, to probabilities of that dtype; a NaN makes its row NaN."""
    if settings.greedy:
        largest, best = scores.max(-1, keepdim=True)  # NaN where a row holds one
        mass = torch.where(largest.isnan(), torch.nan, 1.0).to(dtype)
        return torch.zeros(scores.shape, dtype=dtype, device=scores.device).scatter_(-1, best, mass)
    scores = scores.to(dtype)
    if settings.temperature != 1.0:
        scores = scores / settings.temperature
    return filtered(scores, settings).softmax(-1)


def seen_in_rows(seen: torch.Tensor, block: torch.Tensor, rows: int) -> torch.Tensor:
    """Which tokens each row of a block has before it: (rows, vocab) bools.

    seen: (vocab,) bools of prompt and output; block: (m,) tokens; row i sees `seen` and the first i tokens of block.
    """
    marks = torch.zeros(rows, seen.shape[0], dtype=torch.int8, device=seen.device)
    if rows > 1:
        at = torch.arange(1, rows, device=seen.device)
        marks[at, block[: rows - 1]] = 1
    return seen | marks.cummax(0).values.bool()


def seen_in_tree(seen: torch.Tensor, tokens: torch.Tensor, ancestors: torch.Tensor) -> torch.Tensor:
    """The same for a tree: (n + 1, vocab) bools, row 0 `seen`, row i + 1 with the tokens of node i's path, its own too.

    seen: (vocab,) bools; tokens: (n,) of the nodes; ancestors: (n, n) bools, see `engine.trees.ancestors`.
    """
    marks = torch.zeros(tokens.shape[0] + 1, seen.shape[0], dtype=torch.int8, device=seen.device)
    marks[1:].scatter_reduce_(1, tokens.expand_as(ancestors), ancestors.to(torch.int8), "amax")
    return seen | marks.bool()


class MinimumLength:
    """No EOS among the first new tokens: its logits are -inf there, before temperature and cuts.

    eos_ids: the tokens that end a sequence; left: how many tokens after the context must not be one of them, which the
    loop says anew each round.
    """

    def __init__(self, eos_ids: Iterable[int], vocab_size: int, left: int = 0, device: torch.device | str = "cpu"):
        ends = [token for token in eos_ids if token < vocab_size]
        self.ends = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        self.ends[ends] = True
        self.left = left

    def __call__(self, scores: torch.Tensor, ahead: int | torch.Tensor) -> torch.Tensor:
        """scores: (rows, vocab); ahead: how many tokens of the round each row has before it, (rows,) or one for all."""
        if isinstance(ahead, int):
            return scores.masked_fill(self.ends, -torch.inf) if ahead < self.left else scores
        return scores.masked_fill((ahead < self.left).unsqueeze(-1) & self.ends, -torch.inf)


class Sampler:
    """Logits to probabilities under one `SamplingSettings` (and a minimum length), for rows of one block.

    >>> import torch
    >>> sampler = Sampler(SamplingSettings(top_k=2))
    >>> sampler(torch.log(torch.tensor([[0.5, 0.3, 0.2]]))).numpy().round(3)
    array([[0.625, 0.375, 0.   ]])
    """

    def __init__(
        self,
        settings: SamplingSettings,
        device: torch.device | str = "cpu",
        minimum: MinimumLength | None = None,
        law: Callable[[torch.Tensor], torch.Tensor] | None = None,
        drawn: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]] | None = None,
    ):
        """Where they are at hand in a compiled form, law: `probabilities` under these settings and in `work_dtype`;
        drawn: from scores and a uniform for each row, these rows and what is drawn from them by `inverse_cdf`."""
        self.settings, self.drawn = settings, drawn
        self.law = law or partial(probabilities, settings=settings, dtype=work_dtype(device))
        self.minimum = minimum
        self.dtype = work_dtype(device)
        self.penalises = settings.repetition_penalty != 1.0

    def __call__(
        self,
        logits: torch.Tensor,
        seen: torch.Tensor | None = None,
        block: torch.Tensor | None = None,
        ahead: int | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """logits: (rows, vocab). Returns (rows, vocab) probabilities in `work_dtype`; a NaN logit makes its row NaN.

        seen: (vocab,) bools, tokens of prompt and output, needed when a repetition penalty is set; block: (rows - 1,)
        tokens proposed in this round: row i is conditioned on the first i of them. Where rows have other tokens before
        them (in a tree), seen is (rows, vocab) and there is no block. ahead: how many tokens of the round stand before
        each row, (rows,) or one number for all; row i has i of them when not given.
        """
        scores = logits
        if self.penalises:
            before = seen if seen.ndim == 2 else seen_in_rows(seen, block, scores.shape[0])
            penalty = self.settings.repetition_penalty
            scores = scores.to(self.dtype)
            scores = torch.where(before, torch.where(scores < 0, scores * penalty, scores / penalty), scores)
        if self.minimum is not None and self.minimum.left > 0:
            scores = self.minimum(scores, torch.arange(len(scores), device=scores.device) if ahead is None else ahead)
        return self.law(scores)

    def prepare(self, logits: torch.Tensor) -> None:
        """Compile `draw` for logits (1, vocab) that lie in memory as these do, where it is to be compiled."""
        if self.drawn is not None:
            self.drawn(logits, logits.new_zeros(1, dtype=self.dtype))
        self.law(logits)

    def draw(
        self, logits: torch.Tensor, choose: Chooser, seen: torch.Tensor | None = None, ahead: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The row of a guess, (1, vocab), as a call gives it, and the guess, (1,), drawn from it by `choose`."""
        as_they_are = not self.penalises and (self.minimum is None or self.minimum.left <= 0)
        if self.drawn is not None and as_they_are and type(choose) is UniformChooser:
            return self.drawn(logits, choose.next(1))
        row = self(logits, seen, ahead=ahead)
        return row, choose.draw(row)
