"""transformers' assisted generation as an engine under test: outputs alone, nothing of what happens inside it.

Fair by default: the sampling of the settings and nothing else, gamma guesses a round, no guess dropped for low
confidence. What transformers does when it is left to itself can be switched on, all of it or one by one.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from transformers import GenerationConfig

from specworkbench.engine.loading import check_same_vocabulary
from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.stopping import Stopping
from specworkbench.errors import InputError

SCHEDULES = ("constant", "heuristic", "heuristic_transient")


class AssistedGeneration:
    """Draws outputs by transformers' `generate`: with a draft model, by prompt lookup, or plainly where draft is None.

    settings: as for our own decoding; gamma is the number of guesses a round. At temperature 0 it decodes greedily.

    What transformers does of its own accord, each left to it where `defaults` is True, unless it is given:
    num_assistant_tokens (gamma here, 20 there), schedule of that number ("constant" here and in recent versions, else
    "heuristic"), confidence_threshold (0 here, 0.4 there: a guess less probable than that is the last of its round),
    own_sampling (False here: what the settings leave out is really out; True: it is taken from the model's generation
    config, and top_k is 50 where that says nothing). ensemble_weight: None, or w < 1 to verify against w p + (1 - w) q,
    which is lossy.

    To know of transformers 5.24: it draws guesses at the square of the temperature, since the target's processors are
    applied to the draft's rows before the draft's own, which costs acceptance and no exactness; and where the config in
    use has a padding token, it hides that token in the prompt from the draft, so that fair settings name none.

    Raises `InputError` for a draft with another vocabulary, draft sampling (there is none), or values out of range.

    >>> from specworkbench.equivalence import toy_model
    >>> settings = DecodeSettings(gamma=2, max_new_tokens=3)
    >>> engine = AssistedGeneration(toy_model(), toy_model(seed=1, layers=1), settings)
    >>> [len(output) for output in engine.draw([0, 1, 0], count=2)], engine.describe()["kind"]
    ([3, 3], 'draft model')
    """

    def __init__(
        self,
        target: LanguageModel,
        draft: LanguageModel | None = None,
        settings: DecodeSettings | None = None,
        *,
        prompt_lookup: bool = False,
        defaults: bool = False,
        num_assistant_tokens: int | None = None,
        schedule: str | None = None,
        confidence_threshold: float | None = None,
        own_sampling: bool | None = None,
        ensemble_weight: float | None = None,
    ):
        self.target, self.draft, self.settings = target, draft, settings or DecodeSettings()
        self.prompt_lookup, self.ensemble_weight = prompt_lookup, ensemble_weight
        self.own_sampling = defaults if own_sampling is None else own_sampling
        fair = {} if defaults else {"tokens": self.settings.gamma, "schedule": "constant", "confidence": 0.0}
        self.num_assistant_tokens = fair.get("tokens") if num_assistant_tokens is None else num_assistant_tokens
        self.schedule = fair.get("schedule") if schedule is None else schedule
        self.confidence_threshold = fair.get("confidence") if confidence_threshold is None else confidence_threshold
        self._check()

    def _check(self) -> None:
        target, draft = self.target, self.draft
        if draft is not None and self.prompt_lookup:
            raise InputError("there is a draft model, and prompt lookup; choose one of the two")
        if draft is not None:
            check_same_vocabulary(target, draft)
            sizes = [model.model.config.get_text_config().vocab_size for model in (target, draft)]
            if sizes[0] != sizes[1]:
                raise InputError(
                    f"the output matrices of {target.name} and {draft.name} have {sizes[0]} and {sizes[1]} rows; "
                    "transformers assists only where they have the same number"
                )
        if self.settings.draft_sampling is not None:
            raise InputError("transformers draws guesses with the target's sampling; leave the draft's sampling out")
        if self.schedule is not None and self.schedule not in SCHEDULES:
            raise InputError(f"the schedule {self.schedule!r} is not known; choose one of {', '.join(SCHEDULES)}")
        if self.num_assistant_tokens is not None and self.num_assistant_tokens < 1:
            raise InputError(f"num_assistant_tokens is {self.num_assistant_tokens}; it must be at least 1")
        if self.ensemble_weight is not None and (draft is None or not 0.0 < self.ensemble_weight < 1.0):
            raise InputError(
                f"the ensemble weight is {self.ensemble_weight}; it must lie between 0 and 1, and needs a draft model"
            )

    def describe(self) -> dict[str, Any]:
        """The engine and its options, None where one is left to transformers."""
        kind = "draft model" if self.draft is not None else "prompt lookup" if self.prompt_lookup else "plain"
        return {
            "engine": f"transformers {transformers.__version__}",
            "kind": kind,
            "draft": None if self.draft is None else self.draft.name,
            "num_assistant_tokens": self.num_assistant_tokens,
            "schedule": self.schedule,
            "confidence_threshold": self.confidence_threshold,
            "own_sampling": self.own_sampling,
            "ensemble_weight": self.ensemble_weight,
        }

    def draw(
        self,
        prompt_ids: Sequence[int],
        count: int,
        *,
        seed: int = 0,
        first: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[tuple[int, ...]]:
        """`count` outputs, each cut behind EOS or a stop string. progress: called with (drawn, count) after each.

        Output i depends on the seed, the prompt and first + i alone; the random state of the caller is left as it was.
        """
        options = self._options(len(prompt_ids))
        ids = torch.tensor([list(prompt_ids)], device=self.target.device)
        stopping = Stopping(self.target, self.settings.stop, self._eos())
        drawn: list[tuple[int, ...]] = []
        with self._undisturbed() as draft_config:
            for index in range(first, first + count):
                key = np.random.SeedSequence((seed, index, *prompt_ids)).generate_state(1, np.uint64)
                torch.manual_seed(int(key[0]))
                output = self._generate(ids, options, draft_config)
                drawn.append(tuple(output[: stopping.cut(output, [])[0]]))
                if progress is not None:
                    progress(len(drawn), count)
        return drawn

    def _generate(self, ids: torch.Tensor, options: dict[str, Any], draft_config: GenerationConfig) -> list[int]:
        if self.draft is not None:  # a schedule leaves its number here, and output i must not depend on the one before
            self.draft.model.generation_config = copy.deepcopy(draft_config)
            options = options | {"assistant_model": self.draft.model}
        output = self.target.model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        return output[0, ids.shape[1] :].tolist()

    def _options(self, prompt_length: int) -> dict[str, Any]:
        """Options of `generate`. Raises `InputError` where the prompt leaves no room."""
        room = self.target.max_context - prompt_length
        if room < 1 or prompt_length < 1:
            raise InputError(
                f"the prompt has {prompt_length} tokens and {self.target.name} a context of {self.target.max_context}; "
                "there must be at least one token before the first, and room for it"
            )
        sampling = self.settings.sampling
        options: dict[str, Any] = {
            "max_new_tokens": min(self.settings.max_new_tokens, room),
            "do_sample": not sampling.greedy,
            "min_new_tokens": self.settings.min_new_tokens if self._eos() else 0,
            "eos_token_id": list(self._eos()) or None,
        }
        known = {
            "temperature": (sampling.temperature, 1.0),
            "top_k": (sampling.top_k, 0),
            "top_p": (sampling.top_p, 1.0),
            "min_p": (sampling.min_p, 0.0),
            "repetition_penalty": (sampling.repetition_penalty, 1.0),
        }
        names = ["repetition_penalty"] if sampling.greedy else known
        for name in names:
            value, neutral = known[name]
            if value != neutral or (name == "top_k" and not self.own_sampling):
                options[name] = value
        if self.prompt_lookup:
            options["prompt_lookup_num_tokens"] = self.num_assistant_tokens or self.settings.gamma
        if self.ensemble_weight is not None:
            options["assistant_ensemble_weight"] = self.ensemble_weight
        rows = self.target.model.config.get_text_config().vocab_size
        if rows > self.target.vocab_size and not self.own_sampling:
            options["suppress_tokens"] = list(range(self.target.vocab_size, rows))
        return options

    def _eos(self) -> tuple[int, ...]:
        return () if self.settings.ignore_eos else self.target.eos_ids

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[GenerationConfig]:
        """Gives the config of the draft, which is where `generate` reads how to assist.

        Random states, generation configs and transformers' log level are afterwards as they were before.
        """
        models = [model.model for model in (self.target, self.draft) if model is not None]
        configs = [model.generation_config for model in models]
        level = transformers.logging.get_verbosity()
        device = self.target.device
        devices = [] if device.type == "cpu" else [device.index or 0]
        kind = {} if device.type == "cpu" else {"device_type": device.type}
        try:
            transformers.logging.set_verbosity_error()
            if not self.own_sampling:
                models[0].generation_config = GenerationConfig()
            with torch.random.fork_rng(devices=devices, **kind), torch.inference_mode():
                yield self._draft_config(copy.deepcopy(configs[-1]) if self.own_sampling else GenerationConfig())
        finally:
            transformers.logging.set_verbosity(level)
            for model, config in zip(models, configs, strict=True):
                model.generation_config = config

    def _draft_config(self, config: GenerationConfig) -> GenerationConfig:
        given = {
            "num_assistant_tokens": self.num_assistant_tokens,
            "num_assistant_tokens_schedule": self.schedule,
            "assistant_confidence_threshold": self.confidence_threshold,
        }
        for name, value in given.items():
            if value is not None:
                setattr(config, name, value)
        return config
