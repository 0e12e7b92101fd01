"""Decodes a comparison: every prompt plainly and by every proposer, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, make_controller, make_verifier
from specworkbench.engine.loading import quiet_transformers
from specworkbench.experiments.bench import WARM_UP_TOKENS
from specworkbench.experiments.collector import little_garbage
from specworkbench.experiments.comparison import Comparison, Watch
from specworkbench.experiments.models import Loaded, Models
from specworkbench.experiments.plan import PLAIN, ProposerSpec, rotated
from specworkbench.trace import Trace

__all__ = ["decode_side_by_side"]


def decode_side_by_side(asked: Comparison, watch: Watch, loaded: Loaded) -> dict[str, Trace]:
    """The traces by label, plain decoding as `PLAIN`; of what failed, or had not begun when it was stopped, none.

    A proposer that fails is told to `watch`, and the others go on. Raises `InputError` for what none of them could be
    decoded with: the target, the sampling, the rule or the controller, or a prompt that plain decoding refuses.

    >>> from specworkbench.workloads import Prompt
    >>> asked = Comparison((Prompt("mine", "text", "a b a b"),), ("ngram", "suffix"), max_new_tokens=8)
    >>> list(decode_side_by_side(asked, Watch(), Loaded()))
    ['none', 'ngram', 'suffix']
    """
    sampling = SamplingSettings(asked.temperature, top_k=asked.top_k, top_p=asked.top_p, min_p=asked.min_p)
    settings = DecodeSettings(gamma=asked.gamma, max_new_tokens=asked.max_new_tokens, sampling=sampling)
    make_verifier(asked.rule, sampling)
    make_controller(asked.controller)
    watch.doing("loading the target")
    quiet_transformers()
    return _Run(asked, watch, settings, loaded.models(asked.target, asked.engine)).traces()


class _Run:
    """One comparison on its way. `going`: the labels of what has not failed."""

    def __init__(self, asked: Comparison, watch: Watch, settings: DecodeSettings, models: Models):
        self.asked, self.watch, self.settings, self.models = asked, watch, settings, models
        self.proposers: dict[str, Any] = {PLAIN: None}
        self.going = list(asked.labels)

    def traces(self) -> dict[str, Trace]:
        for step in (self._load, self._warm_up):
            for label in list(self.going):
                if self.watch.stopped():
                    return {}
                with self._told(label):
                    step(label)
        decoders = {label: self._decoder(label, self.settings) for label in self.going}
        begun = self._in_turns(decoders)
        return {label: decoders[label].trace() for label in self.going if label in begun}

    def _load(self, label: str) -> None:
        if label != PLAIN:
            self.watch.doing(f"loading {label}")
            self.proposers[label] = self.models.kept(ProposerSpec.parse(label))
        self._decoder(label, self.settings)  # refuses a rule or a controller that does not suit the proposer

    def _warm_up(self, label: str) -> None:
        """The first prompt, shortly; it counts nowhere. Compiled steps are made for every prompt."""
        self.watch.doing(f"warming up {label}")
        short = replace(self.settings, max_new_tokens=min(self.settings.max_new_tokens, WARM_UP_TOKENS))
        decoder, prompts = self._decoder(label, short), self.asked.prompts
        if self.models.target.engine == "compiled":
            for prompt in prompts:
                decoder.start(prompt.text).prepare()
        decoder.run(prompts[0].text, on_round=lambda _: not self.watch.stopped())

    def _in_turns(self, decoders: dict[str, Decoder]) -> set[str]:
        """Every prompt by all, who comes first changing from prompt to prompt; the labels of those that have begun."""
        begun: set[str] = set()
        with little_garbage():
            for number, prompt in enumerate(self.asked.prompts):
                for label in rotated(list(self.going), number):
                    if self.watch.stopped():
                        return begun
                    with self._told(label):
                        decoders[label].run(
                            prompt.text, id=prompt.id, bucket=prompt.bucket,
                            on_round=lambda step, label=label: self._watched(label, step),
                        )  # fmt: skip
                        begun.add(label)
                        self.watch.decoded(label, number + 1)
        return begun

    def _watched(self, label: str, step: Any) -> bool:
        self.watch.round(label, step)
        return not self.watch.stopped()

    def _decoder(self, label: str, settings: DecodeSettings) -> Decoder:
        plain, asked = label == PLAIN, self.asked
        speculation = {} if plain else {"rule": asked.rule, "controller": asked.controller}
        return Decoder(
            self.models.target, self.proposers[label], settings=settings, seed=asked.seed, capture=asked.capture,
            chat=asked.chat, **speculation,
        )  # fmt: skip

    @contextmanager
    def _told(self, label: str) -> Iterator[None]:
        """An error ends this proposer and no other; one of plain decoding ends all."""
        try:
            yield
        except Exception as error:
            if label == PLAIN:
                raise
            self.going.remove(label)
            self.watch.failed(label, error)
