"""What real rounds cost: the target's step with its rows and rule, proposers, prefills, rollback, the loop itself.

Everything is taken from rounds of the engine's own loop, by its own clock, sampling at temperature 1. Two kinds:

- A `Step` holds a sequence at its context: a round that verifies rows - 1 guesses drawn uniformly (rows = 1: a plain
  round), after which the sequence is set back. Its target time is `ms_verify + ms_accept`, as in `analysis.latency`.
  The loop's own time is what a call of `Sequence.round` takes beside the phases that its clock tells apart.
- A `Run` begins a sequence anew: both prefills, then `ROUNDS` rounds with a proposer, of which each time's median
  counts. The prompt is text (the shipped prompts that suit the target, again and again up to the context), so that
  proposers that look things up find something.

The engine decodes one sequence at a time: all costs are those of batch size 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import numpy as np
import torch

from specworkbench.analysis.estimate import Estimate, median, ratio_of_medians
from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, Proposer, SamplingSettings, make_proposer
from specworkbench.engine.loop import Sequence
from specworkbench.engine.timing import PHASES
from specworkbench.errors import InputError
from specworkbench.experiments.costs.settings import Cell, CostSettings, named
from specworkbench.experiments.plan import PLAIN
from specworkbench.workloads import load_prompts, shipped_for

__all__ = ["Rounds"]

ROUNDS = 5
"""Of a run. Their median leaves out what a proposer does once, such as reading the context into an index."""

Samples = dict[str, list[float]]


@dataclass
class Step:
    """Rounds of so many rows at one context; `samples`: ms of `step` (verify and accept), `rollback`, `loop`."""

    cell: Cell
    sequence: Sequence
    samples: Samples = field(default_factory=dict)

    def measure(self, counts: bool) -> None:
        sequence, context = self.sequence, self.cell.context
        if not sequence.cache.length:
            sequence.prefill()
        times = timed_round(sequence)
        del sequence.context.tokens[context + 1 :]
        sequence.cache.rollback(sequence.cache.length - context)
        if counts:
            _keep(self.samples, {name: times[name] for name in ("step", "rollback", "loop")})


@dataclass
class Run:
    """Sequences decoded with a proposer after a context; `samples`: ms of both prefills, and of a round's parts.

    `propose` is per token proposed, NaN where no round proposed any; `proposed`: tokens a round. bytes of the
    proposer's cache after its prefill: `draft_cache_bytes`.
    """

    label: str
    context: int
    decoder: Decoder
    prompt: list[int]
    samples: Samples = field(default_factory=dict)
    draft_cache_bytes: int = 0

    def measure(self, counts: bool) -> None:
        sequence = self.decoder.start(self.prompt)
        sequence.prefill()
        self.draft_cache_bytes = sequence.proposer.cache_bytes
        rounds = [timed_round(sequence) for _ in range(ROUNDS)]
        sequence.proposer.reset()
        if counts:
            middle = {name: _median([each[name] for each in rounds]) for name in rounds[0]}
            proposed = float(np.mean([each["proposed"] for each in rounds]))
            prefills = {"prefill": sequence.prefill_ms, "draft_prefill": sequence.draft_prefill_ms}
            _keep(self.samples, {**middle, **prefills, "proposed": proposed})


class Rounds:
    """The steps and runs of one target with these proposers, by label; plain decoding is always among them.

    Raises `InputError` where they would go past the context of the target.

    >>> from specworkbench.engine import load_model, make_proposer
    >>> target = load_model("embedded")
    >>> rounds = Rounds(target, {"ngram": make_proposer("ngram")}, CostSettings(contexts=(8,), rows=(1, 2), runs=2))
    >>> sorted(type(job).__name__ for job in rounds.jobs)
    ['Run', 'Run', 'Step', 'Step', 'Step']
    """

    def __init__(self, target: LanguageModel, proposers: Mapping[str, Proposer], settings: CostSettings):
        self.settings, self.proposers = settings, {PLAIN: make_proposer(PLAIN), **proposers}
        most = max(settings.rows[-1], settings.gamma + 1)
        longest = settings.contexts[-1] + 1 + (ROUNDS + 1) * most
        if longest > target.max_context:
            raise InputError(
                f"a context of {settings.contexts[-1]} tokens and {ROUNDS} rounds of up to {most} tokens after it need "
                f"{longest}, and {target.name} takes {target.max_context} at most; give a shorter context, fewer rows "
                "or a smaller gamma"
            )
        ids = text_ids(target, settings.contexts[-1] + 1)
        rows = sorted({*settings.rows, settings.gamma + 1})
        guess = make_proposer("random")
        decoders = {n: _decoder(target, guess if n > 1 else self.proposers[PLAIN], n - 1) for n in rows}
        self.steps = [
            Step(Cell(context, n), decoders[n].start(ids[: context + 1])) for context in settings.contexts for n in rows
        ]
        self.runs = [
            Run(label, context, _decoder(target, proposer, settings.gamma), ids[: context + 1])
            for context in settings.contexts
            for label, proposer in self.proposers.items()
        ]

    @property
    def jobs(self) -> list[Step | Run]:
        """All that is to be measured in a turn."""
        return [*self.steps, *self.runs]

    def step_rows(self) -> list[dict[str, Any]]:
        """One entry a step, JSON-ready: context, rows, runs; ms: of the target, rows and rule included; verify_cost:
        over that of one row; ms_rollback; ms_loop: what is left of the round beside its phases. With intervals, as in
        `Forwards.rows`."""
        found = []
        for step in self.steps:
            if ms := step.samples.get("step"):
                cost = _ratio(ms, self._plain(step.cell.context))
                parts = {f"ms_{name}": step.samples[name] for name in ("rollback", "loop")}
                figures = {name: _middle(values) for name, values in {"ms": ms, **parts}.items()}
                told = {**named("ms", figures.pop("ms")), **named("verify_cost", cost)}
                for name, estimate in figures.items():
                    told |= named(name, estimate)
                found.append({**step.cell._asdict(), "runs": len(ms), **told})
        return found

    def run_rows(self) -> list[dict[str, Any]]:
        """One entry a proposer and context, JSON-ready.

        proposer (its label), context, gamma (None for plain decoding), runs; proposed: tokens a round; c: the
        proposer's time per token proposed over the target's step of one row, with c_set where it is set and not
        measured; overhead: o, what a round takes beside proposer, target and rule (rollback and loop), over the same;
        ms_propose (per token), ms_step, ms_rollback, ms_loop, ms_prefill (the target's), ms_draft_prefill;
        draft_cache_bytes after the context. With intervals.
        """
        return [self._run_row(run) for run in self.runs if run.samples]

    def _run_row(self, run: Run) -> dict[str, Any]:
        samples, plain = run.samples, self._plain(run.context)
        rest = np.add(samples["rollback"], samples["loop"])
        cost_set = self.proposers[run.label].describe().get("cost_set")
        row = {
            "proposer": run.label,
            "context": run.context,
            "gamma": None if run.label == PLAIN else self.settings.gamma,
            "runs": len(rest),
            "proposed": float(np.mean(samples["proposed"])),
            "c_set": cost_set is not None,
            **named("c", _ratio(samples["propose"], plain) if cost_set is None else Estimate(cost_set, None, None, 0)),
            **named("overhead", _ratio(rest, plain)),
        }
        for name in ("propose", "step", "rollback", "loop", "prefill", "draft_prefill"):
            row |= named(f"ms_{name}", _middle(samples[name]))
        return row | {"draft_cache_bytes": run.draft_cache_bytes}

    def _plain(self, context: int) -> list[float]:
        """ms of the target's steps of one row at that context, one a turn."""
        return next(step.samples.get("step", []) for step in self.steps if step.cell == Cell(context, 1))


def timed_round(sequence: Sequence) -> dict[str, float]:
    """ms of one more round: propose (per token; NaN without one), step (verify and accept), rollback, loop (all else of
    the call); and proposed, how many tokens."""
    started = perf_counter()
    step = sequence.round()
    ms, times, size = (perf_counter() - started) * 1e3, step.times, step.proposal.size
    return {
        "propose": times["propose"] / size if size else np.nan,
        "step": times["verify"] + times["accept"],
        "rollback": times["rollback"],
        "loop": max(0.0, ms - sum(times[phase] for phase in PHASES)),
        "proposed": size,
    }


def text_ids(target: LanguageModel, count: int) -> list[int]:
    """So many tokens of text: the shipped prompts that suit the target, from the first again when they end."""
    prompts = load_prompts(shipped_for(target.name))
    ids = [token for prompt in prompts for token in target.encode(prompt.text) if 0 <= token < target.vocab_size]
    if not ids:
        seeded = torch.Generator().manual_seed(0)
        ids = torch.randint(target.vocab_size, (count,), generator=seeded).tolist()
    return list(islice(cycle(ids), count))


def _decoder(target: LanguageModel, proposer: Proposer, gamma: int) -> Decoder:
    """Decoding that neither EOS nor a budget shortens."""
    most = (ROUNDS + 1) * (gamma + 1)
    settings = DecodeSettings(max(gamma, 1), most, SamplingSettings(temperature=1.0), ignore_eos=True)
    return Decoder(target, proposer, settings=settings, capture=None)


def _keep(samples: Samples, values: dict[str, float]) -> None:
    for name, value in values.items():
        samples.setdefault(name, []).append(value)


def _median(values: list[float]) -> float:
    """Of those that are numbers; NaN where none is."""
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.median(numbers)) if numbers else np.nan


def _middle(values: list[float]) -> Estimate:
    values = np.array(values)
    return median(values[~np.isnan(values)])


def _ratio(values: list[float], plain: list[float]) -> Estimate:
    """Over the plain step, by turns; an interrupt may have cut the last one."""
    both = min(len(values), len(plain))
    over, under = np.array(values[:both]), np.array(plain[:both])
    return ratio_of_medians(over[~np.isnan(over)], under[~np.isnan(over)])
