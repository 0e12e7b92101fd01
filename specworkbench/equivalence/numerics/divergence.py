"""Greedy texts that differ: by rounding or by a fault? The first difference says; all that follows is its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specworkbench.engine.models import LanguageModel
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.equivalence.numerics.fresh import fresh_logits
from specworkbench.equivalence.numerics.settings import penalised
from specworkbench.errors import InputError


@dataclass(frozen=True)
class Divergence:
    """Where two greedy outputs part.

    position: 0-based index in the output; plain, speculative: the two tokens, None where one output ends; margin: from
    the largest of the target's logits there to the lesser of the two tokens' (between the two best where these are the
    best), nan where one output ends; allowance: twice the logit noise; judgement: "rounding" where the margin is within
    it, else "bias".

    >>> Divergence(12, plain=5, speculative=7, margin=0.002, allowance=0.01, judgement="rounding").sentence
    'rounding: the first difference is at token 12, where the logits of the two choices are 0.002 apart,
    within twice the logit noise (0.01)'
    """

    position: int
    plain: int | None
    speculative: int | None
    margin: float
    allowance: float
    judgement: str

    @property
    def sentence(self) -> str:
        """All this in words."""
        if None in (self.plain, self.speculative):
            which = "plain" if self.plain is None else "speculative"
            return f"bias: the {which} output ends after {self.position} tokens and the other goes on"
        relation = "within" if self.judgement == "rounding" else "more than"
        return (
            f"{self.judgement}: the first difference is at token {self.position}, where the logits of the two choices "
            f"are {self.margin:.3g} apart, {relation} twice the logit noise ({self.allowance:.3g})"
        )


def first_divergence(
    plain: Sequence[int],
    speculative: Sequence[int],
    target: LanguageModel,
    prompt: Sequence[int],
    noise: float | None = None,
    *,
    sampling: SamplingSettings | None = None,
    gamma: int = 4,
) -> Divergence | None:
    """Judge the first difference of two greedy outputs of one prompt (all token ids); None where they are equal.

    noise: the largest difference of a logit by kernels, as `logit_noise` measures it on the common text where it is not
    given (with blocks of gamma + 1). Two logits move towards each other by at most twice that. sampling: for its
    repetition penalty. Raises `InputError` for a negative noise.

    >>> from specworkbench.equivalence import toy_model
    >>> target = toy_model()
    >>> first_divergence([1, 2], [1, 2], target, prompt=[0, 1]) is None
    True
    >>> [first_divergence([1, 2], [1, 3], target, [0, 1], noise).judgement for noise in (0.001, 10.0)]
    ['bias', 'rounding']
    """
    if noise is not None and not noise >= 0:
        raise InputError(f"the logit noise is {noise}; it is a difference of logits and must be at least 0")
    if list(plain) == list(speculative):
        return None
    shorter = min(len(plain), len(speculative))
    at = next((i for i in range(shorter) if plain[i] != speculative[i]), shorter)
    tokens = [*prompt, *plain[:at]]
    if noise is None:
        noise = logit_noise(target, tokens, at + 1, gamma + 1)
    pair = [output[at] if at < len(output) else None for output in (plain, speculative)]
    if None in pair:
        return Divergence(at, *pair, float("nan"), 2 * noise, "bias")
    scores = penalised(fresh_logits(target, tokens, 1)[0], tokens, sampling or SamplingSettings())
    margin = float(scores.max() - scores[pair].min())
    return Divergence(at, *pair, margin, 2 * noise, "rounding" if margin <= 2 * noise else "bias")


def logit_noise(target: LanguageModel, tokens: Sequence[int], rows: int, width: int, best: int = 16) -> float:
    """The largest difference of a logit between forwards of one token and of `width` tokens, over the last `rows` rows.

    Of each row only the `best` largest logits count, among which the choice is made. Rows are compared as they are.

    >>> from specworkbench.equivalence import toy_model
    >>> logit_noise(toy_model(), [0, 1, 2, 3], rows=2, width=3) < 1e-9
    True
    """
    single, block = (fresh_logits(target, tokens, rows, shape) for shape in ("single", width))
    leading = np.argsort(-single, axis=-1, kind="stable")[:, :best]
    return float(np.abs(np.take_along_axis(single - block, leading, -1)).max())
