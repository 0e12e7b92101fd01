"""`Models`: a target, and whatever the proposers that guess for it have loaded."""

from __future__ import annotations

from typing import Any

from specworkbench.engine import LanguageModel, Proposer, make_proposer
from specworkbench.experiments.plan import ProposerSpec


class Models:
    """A target with its proposers: weights of one name are loaded once for all of a kind."""

    def __init__(self, target: LanguageModel):
        self.target = target
        self._weights: dict[tuple[str, str], Any] = {}

    def proposer(self, spec: ProposerSpec) -> Proposer:
        """A proposer of its own on every call. Raises `InputError` where it does not suit the target."""
        spec = spec.fitted(self.target.name)
        draft = None if spec.weights is None else self._loaded(spec.kind, spec.weights)
        return make_proposer(spec.name, target=self.target, draft=draft, **dict(spec.settings))

    def _loaded(self, kind: type[Proposer], name: str) -> Any:
        key = kind.name, name
        if key not in self._weights:
            self._weights[key] = kind.load(name, self.target)
        return self._weights[key]
