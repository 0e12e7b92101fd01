"""What `specworkbench equivalence` says: as one JSON object, as tables, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from specworkbench.cli.screen import printable, screen

if TYPE_CHECKING:
    from rich.table import Table

    from specworkbench.equivalence.judge import Judgement
    from specworkbench.experiments.against import Comparison, GreedyComparison
    from specworkbench.experiments.equivalence import Check
    from specworkbench.experiments.greedy import Divergences

PARTS = {"subject": "the implementation", "positive": "positive control", "null": "null control"}

WHOSE = {"subject": PARTS["subject"]}

STAGES = {
    "rows": ("rows against single-token rows", "prompt"),
    "greedy": ("greedy outputs", "prompt"),
    **{part: (words, "token") for part, words in PARTS.items()},
    "theirs": ("outputs of the other engine", "output"),
    "plain": ("outputs of plain decoding", "output"),
}
"""What is at work, in words, and what is counted; when outputs are drawn, they are counted as well."""


def as_dict(found: Check) -> dict[str, Any]:
    """All of it as one JSON object."""
    return {
        "verdict": found.verdict,
        "sentence": sentence(found),
        "implementation": found.implementation.described(),
        "lossless": found.lossless,
        "rows": found.rows and vars(found.rows),
        "law_bound": found.law_bound and found.law_bound._asdict(),
        **({} if found.divergences is None else {"divergences": diverged(found.divergences)}),
        **{part: None for part in PARTS},
        **{part: judgement(judged) for part, judged in found.judged.items()},
    }


def judgement(found: Judgement) -> dict[str, Any]:
    """One judgement as plain values; an infinite E-value (a token outside the support) as null."""
    return {
        "rejected": found.rejected,
        "rejected_by": found.rejected_by,
        "level": found.level,
        "tokens": found.tokens,
        "guided": found.guided,
        "decided_at": found.decided_at,
        "e_value": math.exp(found.log_e) if found.log_e < 700 else None,
        "log10_e": found.log_e / math.log(10) if math.isfinite(found.log_e) else None,
        "tests": {
            name: {
                "statistic": outcome.statistic, "p_value": outcome.p_value, "adjusted": found.adjusted.get(name),
                "tokens": outcome.tokens, "detail": outcome.detail,
            }
            for name, outcome in found.outcomes.items()
        },
        "tv": found.tv,
        "tv_bound": found.tv_bound,
        "margin": found.equivalence.margin,
        "equivalent": found.equivalence.equivalent,
        "detectable_tv": found.detectable_tv,
        "slots": found.slots.to_dict("records"),
    }  # fmt: skip


def diverged(found: Divergences) -> dict[str, Any]:
    """By prompt, where greedy outputs part, as plain values; null where they do not."""
    return {prompt: each and vars(each) | {"sentence": each.sentence} for prompt, each in found.items()}


def comparison(found: Comparison | GreedyComparison) -> dict[str, Any]:
    """A comparison as plain values."""
    said = {"engine": found.engine, "verdict": found.verdict, "sentence": comparison_sentence(found)}
    if not hasattr(found, "subject"):
        return said | {"divergences": diverged(found.divergences)}
    return {
        **said,
        **{part: getattr(found, part).as_dict() for part in PARTS},
        "law": {
            whose: {
                prompt: {**vars(outcome), "adjusted": found.adjusted[whose][prompt], "sentence": outcome.sentence}
                for prompt, outcome in by_prompt.items()
            }
            for whose, by_prompt in found.law.items()
        },
    }


def sentence(found: Check) -> str:
    """The verdict in words, and what to do where there is none."""
    subject, positive, null = found.subject, found.positive, found.null
    if None in (subject, positive, null):
        judged = f"{positive.tokens} tokens of the positive control" if positive else "nothing"
        return f"undecided: stopped before the implementation was judged ({judged} had been)"
    if null.rejected:
        return (
            f"undecided: plain decoding itself was rejected, which chance does in at most {null.level:g} of all runs; "
            "take another seed, and if it happens again, the model's rows are not to be trusted"
        )
    if not positive.rejected:
        return _blind(positive)
    if subject.rejected:
        return _rejected(found)
    if found.rows.kind != "rounding":
        return f"rejected: the tokens follow the rows that they were drawn from, and there is {found.rows.sentence}"
    if found.verdict == "rejected":
        return "rejected: greedy outputs part from those of plain decoding, and not by rounding"
    short = f" ({subject.wanted} were asked for)" if subject.tokens < subject.wanted else ""
    if found.divergences is not None:
        left = 1.0 - subject.level ** (1.0 / subject.tokens)
        seen = f"each is the target's best, so that fewer than {left:.2g} of all tokens are not"
    else:
        seen = (
            f"a total variation of {subject.detectable_tv:.3f} over the declared cells would have shown; what is left "
            f"over them is at most {subject.tv_bound['cells']:.3f}, {_within(subject)}"
        )
    lossy = "" if found.lossless else "; the rule is lossy, but its bias was too small to show here"
    return f"not rejected on {subject.tokens} tokens{short}: {seen}{lossy}"


def _within(subject: Judgement) -> str:
    """Whether the bound is below the margin."""
    found = subject.equivalence
    said = "so that it is equivalent to the target" if found.equivalent else "too much to call it equivalent"
    return f"{said} within the margin of {found.margin:g}"


def _blind(positive: Judgement) -> str:
    """The positive control was not rejected: the tests could not have seen a fault."""
    if not positive.guided:
        return (
            f"undecided: nothing was proposed in {positive.tokens} tokens, so that there was nothing to verify; "
            "choose other prompts, settings of the proposer that let it find something, or longer continuations"
        )
    share = f", {positive.guided} of them after a guess" if positive.guided < positive.tokens else ""
    return (
        f"undecided: the positive control, which has a fault, was not rejected within {positive.tokens} tokens{share}; "
        "judge more tokens"
    )


def _rejected(found: Check) -> str:
    subject = found.subject
    first = f" after {subject.decided_at} tokens" if subject.decided_at else f" on {subject.tokens} tokens"
    said = "the output does not follow the target"
    if not found.lossless:
        said += ", as it must be, for the rule is lossy"
    return f"rejected{first} by {', '.join(subject.rejected_by)}: {said}"


def comparison_sentence(found: Comparison | GreedyComparison) -> str:
    """Who differs from whom, in words, and what to do where nobody knows."""
    engine = found.engine["engine"]
    if not hasattr(found, "subject"):
        parted = sum(each is not None for each in found.divergences.values())
        how = {"rejected": ", not all of them by rounding", "not rejected": ", by rounding alone" if parted else ""}
        return (
            f"{found.verdict}: {parted} of {len(found.divergences)} greedy outputs part from those of {engine}"
            f"{how[found.verdict]}"
        )
    if found.null.differ:
        return (
            f"undecided: plain decoding differs from itself, which chance does in at most {found.null.level:g} of all "
            "runs; take another seed"
        )
    if not found.positive.differ:
        return (
            f"undecided: outputs with a fault were not told from those of {engine}; draw more outputs of each prompt"
        )
    theirs = f"; the outputs of {engine} do not follow the target's own law" if found.off_the_law("theirs") else ""
    if found.off_the_law("subject"):
        return f"rejected: the outputs do not follow the target's own law{theirs}"
    if found.subject.differ:
        return f"rejected: the outputs differ from those of {engine}{theirs}"
    return f"not rejected: no difference from the outputs of {engine} was found{theirs}"


def show(found: Check) -> None:
    """The tests as a table, the slots of a rejected implementation, and the verdict."""
    console = screen()
    if found.judged:
        console.print(_tests(found))
        _line(f"p-values after Holm, level {found.positive.level:g}; – where a test does not apply")
    if found.subject is not None and found.subject.rejected:
        console.print(_slots(found.subject))
    if found.rows is not None:
        _line(f"rows: {found.rows.sentence}")
        _line(f"so rounding moves the law of a whole continuation by at most {found.law_bound.upper:.2g}")
    if found.divergences is not None:
        _show_divergences(found.divergences, "plain decoding")
    _line(sentence(found))


def _tests(found: Check) -> Table:
    """One row for each part that was judged, one column for each test."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    names = list(found.positive.outcomes)
    table = Table("", "tokens", "decided at", *names, "TV bound", "detectable TV", "rejected", box=SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for part, judged in found.judged.items():
        table.add_row(
            PARTS[part],
            str(judged.tokens),
            "" if judged.decided_at is None else str(judged.decided_at),
            *(_p_value(judged.adjusted.get(name)) for name in names),
            f"{judged.tv_bound['cells']:.3f}",
            f"{judged.detectable_tv:.3f}",
            "yes" if judged.rejected else "no",
        )
    return table


def _slots(judged: Judgement) -> Table:
    """Which position of the round holds the evidence."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("position", "", "tokens", "log10 E", "strongest alternative", box=SIMPLE_HEAD)
    for column in (0, 2, 3):
        table.columns[column].justify = "right"
    for row in judged.slots.to_dict("records"):
        if row["tokens"]:
            kind = "after a guess" if row["guided"] else "bonus or plain"
            table.add_row(
                str(row["slot"]), kind, str(row["tokens"]), f"{row['log_e'] / math.log(10):.1f}", str(row["best"])
            )  # fmt: skip
    return table


def _show_divergences(found: Divergences, engine: str) -> None:
    parted = {prompt: each for prompt, each in found.items() if each is not None}
    _line(f"greedy outputs of {len(found)} prompts: {len(found) - len(parted)} are those of {engine}")
    for prompt, each in parted.items():
        _line(f"  {prompt}: {each.sentence}")


def show_comparison(found: Comparison | GreedyComparison) -> None:
    """Who differs from whom, in sentences."""
    engine = found.engine["engine"]
    _line("")
    if not hasattr(found, "subject"):
        _show_divergences(found.divergences, engine)
    else:
        for part, words in PARTS.items():
            other = "itself" if part == "null" else engine
            _line(f"{words} against {other}: {getattr(found, part).sentence}")
        for whose, by_prompt in found.law.items():
            for prompt, outcome in by_prompt.items():
                _line(f"{WHOSE.get(whose, engine)} against the target's own law, {prompt}: {outcome.sentence}")
    _line(f"against {engine}: {comparison_sentence(found)}")


def _line(text: str) -> None:
    """A sentence, however long, on one line, safe to show."""
    screen().print(printable(text), soft_wrap=True)


def _p_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
