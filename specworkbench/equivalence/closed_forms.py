"""What rules of chains do, in closed form: how often they keep a guess, and the whole law of their output.

From fresh forwards of target and draft alone: the engine's rules, proposers, caches and loop take no part, so that the
enumeration of the real code can be held against it. p, q: (vocab,) rows of target and draft after the same prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.equivalence.law import Law, ends, fresh_row, too_early
from specworkbench.theory import chains, kept_survival

RowPair = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(p, q) to (vocab,) numbers."""


@dataclass(frozen=True)
class PositionRule:
    """A rule that judges position by position. kept: the probability that a token is guessed and kept, for each; these
    sum to the acceptance. corrected: weights of the token in place of a refused guess; bonus: of that after the last.
    """

    kept: RowPair
    corrected: RowPair
    bonus: Callable[[torch.Tensor], torch.Tensor] = lambda p: p


def excess(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """What p has more than q."""
    return (p - q).clamp(min=0.0)


def first_choice(p: torch.Tensor) -> torch.Tensor:
    """One-hot on the most probable token, the lowest id among equals."""
    return torch.zeros_like(p).index_fill(0, p.argmax(), 1.0)


def token_rule() -> PositionRule:
    """Leviathan et al. 2023: sum_x min(p, q) is kept, and the law is p."""
    return PositionRule(torch.minimum, excess)


def equality_rule() -> PositionRule:
    """sum_x p q is kept. A guess g is refused and x taken in its place with q(g) p(x) for every g but x."""
    return PositionRule(torch.mul, lambda p, q: p * (1.0 - q))


def lenient_rule(leniency: float) -> PositionRule:
    """Leviathan et al. 2023, appendix A.5: min(p / leniency, q) is kept. The first token of a round follows
    min(q, p / l) + (1 - sum min(q, p / l)) max(p - q, 0) / sum max(p - q, 0).
    """
    return PositionRule(lambda p, q: torch.minimum(p / leniency, q), excess)


def ensemble_rule(weight: float) -> PositionRule:
    """The token rule for v = weight p + (1 - weight) q: a guessed position follows v, a bonus p."""

    def mixed(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        return weight * p + (1.0 - weight) * q

    return PositionRule(lambda p, q: torch.minimum(mixed(p, q), q), lambda p, q: excess(mixed(p, q), q))


def typical_rule(epsilon: float, delta: float) -> PositionRule:
    """Cai et al. 2024: a guess with p above min(epsilon, delta exp(-H(p))) is kept, else p's first choice taken."""

    def kept(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        entropy = -sum(share * share.log() for share in p if share > 0)
        return q * (p > min(epsilon, delta * float(torch.exp(-entropy))))

    return PositionRule(kept, lambda p, q: first_choice(p), first_choice)


def rows_after(
    target: LanguageModel, draft: LanguageModel, prompt: tuple[int, ...], output: tuple[int, ...],
    settings: DecodeSettings,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """(vocab,) p and q after prompt and output, under their own sampling and the minimum length."""
    banned = too_early(target, len(output), settings)
    p = fresh_row(target, (*prompt, *output), settings.sampling, banned)
    return p, fresh_row(draft, (*prompt, *output), settings.draft_sampling or settings.sampling, banned)


def survival(
    target: LanguageModel, draft: LanguageModel, prompt: tuple[int, ...], settings: DecodeSettings,
    rule: PositionRule | None = None,
) -> np.ndarray:  # fmt: skip
    """S_1..S_gamma: at least j guesses are kept with probability sum over x_1..x_j of prod kept(x_i).

    By the token rule where none is given. The expected accepted length is their sum.

    >>> from specworkbench.equivalence import accepted_law, table_setup
    >>> setup = table_setup(gamma=2)
    >>> survival(setup.target, setup.proposer.draft, setup.prompt, setup.settings).round(3).tolist()
    [0.8, 0.592]
    >>> [round(share, 3) for share in accepted_law(setup)]  # of the real code
    [0.2, 0.208, 0.592]
    """
    kept = (rule or token_rule()).kept
    return kept_survival(lambda guesses: kept(*rows_after(target, draft, prompt, guesses, settings)), settings.gamma)


def block_survival(
    target: LanguageModel, draft: LanguageModel, prompt: tuple[int, ...], settings: DecodeSettings
) -> np.ndarray:
    """The same for block verification: E[b_j] over drafts, see `theory.block_survival`.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(gamma=2)
    >>> given = setup.target, setup.proposer.draft, setup.prompt, setup.settings
    >>> [float(form(*given).sum().round(3)) for form in (survival, block_survival)]  # expected accepted lengths
    [1.392, 1.428]
    """
    return chains.block_survival(lambda guesses: rows_after(target, draft, prompt, guesses, settings), settings.gamma)


def closed_law(
    target: LanguageModel, draft: LanguageModel, prompt: tuple[int, ...], settings: DecodeSettings, rule: PositionRule
) -> Law:
    """The law of the output of rounds of up to gamma guesses drawn from the draft, under a rule.

    >>> from specworkbench.equivalence import product_law, table_setup, total_variation
    >>> setup = table_setup()
    >>> given = setup.target, setup.proposer.draft, setup.prompt, setup.settings
    >>> laws = [closed_law(*given, rule) for rule in (token_rule(), lenient_rule(0.8))]
    >>> expected = product_law(setup.target, setup.prompt, setup.settings)
    >>> [round(total_variation(law, expected), 3) for law in laws]
    [0.0, 0.11]
    """

    def round_from(output: tuple[int, ...]) -> Law:
        return position(output, min(settings.gamma, settings.max_new_tokens - len(output) - 1))

    def position(output: tuple[int, ...], left: int) -> Law:
        p, q = rows_after(target, draft, prompt, output, settings)
        if left == 0:
            return follow(output, rule.bonus(p), round_from)
        kept, rest = rule.kept(p, q), rule.corrected(p, q)
        rest = rest * (1.0 - kept.sum()) / rest.sum().clamp(min=torch.finfo(rest.dtype).tiny)
        law = follow(output, kept, lambda longer: position(longer, left - 1))
        return mixture([(1.0, law), (1.0, follow(output, rest.clamp(min=0.0), round_from))])

    def follow(output: tuple[int, ...], weights: torch.Tensor, then: Callable[[tuple[int, ...]], Law]) -> Law:
        longer = [((*output, token), weight) for token, weight in enumerate(weights.tolist()) if weight > 0.0]
        return mixture([(w, {o: 1.0} if ends(target, prompt, o, settings) else then(o)) for o, w in longer])

    return round_from(())


def mixture(parts: list[tuple[float, Law]]) -> Law:
    """The weighted sum of laws."""
    law: Law = {}
    for weight, part in parts:
        for output, share in part.items():
            law[output] = law.get(output, 0.0) + weight * share
    return law
