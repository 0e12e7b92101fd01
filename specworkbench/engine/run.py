"""`decode` and `Decoder`: settings in, text and a trace out."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import torch
import transformers

import specworkbench
from specworkbench.engine.compiled.rounds import CompiledRound
from specworkbench.engine.contracts import Proposer
from specworkbench.engine.controllers import Controller, make_controller
from specworkbench.engine.loop import DecodeSettings, Sequence, decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import NoProposer
from specworkbench.engine.recording import TraceRecorder
from specworkbench.engine.rng import Streams, inverse_cdf, work_dtype
from specworkbench.engine.round import Round
from specworkbench.engine.timing import clock_for
from specworkbench.engine.verifiers import make_verifier
from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.trace.schema import SCHEMA_VERSION

OnRound = Callable[[Round], bool | None]
"""Called after each round; returning False stops the sequence (stop_reason 'stopped')."""


@dataclass(frozen=True)
class DecodeResult:
    """One decoded sequence: text, output token ids (EOS included), why it stopped, the trace (None if not recorded).

    >>> DecodeResult("ab", [5, 7], "length").trace is None
    True
    """

    text: str
    token_ids: list[int]
    stop_reason: str
    trace: Trace | None = None


class Decoder:
    """One configuration of target, proposer, rule and sampling that decodes prompt after prompt into one trace.

    controller: who chooses gamma before each round, see `engine.controllers`; at most the gamma of the settings.
    capture: None records nothing; otherwise none (scalars), top-k or full, as in `trace.schema`.
    Raises `InputError` for settings that do not fit together.

    >>> from specworkbench.engine import load_model, make_proposer
    >>> settings = DecodeSettings(max_new_tokens=8)
    >>> decoder = Decoder(load_model("embedded"), make_proposer("ngram"), settings=settings)
    >>> [len(decoder.run(prompt).token_ids) for prompt in ("def mean(values):", "import os")]
    [8, 8]
    >>> len(decoder.trace().sequences)
    2
    """

    def __init__(
        self,
        target: LanguageModel,
        proposer: Proposer | None = None,
        *,
        rule: str | None = None,
        controller: str | Controller = "constant",
        settings: DecodeSettings | None = None,
        seed: int = 0,
        capture: str | None = "none",
        top_k_captured: int = 32,
        chat: bool = False,
        generation_config_applied: bool = False,
    ):
        self.target, self.proposer = target, proposer or NoProposer()
        self.settings = settings or DecodeSettings()
        self.verifier = make_verifier(rule, self.settings.sampling, self.proposer)
        self.controller = make_controller(controller) if isinstance(controller, str) else controller
        if seed < 0:
            raise InputError(f"the seed is {seed}; it must be at least 0")
        self.seed, self.chat, self.generation_config_applied = seed, chat, generation_config_applied
        dtype = work_dtype(target.device)
        self.compiled = None
        if target.engine == "compiled":
            gammas = self.controller.gammas(self.settings.gamma)
            self.compiled = CompiledRound(self.verifier, gammas, dtype, capture, top_k_captured)
        self.recorder = None if capture is None else TraceRecorder(capture, top_k_captured, self.compiled)
        self.streams = Streams(seed, target.device, dtype, self.compiled.draw_row if self.compiled else inverse_cdf)
        self._sequences: list[dict[str, Any]] = []

    def run(
        self, prompt: str | list[int], *, id: str = "", bucket: str = "", on_round: OnRound | None = None
    ) -> DecodeResult:
        """Decode one prompt, text or token ids. Its rounds join the trace of this decoder as the next sequence.

        The time that `on_round` takes is not the sequence's: a display must not slow what it shows.
        """
        started, watched = perf_counter(), 0.0
        sequence = self.start(prompt)
        stop_reason = "stopped"
        output: list[int] = []  # of the rounds recorded: one that an interrupt cuts in two does not count
        estimates: list[dict[str, float | None]] = []
        try:
            for step in decode_rounds(sequence):
                if self.recorder is not None:
                    self.recorder.record(step)
                output += step.emitted
                stop_reason = step.stop_reason or stop_reason
                shown = perf_counter()
                estimates.append(self.controller.estimates())
                go_on = None if on_round is None else on_round(step)
                watched += perf_counter() - shown
                if go_on is False:
                    break
        finally:
            ms_total = (perf_counter() - started - watched) * 1e3 - sequence.prepare_ms
            entry = self._entry(sequence, output, prompt, id, bucket, stop_reason, ms_total)
            self._sequences.append(entry | ({"controller_estimates": estimates} if any(estimates) else {}))
        return DecodeResult(self.target.decode(output), output, stop_reason)

    def start(self, prompt: str | list[int]) -> Sequence:
        """The prompt as a sequence that has not begun: for whoever wants to step through its rounds."""
        ids = self.target.encode(prompt, self.chat) if isinstance(prompt, str) else prompt
        index = len(self._sequences)
        return Sequence(
            self.target, ids, self.proposer, self.verifier, self.settings, self.streams, index, self.compiled,
            self.controller,
        )  # fmt: skip

    def trace(self) -> Trace:
        """The trace of all sequences so far. Raises `InputError` when this decoder does not record."""
        if self.recorder is None:
            raise InputError("this decoder records nothing; give it capture='none' or more to have a trace")
        trace = self.recorder.trace(self._manifest())
        trace.manifest["vocabulary"] = self._vocabulary(trace)
        return trace

    def _entry(
        self,
        sequence: Sequence,
        output: list[int],
        prompt: str | list[int],
        id: str,
        bucket: str,
        stop_reason: str,
        ms_total: float,
    ) -> dict[str, Any]:
        context = sequence.context
        return {
            "id": id or f"prompt-{len(self._sequences)}",
            "bucket": bucket,
            "prompt": prompt if isinstance(prompt, str) else self.target.decode(prompt),
            "prompt_tokens": context.tokens[: context.prompt_length],
            "token_ids": output,
            "text": self.target.decode(output),
            "stop_reason": stop_reason,
            "seed": self.seed,
            "ms_prefill": sequence.prefill_ms,
            "ms_draft_prefill": sequence.draft_prefill_ms,
            "ms_total": ms_total,
        }

    def _manifest(self) -> dict[str, Any]:
        settings, target = self.settings, self.target
        return {
            "schema_version": SCHEMA_VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "library": library_versions(),
            "device": device_name(target.device),
            "clock": clock_for(target.device).name,
            "target": target.describe(),
            "proposer": self.proposer.describe(),
            "rule": self.verifier.describe(),
            "gamma": settings.gamma,
            "controller": self.controller.describe(),
            "seed": self.seed,
            "capture": self.recorder.capture,
            "top_k_captured": self.recorder.top_k,
            "sampling": settings.sampling.as_dict(),
            "draft_sampling": (settings.draft_sampling or settings.sampling).as_dict(),
            "chat_template": self.chat,
            "generation_config_applied": self.generation_config_applied,
            "eos_ids": [] if settings.ignore_eos else list(target.eos_ids),
            "stop": list(settings.stop),
            "max_new_tokens": settings.max_new_tokens,
            "min_new_tokens": settings.min_new_tokens,
            "sequences": self._sequences,
        }

    def _vocabulary(self, trace: Trace) -> dict[str, str]:
        """Text of every token id that occurs in the trace."""
        ids = set(trace.positions["token"])
        for sequence in self._sequences:
            ids.update(sequence["prompt_tokens"])
        if trace.rows is not None:
            ids.update(range(self.target.vocab_size))
        elif trace.distributions is not None:
            ids.update(*trace.distributions["tokens"])
        return {str(token): self.target.token_text(int(token)) for token in sorted(ids)}


def decode(
    prompt: str,
    *,
    target: LanguageModel,
    proposer: Proposer | None = None,
    on_round: OnRound | None = None,
    **options: Any,
) -> DecodeResult:
    """Decode one prompt and keep its trace.

    Keywords are those of `DecodeSettings` (gamma, max_new_tokens, min_new_tokens, sampling, draft_sampling, stop,
    ignore_eos) and of `Decoder` (rule, controller, seed, capture, top_k_captured, chat). `on_round` sees each round and
    stops by returning False.

    >>> from specworkbench.engine import decode, load_pair, make_proposer
    >>> target, draft = load_pair("embedded", "embedded/draft-s")
    >>> proposer, rounds = make_proposer("draft_model", target=target, draft=draft), []
    >>> result = decode("def mean():", target=target, proposer=proposer, max_new_tokens=16, on_round=rounds.append)
    >>> len(result.token_ids), result.stop_reason, len(result.trace.rounds) == len(rounds)
    (16, 'length', True)
    """
    names = DecodeSettings.__dataclass_fields__
    settings = DecodeSettings(**{name: options.pop(name) for name in list(options) if name in names})
    decoder = Decoder(target, proposer, settings=settings, **options)
    result = decoder.run(prompt, on_round=on_round)
    trace = decoder.trace() if decoder.recorder is not None else None
    return DecodeResult(result.text, result.token_ids, result.stop_reason, trace)


def library_versions() -> dict[str, str]:
    """Versions a result depends on."""
    return {
        "specworkbench": specworkbench.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def device_name(device: torch.device) -> str:
    """The device in words: 'cpu', or 'cuda: ' and the card's name."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type
