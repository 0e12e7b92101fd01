"""Runs of the tests of equivalence on real models: who is tested, in which processes, with which controls."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import cycle, islice
from typing import Any, TypeVar

import torch

from specworkbench.engine.contracts import Proposer, Verifier
from specworkbench.engine.loop import DecodeSettings, decode_rounds
from specworkbench.engine.loop import Sequence as Decoding
from specworkbench.engine.models import LanguageModel, load_model
from specworkbench.engine.proposers import make_proposer
from specworkbench.engine.rng import Streams, work_dtype
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.evidence import Evidence
from specworkbench.equivalence.faults import FaultyVerifier, control_for
from specworkbench.equivalence.judge import Judgement, judge
from specworkbench.equivalence.monitor import Monitor
from specworkbench.equivalence.numerics import RowDifference, RowVerdict, TVBound, sequence_tv_bound
from specworkbench.equivalence.numerics import watch as watch_rows
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.experiments.plan import PLAIN, ProposerSpec
from specworkbench.workloads import Prompt

Result = TypeVar("Result")

ROW_PROMPTS = 4
"""Continuations whose rows are measured."""

AHEAD = 2
"""Tasks that each process may be ahead of what has been asked for."""


@dataclass(frozen=True)
class Implementation:
    """What is tested, by names and settings alone, so that any process can open it.

    length: most new tokens a prompt. seed: of its random streams. fault: "" or a key of `equivalence.faults.FAULTS`.
    """

    target: str
    proposer: ProposerSpec
    rule: str | None = None
    settings: DecodeSettings = field(default_factory=lambda: DecodeSettings(max_new_tokens=64))
    chat: bool = False
    dtype: str | None = None
    device: str | None = None
    seed: int = 0
    fault: str = ""

    def plain(self) -> Implementation:
        """Plain decoding of the same target with other draws."""
        return replace(self, proposer=ProposerSpec(PLAIN), rule=None, fault="", seed=self.seed + 1)

    def faulty(self) -> Implementation:
        """The same with a fault that the tests must find."""
        fault = control_for(self.settings.sampling.greedy, self.proposer.name != PLAIN)
        return replace(self, fault=fault, seed=self.seed + 2)


@dataclass(frozen=True)
class Opened:
    """The parts of an implementation, loaded."""

    target: LanguageModel
    proposer: Proposer
    verifier: Verifier


@lru_cache(maxsize=4)
def _target(name: str, dtype: str | None, device: str | None) -> LanguageModel:
    return load_model(name, dtype=dtype, device=device)


@lru_cache(maxsize=4)
def _proposer(spec: ProposerSpec, name: str, dtype: str | None, device: str | None) -> Proposer:
    return make_proposer(spec.name, target=_target(name, dtype, device), draft=spec.weights, **dict(spec.settings))


def opened(wanted: Implementation) -> Opened:
    """Load what an implementation names, once. Raises `InputError` for what does not exist or does not fit together."""
    where = (wanted.target, wanted.dtype, wanted.device)
    target, proposer = _target(*where), _proposer(wanted.proposer, *where)
    verifier = make_verifier(wanted.rule, wanted.settings.sampling, proposer)
    return Opened(target, proposer, FaultyVerifier(verifier, wanted.fault) if wanted.fault else verifier)


def evidence_of(wanted: Implementation, prompt: str, index: int) -> Evidence:
    """Decode one prompt as sequence number `index`; its draws depend on the seed and that number alone."""
    parts = opened(wanted)
    streams = Streams(wanted.seed, parts.target.device, work_dtype(parts.target.device))
    ids = parts.target.encode(prompt, wanted.chat)
    sequence = Decoding(parts.target, ids, parts.proposer, parts.verifier, wanted.settings, streams, index)
    monitor = Monitor(parts.verifier.name)
    for step in decode_rounds(sequence):
        monitor(step)
    return monitor.take()


class Workers:
    """Processes that decode, each with the models loaded once; with one job, this process itself.

    with Workers(jobs) as workers:
        for evidence in workers.map(evidence_of, tasks):
            ...

    Results come in the order of the tasks, whoever finished first, so that which tokens are judged never depends on how
    long they took.
    """

    def __init__(self, jobs: int = 1):
        if jobs < 1:
            raise InputError(f"jobs is {jobs}; at least 1 process must decode")
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def map(self, work: Callable[..., Result], tasks: Iterable[tuple]) -> Iterator[Result]:
        """`work(*task)` for each task, of which there may be no end: few are begun before their turn."""
        if self._pool is None:
            yield from (work(*task) for task in tasks)
            return
        tasks = iter(tasks)
        waiting = deque(self._pool.submit(work, *task) for task in islice(tasks, self.jobs * (AHEAD + 1)))
        try:
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(self._pool.submit(work, *task) for task in islice(tasks, 1))
                yield done
        finally:
            for future in waiting:
                future.cancel()


def _begin() -> None:
    """In a new process: one thread (the processes share the cores), and Ctrl-C is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def default_jobs(wanted: Implementation) -> int:
    """A process a core for the small embedded family on a CPU; one otherwise."""
    embedded = wanted.target.startswith("embedded") and wanted.device in (None, "cpu") and not torch.cuda.is_available()
    return (os.cpu_count() or 1) if embedded else 1


@dataclass(frozen=True)
class Check:
    """The tests of one implementation with their controls.

    subject: the implementation; positive: the same with a fault, which the tests must reject; null: plain decoding,
    which they must not. Where the positive control was not rejected, the tests could not have seen much, and nothing is
    decided. These judge the sampler given its rows; rows: whether its rows are those of single-token forwards up to
    rounding; law_bound: how far rounding alone may move the law of a whole continuation.
    """

    implementation: Implementation
    subject: Judgement
    positive: Judgement
    null: Judgement
    rows: RowVerdict
    law_bound: TVBound
    lossless: bool

    @property
    def verdict(self) -> str:
        """"rejected", "not rejected", or "undecided" (a control did not come out as it must)."""
        if self.null.rejected or not self.positive.rejected:
            return "undecided"
        return "rejected" if self.subject.rejected or self.rows.kind != "rounding" else "not rejected"


PARTS = ("positive", "null", "subject")


def check(
    wanted: Implementation,
    prompts: Sequence[Prompt],
    *,
    tokens: int = 20_000,
    level: float = 1e-3,
    workers: Workers,
    watch: Callable[[str, int, float], bool | None] | None = None,
    control_tokens: int | None = None,
) -> Check:
    """Test an implementation on real draws. watch: told which part is at work, tokens judged and log E; stops it with
    False.

    control_tokens: most tokens of the null control, a quarter of `tokens` when not given.
    """
    who = {"positive": wanted.faulty(), "null": wanted.plain(), "subject": wanted}
    most = {"positive": tokens, "null": control_tokens or max(1, tokens // 4), "subject": tokens}
    found: dict[str, Judgement] = {}
    for part in PARTS:
        tasks = ((who[part], prompt.text, index) for index, prompt in enumerate(cycle(prompts)))
        parts = workers.map(evidence_of, tasks)
        found[part] = judge(
            parts,
            tokens=most[part],
            level=level,
            slots=wanted.settings.gamma + 1,
            watch=None if watch is None else lambda done, log_e, part=part: watch(part, done, log_e),
        )
        parts.close()
    rows = row_differences(wanted, prompts[:ROW_PROMPTS])
    return Check(
        wanted, found["subject"], found["positive"], found["null"], rows.verdict(level), sequence_tv_bound(rows),
        opened(wanted).verifier.lossless,
    )  # fmt: skip


def row_differences(wanted: Implementation, prompts: Sequence[Prompt]) -> RowDifference:
    """One continuation of each prompt, its rows measured against single-token rows."""
    parts, settings = opened(wanted), wanted.settings
    differences = RowDifference(parts.target, settings.sampling)
    for prompt in prompts:
        ids = tuple(parts.target.encode(prompt.text, wanted.chat))
        watch_rows(Setup(parts.target, ids, settings, parts.proposer, parts.verifier), differences, wanted.seed)
    return differences


def described(wanted: Implementation) -> dict[str, Any]:
    """An implementation as plain values, for JSON."""
    return asdict(wanted) | {"proposer": wanted.proposer.label}
