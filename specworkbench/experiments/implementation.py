"""`Implementation`: whom the tests of equivalence are about, by names alone, so that any process can open it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.loading import load_model
from specworkbench.engine.loop import DecodeSettings, decode_rounds
from specworkbench.engine.loop import Sequence as Decoding
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import make_proposer
from specworkbench.engine.rng import Streams, work_dtype
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.faults import FaultyVerifier, control_for
from specworkbench.equivalence.monitor import Monitor
from specworkbench.experiments.plan import PLAIN, ProposerSpec

__all__ = ["Implementation", "Opened", "opened", "begun", "evidence_of", "default_jobs"]


@dataclass(frozen=True)
class Implementation:
    """What is tested, by names and settings alone.

    settings: max_new_tokens is the length of each continuation. fused, products, engine: see `load_model`. seed: of its
    random streams. fault: "" or a key of `equivalence.faults.FAULTS`.

    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=DecodeSettings(max_new_tokens=16))
    >>> wanted.plain().proposer.name, wanted.faulty().fault != ""
    ('none', True)
    """

    target: str
    proposer: ProposerSpec
    rule: str | None = None
    settings: DecodeSettings = field(default_factory=lambda: DecodeSettings(max_new_tokens=64))
    chat: bool = False
    dtype: str | None = None
    device: str | None = None
    fused: bool = True
    products: bool = True
    engine: str = "eager"
    seed: int = 0
    fault: str = ""

    def plain(self) -> Implementation:
        """Plain decoding of the same target with other draws."""
        return replace(self, proposer=ProposerSpec(PLAIN), rule=None, fault="", seed=self.seed + 1)

    def faulty(self) -> Implementation:
        """The same with a fault that the tests must find."""
        fault = control_for(self.settings.sampling.greedy, self.proposer.name != PLAIN)
        return replace(self, fault=fault, seed=self.seed + 2)

    def described(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self) | {"proposer": self.proposer.label}


@dataclass(frozen=True)
class Opened:
    """The parts of an implementation, loaded.

    >>> found = opened(Implementation("embedded", ProposerSpec("ngram")))
    >>> found.proposer.name, found.verifier.name
    ('ngram', 'token')
    """

    target: LanguageModel
    proposer: Proposer
    verifier: Verifier


Loading = tuple[tuple[str, Any], ...]
"""Options of `load_model`, by name."""


@lru_cache(maxsize=4)
def _target(name: str, loading: Loading) -> LanguageModel:
    return load_model(name, **dict(loading))


@lru_cache(maxsize=4)
def _proposer(spec: ProposerSpec, name: str, loading: Loading) -> Proposer:
    return make_proposer(spec.name, target=_target(name, loading), draft=spec.weights, **dict(spec.settings))


def opened(wanted: Implementation) -> Opened:
    """Load what an implementation names, once. Raises `InputError` for what does not exist or does not fit together.

    >>> opened(Implementation("embedded", ProposerSpec("ngram"), rule="block")).verifier.lossless
    True
    """
    loading = tuple((name, getattr(wanted, name)) for name in ("dtype", "device", "fused", "products", "engine"))
    target, proposer = _target(wanted.target, loading), _proposer(wanted.proposer, wanted.target, loading)
    verifier = make_verifier(wanted.rule, wanted.settings.sampling, proposer)
    return Opened(target, proposer, FaultyVerifier(verifier, wanted.fault) if wanted.fault else verifier)


def begun(wanted: Implementation, prompt: str, index: int) -> Decoding:
    """The prompt as sequence number `index`; its draws depend on the seed and that number alone.

    Raises `InputError` where the prompt does not fit the target.

    >>> wanted = Implementation("embedded", ProposerSpec("ngram"))
    >>> begun(wanted, "a b a b", index=3).index
    3
    """
    parts = opened(wanted)
    streams = Streams(wanted.seed, parts.target.device, work_dtype(parts.target.device))
    ids = parts.target.encode(prompt, wanted.chat)
    return Decoding(parts.target, ids, parts.proposer, parts.verifier, wanted.settings, streams, index)


def evidence_of(wanted: Implementation, prompt: str, index: int) -> Evidence:
    """Decode one prompt as sequence number `index`, and keep what the tests need of it.

    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=DecodeSettings(max_new_tokens=16))
    >>> len(evidence_of(wanted, "a b a b", index=0)) <= 16
    True
    """
    sequence = begun(wanted, prompt, index)
    monitor = Monitor(sequence.verifier.name)
    for step in decode_rounds(sequence):
        monitor(step)
    return monitor.take()


def default_jobs(wanted: Implementation) -> int:
    """A process a core for the small embedded family on a CPU; one otherwise.

    >>> default_jobs(Implementation("some/model", ProposerSpec("ngram")))
    1
    """
    embedded = wanted.target.startswith("embedded") and wanted.device in (None, "cpu") and not torch.cuda.is_available()
    return (os.cpu_count() or 1) if embedded else 1
