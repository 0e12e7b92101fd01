"""Several proposers on the same prompts beside plain decoding: what is asked for, and its rows. No torch.

`side_by_side` decodes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specworkbench import analysis
from specworkbench.analysis.speedup import shared
from specworkbench.errors import InputError
from specworkbench.experiments.plan import PLAIN
from specworkbench.experiments.study.figures import INTERVALS, MEASURES, figures
from specworkbench.paths import EMBEDDED
from specworkbench.trace import Trace
from specworkbench.workloads import Prompt

__all__ = ["Comparison", "Watch", "comparison_rows", "comparison_row", "finished", "explained"]

ACCEPTANCE = {
    "alpha_counts": analysis.alpha_counts,
    "alpha_overlap": analysis.alpha_overlap,
    "block_efficiency": analysis.block_efficiency,
}
"""What a speculative trace says without a plain one beside it."""

FIGURES = (*MEASURES, *(end for ends in INTERVALS.values() for end in ends))


@dataclass(frozen=True)
class Comparison:
    """What is decoded. proposers: as `ProposerSpec.parse` reads them; target: a model's name, or a loaded one; rule and
    controller as `Decoder` takes them (rule None: what suits each proposer); the rest as in `SamplingSettings` and
    `DecodeSettings`; engine as in `load_model`; capture: see `Decoder`, what is recorded takes time of every round.

    Raises `InputError` where nothing is to be compared, or there is nothing to continue.

    >>> from specworkbench.workloads import load_prompts
    >>> asked = Comparison(tuple(load_prompts("embedded", per_bucket=1)), ("ngram", "eagle"), max_new_tokens=32)
    >>> asked.labels, asked.planned_tokens
    (('none', 'ngram', 'eagle'), 96)
    """

    prompts: tuple[Prompt, ...]
    proposers: tuple[str, ...]
    target: Any = EMBEDDED
    rule: str | None = None
    controller: str = "constant"
    gamma: int = 4
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    max_new_tokens: int = 64
    seed: int = 0
    chat: bool = False
    engine: str = "eager"
    capture: str = "none"

    def __post_init__(self) -> None:
        if not self.proposers:
            raise InputError("no proposer is chosen; choose at least one to compare with plain decoding")
        if not self.prompts:
            raise InputError("no prompt is chosen; choose at least one, or type a text")
        for prompt in self.prompts:
            if not prompt.text.strip():
                raise InputError(f"the prompt {prompt.id!r} is empty; give at least one word to continue from")

    @property
    def labels(self) -> tuple[str, ...]:
        """Plain decoding, then the proposers, each once: the names of what is decoded."""
        return tuple(dict.fromkeys((PLAIN, *self.proposers)))

    @property
    def planned_tokens(self) -> int:
        """Tokens that each of them decodes at most."""
        return len(self.prompts) * self.max_new_tokens


class Watch:
    """Is told what happens while a comparison is decoded, and may stop it. Does nothing; override what is wanted.

    >>> class Told(Watch):
    ...     def decoded(self, label, prompts):
    ...         print(f"{label}: {prompts} prompts")
    >>> Told().decoded("ngram", 2)
    ngram: 2 prompts
    >>> Told().stopped()
    False
    """

    def stopped(self) -> bool:
        """Asked after each round and before each load; once true, what was decoded by then is all there is."""
        return False

    def doing(self, words: str) -> None:
        """What goes on, such as loading."""

    def round(self, label: str, step: Any) -> None:
        """A round of this proposer is done."""

    def decoded(self, label: str, prompts: int) -> None:
        """This proposer has decoded so many prompts."""

    def failed(self, label: str, error: Exception) -> None:
        """This proposer decodes no more, and why; the others go on."""


def comparison_rows(traces: Mapping[str, Trace]) -> list[dict[str, Any]]:
    """One row a trace, in the order given: see `comparison_row`. traces: by label, the plain one as `PLAIN`.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> traces = {"none": "quickstart_plain", "draft-m": "quickstart"}
    >>> traces = {label: load_trace(traces_dir() / f"{name}.trace") for label, name in traces.items()}
    >>> [(row["proposer"], round(row["block_efficiency"], 2)) for row in comparison_rows(traces)]
    [('none', 1.0), ('draft-m', 2.57)]
    """
    return [comparison_row(label, trace, traces.get(PLAIN)) for label, trace in traces.items()]


def comparison_row(label: str, trace: Trace, plain: Trace | None) -> dict[str, Any]:
    """What is said of one proposer: proposer (its label), prompts (decoded to their end), tokens, rounds, ms_per_token,
    rule (of the manifest), and `FIGURES`: None where nothing was measured.

    Figures are over the prompts that this and plain decoding have both brought to an end. Where there is none, as a
    stop came first, they are those of acceptance alone. The speedup of plain decoding is 1: it is the measure.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> row = comparison_row("draft-m", load_trace(traces_dir() / "quickstart.trace"), plain=None)
    >>> round(row["alpha_counts"], 3), row["speedup_measured"]
    (0.657, None)
    """
    found: dict[str, Any] = dict.fromkeys(FIGURES)
    if label == PLAIN:
        whole = finished(trace)
        found |= {"speedup_measured": 1.0, "block_efficiency": analysis.block_efficiency(trace).value}
    else:
        whole = _compared(found, trace, plain)
    kept = whole or trace
    tokens = int(kept.rounds["emitted"].sum())
    ms = sum(sequence["ms_total"] for sequence in kept.sequences)
    return found | {
        "proposer": label,
        "prompts": len(whole.sequences) if whole else 0,
        "tokens": tokens,
        "rounds": len(kept.rounds),
        "ms_per_token": ms / tokens if whole and tokens else None,
        "rule": trace.manifest["rule"],
    }


def finished(trace: Trace) -> Trace | None:
    """The sequences that were not stopped on request; None without any.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> len(finished(trace).sequences) == len(trace.sequences)
    True
    """
    ended = [index for index, sequence in enumerate(trace.sequences) if sequence["stop_reason"] != "stopped"]
    return analysis.select(trace, ended) if ended else None


def explained(plain: Trace | None, trace: Trace) -> str:
    """From the formula to the measured speedup in a sentence (`analysis.gap`), or why there is none.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> explained(plain, trace)[:52]
    'The formula says 2.56x (alpha 0.66, gamma 4, guesses'
    >>> explained(None, trace)
    'No prompt was decoded to its end both plainly and by this proposer, so there is no speedup to explain.'
    """
    before, after = (None if of is None else finished(of) for of in (plain, trace))
    if before is None or after is None:
        return "No prompt was decoded to its end both plainly and by this proposer, so there is no speedup to explain."
    try:
        return analysis.gap(before, after).sentence
    except InputError as error:
        return f"The speedup cannot be explained: {error}."


def _compared(found: dict[str, Any], trace: Trace, plain: Trace | None) -> Trace | None:
    """Put the figures into `found`; the prompts that they are over, None where those of acceptance are all there is."""
    before, after = (None if of is None else finished(of) for of in (plain, trace))
    if before is not None and after is not None:
        try:
            before, after = shared(before, after)
        except InputError:
            after = None
        else:
            found |= figures(before, after)
            return after
    for name, estimate in ACCEPTANCE.items():
        found[name], found[INTERVALS[name][0]], found[INTERVALS[name][1]] = estimate(trace)
    return None
