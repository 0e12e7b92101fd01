"""The settings of one sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from specworkbench.engine.sampling import SamplingSettings
from specworkbench.errors import InputError


@dataclass(frozen=True)
class DecodeSettings:
    """Settings of one sequence: gamma tokens a round (a tree's depth; with a controller, at most); target and draft
    sampling; when to stop.

    min_new_tokens: so many tokens are out before EOS may come (see `MinimumLength`); without effect where no EOS ends
    the sequence. Raises `InputError` for a gamma or a number of new tokens below 1, and for a minimum that is negative
    or above the maximum.

    >>> DecodeSettings(gamma=2, max_new_tokens=8).sampling.temperature
    1.0
    """

    gamma: int = 4
    max_new_tokens: int = 128
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    draft_sampling: SamplingSettings | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_new_tokens: int = 0

    def __post_init__(self):
        if self.gamma < 1:
            raise InputError(
                f"gamma is {self.gamma}; at least 1 token must be proposed (proposer none decodes plainly)"
            )
        if self.max_new_tokens < 1:
            raise InputError(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")
        if not 0 <= self.min_new_tokens <= self.max_new_tokens:
            raise InputError(
                f"min_new_tokens is {self.min_new_tokens}; it must be at least 0 (0: none) and at most max_new_tokens, "
                f"which is {self.max_new_tokens}"
            )
        if any(not text for text in self.stop):
            raise InputError("a stop string is empty; it would stop at once, leave it out")
