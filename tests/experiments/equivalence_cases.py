"""Implementations on the toy models, by name, as the tests of equivalence take them."""

from __future__ import annotations

from pathlib import Path

from specworkbench.engine import DecodeSettings, SamplingSettings
from specworkbench.experiments.implementation import Implementation
from specworkbench.experiments.plan import ProposerSpec


def toy_implementation(
    toys: Path, proposer: str = "draft_model", rule: str | None = None, temperature: float = 1.5, length: int = 32,
    gamma: int = 3, **more: object,
) -> Implementation:  # fmt: skip
    """The toy target in float64 with one of its proposers; the draft is given where a draft model proposes.

    At this temperature the fault of the positive control shows within some two hundred tokens.
    """
    name, _, settings = proposer.partition(",")
    text = f"{name}:{toys / 'draft'}" if name == "draft_model" else name
    spec = ProposerSpec.parse(",".join(filter(None, [text, settings])))
    settings = DecodeSettings(gamma, length, SamplingSettings(temperature=temperature))
    return Implementation(str(toys / "target"), spec, rule, settings, dtype="float64", **more)
