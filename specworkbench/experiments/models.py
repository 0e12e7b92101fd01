"""`Models`: a target, and whatever the proposers that guess for it have loaded. `Loaded`: the last of them, kept."""

from __future__ import annotations

import gc
from typing import Any

from specworkbench.engine import LanguageModel, Proposer, load_model, make_proposer
from specworkbench.experiments.plan import ProposerSpec

__all__ = ["Models", "Loaded"]


class Models:
    """A target with its proposers: weights of one name are loaded once for all of a kind.

    >>> models = Models(load_model("embedded"))
    >>> models.proposer(ProposerSpec("ngram")) is models.proposer(ProposerSpec("ngram"))
    False
    >>> models.kept(ProposerSpec("ngram")) is models.kept(ProposerSpec("ngram"))
    True
    """

    def __init__(self, target: LanguageModel):
        self.target = target
        self._weights: dict[tuple[str, str], Any] = {}
        self._kept: dict[ProposerSpec, Proposer] = {}

    def proposer(self, spec: ProposerSpec) -> Proposer:
        """A proposer of its own on every call. Raises `InputError` where it does not suit the target."""
        spec = spec.fitted(self.target.name)
        draft = None if spec.weights is None else self._loaded(spec.kind, spec.weights)
        return make_proposer(spec.name, target=self.target, draft=draft, **dict(spec.settings))

    def kept(self, spec: ProposerSpec) -> Proposer:
        """The same proposer on every call, for who decodes one sequence after the other: each begins by a reset."""
        if spec not in self._kept:
            self._kept[spec] = self.proposer(spec)
        return self._kept[spec]

    def _loaded(self, kind: type[Proposer], name: str) -> Any:
        key = kind.name, name
        if key not in self._weights:
            self._weights[key] = kind.load(name, self.target)
        return self._weights[key]


class Loaded:
    """The models that were used last, kept for the next time: one target with its proposers.

    >>> loaded = Loaded()
    >>> loaded.models("embedded") is loaded.models("embedded")
    True
    """

    def __init__(self) -> None:
        self._key: tuple[Any, str] | None = None
        self._models: Models | None = None

    def models(self, target: str | LanguageModel, engine: str = "eager") -> Models:
        """Those of this target: a model's name, or a loaded one, whose engine stays. Others are given back first.

        Raises `InputError` for a model that cannot be loaded.
        """
        key = target, engine if isinstance(target, str) else target.engine
        if self._models is None or self._key != key:
            self._key = self._models = None
            gc.collect()
            self._models = Models(load_model(target, engine=engine) if isinstance(target, str) else target)
            self._key = key
        return self._models
