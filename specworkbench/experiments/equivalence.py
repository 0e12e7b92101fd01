"""`check`: the tests of equivalence on real draws of one implementation, with their controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

from specworkbench.equivalence.judge import Judgement, check_numbers, judge
from specworkbench.equivalence.numerics import RowDifference, RowVerdict, TVBound, sequence_tv_bound
from specworkbench.equivalence.numerics import watch as watch_rows
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.experiments.greedy import Divergences, biased, divergences
from specworkbench.experiments.implementation import Implementation, begun, default_jobs, evidence_of, opened
from specworkbench.experiments.workers import Workers
from specworkbench.workloads import Prompt

__all__ = ["Check", "Implementation", "Workers", "check", "default_jobs", "opened", "row_differences"]

PARTS = ("positive", "null", "subject")
"""Who is judged, in this order; before it the rows are measured."""

ROW_PROMPTS = 4
"""Continuations whose rows are measured."""

GREEDY_PROMPTS = 12
"""Prompts whose outputs at temperature 0 are compared with those of plain decoding."""

Watch = Callable[[str, int, int, float | None], bool | None]
"""Told which part is at work ("rows", "greedy", or one of `PARTS`), how much of it is done, how much there is, and
log E; stops everything with False.
"""


@dataclass(frozen=True)
class Check:
    """The tests of one implementation with their controls; None for what was not begun when somebody stopped it.

    subject: the implementation; positive: the same with a fault, which the tests must reject; null: plain decoding,
    which they must not. Where the positive control was not rejected, the tests could not have seen much, and nothing is
    decided. These judge the sampler given its rows; rows: whether its rows are those of single-token forwards up to
    rounding; law_bound: how far rounding alone may move the law of a whole continuation; divergences: at temperature 0,
    where outputs part from those of plain decoding.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> Check(Implementation("embedded", ProposerSpec("ngram")), lossless=True).verdict
    'undecided'
    """

    implementation: Implementation
    lossless: bool
    subject: Judgement | None = None
    positive: Judgement | None = None
    null: Judgement | None = None
    rows: RowVerdict | None = None
    law_bound: TVBound | None = None
    divergences: Divergences | None = None

    @property
    def judged(self) -> dict[str, Judgement]:
        """The parts that were judged: the implementation first, then its controls."""
        every = {part: getattr(self, part) for part in ("subject", "positive", "null")}
        return {part: found for part, found in every.items() if found is not None}

    @property
    def verdict(self) -> str:
        """"rejected", "not rejected", or "undecided" (a control did not come out as it must, or is not there)."""
        if len(self.judged) < len(PARTS) or self.null.rejected or not self.positive.rejected:
            return "undecided"
        faulty = self.subject.rejected or self.rows.kind != "rounding" or biased(self.divergences)
        return "rejected" if faulty else "not rejected"


def check(
    wanted: Implementation,
    prompts: Sequence[Prompt],
    *,
    tokens: int = 20_000,
    level: float = 1e-3,
    margin: float = 0.05,
    workers: Workers,
    watch: Watch | None = None,
    control_tokens: int | None = None,
) -> Check:
    """Test an implementation on real draws, prompt after prompt and round again, until `tokens` tokens are judged or
    the e-process has decided.

    margin: of total variation over the declared cells, below which a bias does not matter. control_tokens: most tokens
    of the null control, a quarter of `tokens` when not given. Raises `InputError` for a number of tokens, a level or
    a margin out of range, no prompt, one that does not fit, or parts that do not fit together; all this before anything
    is decoded.

    >>> from specworkbench.engine import DecodeSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> wanted = Implementation("embedded", ProposerSpec("random"), settings=DecodeSettings(max_new_tokens=16))
    >>> with Workers() as workers:
    ...     found = check(wanted, [Prompt("mine", "text", "a b a b")], tokens=400, workers=workers)
    >>> found.positive.rejected, found.subject.rejected
    (True, False)
    """
    refuse_what_does_not_fit(wanted, prompts, tokens, level, margin)
    who = {"positive": wanted.faulty(), "null": wanted.plain(), "subject": wanted}
    most = {"positive": tokens, "null": control_tokens or max(1, tokens // 4), "subject": tokens}
    found = {"implementation": wanted, "lossless": opened(wanted).verifier.lossless}
    rows = row_differences(wanted, prompts[:ROW_PROMPTS], watch)
    if rows is None:
        return Check(**found)
    found |= {"rows": rows.verdict(level), "law_bound": sequence_tv_bound(rows)}
    if wanted.settings.sampling.greedy:
        some = prompts[:GREEDY_PROMPTS]
        found["divergences"] = divergences(wanted, some, workers, watch=watch and _told(watch, "greedy"))
        if found["divergences"] is None:
            return Check(**found)
    stopped = False
    for part in PARTS:

        def told(done: int, log_e: float, part: str = part) -> bool:
            nonlocal stopped
            stopped = watch is not None and watch(part, done, most[part], log_e) is False
            return not stopped

        parts = workers.map(evidence_of, ((who[part], prompt.text, i) for i, prompt in enumerate(cycle(prompts))))
        slots = wanted.settings.gamma + 1
        found[part] = judge(parts, tokens=most[part], level=level, slots=slots, margin=margin, watch=told)
        parts.close()
        if stopped:
            break
    return Check(**found)


def refuse_what_does_not_fit(
    wanted: Implementation, prompts: Sequence[Prompt], tokens: int, level: float, margin: float
) -> None:
    """Raises `InputError`; see `check`."""
    check_numbers(tokens, level, margin)
    if not prompts:
        raise InputError("there is no prompt to continue; give at least one")
    opened(wanted)
    for prompt in prompts:
        try:
            begun(wanted, prompt.text, 0)
        except InputError as error:
            raise InputError(f"prompt {prompt.id}: {error}") from error


def row_differences(
    wanted: Implementation, prompts: Sequence[Prompt], watch: Watch | None = None
) -> RowDifference | None:
    """One continuation of each prompt, its rows measured against single-token rows; None where it was stopped.

    >>> from specworkbench.engine import DecodeSettings
    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.workloads import Prompt
    >>> wanted = Implementation("embedded", ProposerSpec("ngram"), settings=DecodeSettings(max_new_tokens=16))
    >>> row_differences(wanted, [Prompt("mine", "text", "a b a b")]).verdict().kind
    'rounding'
    """
    parts, settings = opened(wanted), wanted.settings
    differences = RowDifference(parts.target, settings.sampling)
    for number, prompt in enumerate(prompts, start=1):
        ids = tuple(parts.target.encode(prompt.text, wanted.chat))
        watch_rows(Setup(parts.target, ids, settings, parts.proposer, parts.verifier), differences, wanted.seed)
        if watch is not None and watch("rows", number, len(prompts), None) is False:
            return None
    return differences


def _told(watch: Watch, part: str) -> Callable[[int, int], bool | None]:
    return lambda done, total: watch(part, done, total, None)
