"""What `specworkbench equivalence` says: as one JSON object, as tables, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from specworkbench.cli.screen import printable, screen

if TYPE_CHECKING:
    from specworkbench.equivalence.judge import Judgement
    from specworkbench.experiments.against import Comparison
    from specworkbench.experiments.equivalence import Check

PARTS = {"subject": "the implementation", "positive": "positive control", "null": "null control"}


def as_dict(found: Check) -> dict[str, Any]:
    """All of it as one JSON object."""
    from specworkbench.experiments.equivalence import described

    return {
        "verdict": found.verdict,
        "sentence": sentence(found),
        "implementation": described(found.implementation),
        "lossless": found.lossless,
        "rows": vars(found.rows),
        "law_bound": found.law_bound._asdict(),
        **{part: judgement(getattr(found, part)) for part in PARTS},
    }


def judgement(found: Judgement) -> dict[str, Any]:
    """One judgement as plain values; an infinite E-value (a token outside the support) as null."""
    return {
        "rejected": found.rejected,
        "rejected_by": found.rejected_by,
        "level": found.level,
        "tokens": found.tokens,
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
        "detectable_tv": found.detectable_tv,
        "slots": found.slots.to_dict("records"),
    }  # fmt: skip


def comparison(found: Comparison) -> dict[str, Any]:
    """A comparison as plain values."""
    return {
        "engine": found.engine,
        "verdict": found.verdict,
        **{part: getattr(found, part).as_dict() for part in PARTS},
        "law": {
            prompt: {**vars(outcome), "adjusted": found.adjusted[prompt], "sentence": outcome.sentence}
            for prompt, outcome in found.law.items()
        },
    }


def sentence(found: Check) -> str:
    """The verdict in words."""
    subject, positive = found.subject, found.positive
    if found.null.rejected:
        return "undecided: plain decoding itself was rejected, so something is wrong with the tests or the model's rows"
    if not positive.rejected:
        return (
            f"undecided: the positive control was not rejected within {positive.tokens} tokens; "
            "judge more of them, or propose more often"
        )
    if subject.rejected:
        first = f" after {subject.decided_at} tokens" if subject.decided_at else f" on {subject.tokens} tokens"
        said = "as it must be, for the rule is lossy" if not found.lossless else "the output does not follow the target"
        return f"rejected{first} by {', '.join(subject.rejected_by)}: {said}"
    if found.rows.kind != "rounding":
        return f"rejected: the tokens follow the rows that they were drawn from, and there is {found.rows.sentence}"
    short = f" ({subject.wanted} were asked for)" if subject.tokens < subject.wanted else ""
    return (
        f"not rejected on {subject.tokens} tokens{short}: a total variation of {subject.detectable_tv:.3f} over the "
        f"declared cells would have shown; what is left over them is at most {subject.tv_bound['cells']:.3f}"
    )


def show(found: Check) -> None:
    """The tests as a table, the slots of a rejected implementation, and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = screen()
    names = list(found.subject.outcomes)
    table = Table("", "tokens", "decided at", *names, "TV bound", "detectable TV", "rejected", box=SIMPLE_HEAD)
    for part, words in PARTS.items():
        judged: Judgement = getattr(found, part)
        table.add_row(
            words,
            str(judged.tokens),
            "" if judged.decided_at is None else str(judged.decided_at),
            *(_p_value(judged.adjusted.get(name)) for name in names),
            f"{judged.tv_bound['cells']:.3f}",
            f"{judged.detectable_tv:.3f}",
            "yes" if judged.rejected else "no",
        )
    console.print(table)
    console.print(f"p-values after Holm, level {found.subject.level:g}; – where a test does not apply")
    if found.subject.rejected:
        slots = Table("position", "", "tokens", "log10 E", "strongest alternative", box=SIMPLE_HEAD)
        for row in found.subject.slots.to_dict("records"):
            kind = "judged" if row["guided"] else "bonus or plain"
            slots.add_row(
                str(row["slot"]), kind, str(row["tokens"]), f"{row['log_e'] / math.log(10):.1f}", str(row["best"])
            )  # fmt: skip
        console.print(slots)
    console.print(printable(f"rows: {found.rows.sentence}"))
    console.print(f"so rounding moves the law of a whole continuation by at most {found.law_bound.upper:.2g}")
    console.print(printable(sentence(found)))


def show_comparison(found: Comparison) -> None:
    """Who differs from whom, in sentences."""
    console = screen()
    console.print(printable(f"\nagainst {found.engine['engine']}: {found.verdict}"))
    for part, words in PARTS.items():
        console.print(printable(f"  {words}: {getattr(found, part).sentence}"))
    for prompt, outcome in found.law.items():
        console.print(printable(f"  the other engine against the target's own law, {prompt}: {outcome.sentence}"))


def _p_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
